// SPDX-License-Identifier: MIT
// The functions of Python that exact mode has seen: code objects, and definitions of built-in functions.
//
// Model: a hash table from their address to their site in the recorder. A dying code object is taken out, so that the
// next one at its address is met anew. Caller holds the interpreter lock everywhere.
#pragma once

#include "exact/exact_site.h"
#include "interpreter/api.h"

typedef struct gp_function_site {
    const void *key;             // NULL = free
    const gp_exact_site_t *site; // NULL = not to be counted
} gp_function_site_t;

typedef struct gp_function_sites { // open addressing, at most half full
    gp_function_site_t *slots;
    size_t mask;
    uint32_t shift, used; // used: those that were forgotten included
} gp_function_sites_t;

extern gp_function_sites_t gp_function_sites __attribute__((visibility("hidden")));

// The slot of `key`, or the free one where it belongs; there are slots.
static inline gp_function_site_t *gp_function_site_slot(const void *key)
{
    size_t slot = ((uintptr_t)key * 0x9e3779b97f4a7c15ull) >> gp_function_sites.shift;
    while (gp_function_sites.slots[slot].key != NULL && gp_function_sites.slots[slot].key != key)
        slot = (slot + 1) & gp_function_sites.mask;
    return &gp_function_sites.slots[slot];
}

// Meet a function: a code object, or (`builtin`) a built-in function with the definition `key`. Python code may run.
// Returns its site; NULL: it is greenprof's own, or memory is short.
const gp_exact_site_t *gp_function_site_add(const void *key, gp_py_t *builtin);

// The same of one that may have been met before. Cost: ~2 ns if so.
static inline const gp_exact_site_t *gp_function_site_of(const void *key, gp_py_t *builtin)
{
    const gp_function_site_t *found = gp_function_sites.slots != NULL ? gp_function_site_slot(key) : NULL;
    return found != NULL && found->key != NULL ? found->site : gp_function_site_add(key, builtin);
}

// The same; NULL: or it was not met before.
static inline const gp_exact_site_t *gp_function_site_known(const void *key)
{
    const gp_function_site_t *found = gp_function_sites.slots != NULL ? gp_function_site_slot(key) : NULL;
    return found != NULL && found->key != NULL ? found->site : NULL;
}

// A code object dies.
void gp_function_site_forget(const void *code);
