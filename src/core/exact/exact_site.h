// SPDX-License-Identifier: MIT
// The functions that exact mode has seen, and the places from which they report.
//
// A site is one call of an instrumentation hook: it names a function and says where, at that very instruction, the
// frame of the function ends (its canonical frame address, CFA), read once from the unwind tables. CFAs tell live
// frames from those left by longjmp() or an exception: a called function cannot lie above its caller. Several functions
// share one physical frame where some were inlined into another.
//
// Memory is bounded: calls from beyond GP_EXACT_SITES_MAX places, or of more functions, are not counted, and
// GP_COUNTER_LOST_CALLS says how many. Sites of unloaded modules count among them.
//
// Producers: any thread that meets a new site, under the lock of exact mode. Consumers: any thread, without it. Sites
// and functions are never freed; those of a module that was unloaded are taken out of the table.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/sink.h"

enum gp_exact_cfa {
    GP_EXACT_CFA_SP,      // stack pointer at the call + offset
    GP_EXACT_CFA_FP,      // frame pointer + offset
    GP_EXACT_CFA_REALIGN, // the word at frame pointer + offset
};

enum { GP_EXACT_FUNCTIONS_MAX = 1 << 19, GP_EXACT_SITES_MAX = 1 << 20 }; // 12 and 56 MiB

#define GP_EXACT_GONE UINTPTR_MAX

typedef struct gp_exact_site {
    uintptr_t pc;       // where the hook returns to; 0: of a language; GP_EXACT_GONE: taken out of the table
    uintptr_t address;  // of the function, as passed to the hook; a language's: GP_LANGUAGE_FRAME | its number
    uintptr_t physical; // start of the function with the frame: another one where `address` was inlined; 0 = unknown
    uint32_t function;  // number
    uint16_t cfa;       // enum gp_exact_cfa
    bool first;         // the function's own frame: nothing can have entered it before
    bool manual_inline; // prof_enter() in some other function, a helper perhaps; a language's: no frame to compare
    int32_t offset;
    const void *object; // of a language: the object that it was met as last, under the language's lock; else `address`
} gp_exact_site_t;

extern const gp_exact_site_t gp_exact_no_site; // of no function

typedef struct gp_exact_function {
    uintptr_t address;
    gp_loc_t loc;  // 0 = not looked up yet
    bool unloaded; // its module is gone
} gp_exact_function_t;

typedef struct gp_exact_sites { // open addressing, at most half full
    uint32_t shift, mask, count;
    const gp_exact_site_t *_Atomic slots[];
} gp_exact_sites_t;

extern gp_exact_sites_t *_Atomic gp_exact_sites __attribute__((visibility("hidden")));

static inline uint32_t gp_exact_site_slot(const gp_exact_sites_t *sites, uintptr_t address, uintptr_t pc)
{
    return (uint32_t)(((pc + address * 2) * 0x9e3779b97f4a7c15ull) >> sites->shift);
}

// Is it the site of the report by `address` at `pc`?
static inline bool gp_exact_site_is(const gp_exact_site_t *site, uintptr_t address, uintptr_t pc)
{
    return __atomic_load_n(&site->pc, __ATOMIC_RELAXED) == pc && site->address == address;
}

// A site seen before, or NULL. Threads: any. Signals: safe. Cost: ~2 ns.
static inline const gp_exact_site_t *gp_exact_site_find(uintptr_t address, uintptr_t pc)
{
    // Acquire: partner of the releases in exact_site.c.
    const gp_exact_sites_t *sites = atomic_load_explicit(&gp_exact_sites, memory_order_acquire);
    if (sites == NULL)
        return NULL;
    for (uint32_t slot = gp_exact_site_slot(sites, address, pc);; slot = (slot + 1) & sites->mask) {
        const gp_exact_site_t *site = atomic_load_explicit(&sites->slots[slot], memory_order_acquire);
        if (site == NULL || gp_exact_site_is(site, address, pc))
            return site;
    }
}

// Make one. `manual`: prof_enter(), not a compiler's hook. NULL when memory is short, or the table is full. Takes the
// lock. Signals: safe. Cost: ~2 us and 3 KiB of stack.
const gp_exact_site_t *gp_exact_site_add(uintptr_t address, uintptr_t pc, bool manual);

// The site of a function of a language runtime, met as `object`: `number` as from gp_functions_number(), `line` its
// first line. NULL when memory is short. Caller holds the drain lock.
const gp_exact_site_t *gp_exact_site_of_language(uint32_t number, uint32_t line, const void *object);

// `object` is no more: the next object may come to its address. Caller holds the language's lock.
void gp_exact_site_forget(const gp_exact_site_t *site, const void *object);

// Fill in what the unwind tables say of the site's frame (exact_frame.c). Signals: safe.
void gp_exact_site_read_frame(gp_exact_site_t *site, bool manual);

// A function by number (1, 2, ...).
gp_exact_function_t *gp_exact_function(uint32_t number);

// Look up where functions are that are new. Caller holds the drain lock, which guards gp_exact_function_t.loc.
void gp_exact_functions_locate(void);

// Sites in modules that are gone are forgotten, new functions are looked up.
extern const gp_sink_t gp_exact_sink;
