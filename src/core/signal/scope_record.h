// SPDX-License-Identifier: MIT
// A scope: the link between a coroutine and the request profiles that cover it.
//
// Scopes form a tree: prof_start() on a coroutine puts a new scope, child of the one it had, on top. A coroutine points
// to its innermost scope and thereby belongs to all profiles up to the root. Scopes live in a type-stable table; a slot
// is reused only after the collector drained the samples that name it.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "signal/coro_record.h"

struct gp_scope {
    uint32_t index; // slot in the scope table, constant; 0 is never used
    // Everything below: under the registry's lock (src/core/coro/scope.c). The next three are also read without it, by
    // gp_scope_parent() and its like.
    struct gp_scope *parent;
    struct prof *profile;   // NULL once the profile is freed
    struct gp_exact *exact; // the profile's recorder of calls; NULL where it has none, and once it is freed
    struct gp_scope *first_child, *next_sibling, *prev_sibling;
    struct prof_coro *members; // coroutines of which it is the innermost scope
    gp_ledger_t ledger;        // of coroutines gone from it, and of descendants that are gone
    uint32_t references;       // coroutines, children, the profile
    uint32_t children;
    struct gp_scope *next_in_profile, *next_free;
};

// Without the lock. A chain from any scope in use after the collector's last round but one leads to the root: a scope
// taken out of the tree keeps its parent. Partners of the releases in src/core/coro/scope.c.
static inline gp_scope_t *gp_scope_parent(const gp_scope_t *scope)
{
    return __atomic_load_n(&scope->parent, __ATOMIC_ACQUIRE);
}

static inline struct prof *gp_scope_profile(const gp_scope_t *scope)
{
    return __atomic_load_n(&scope->profile, __ATOMIC_ACQUIRE);
}

static inline struct gp_exact *gp_scope_exact(const gp_scope_t *scope)
{
    return __atomic_load_n(&scope->exact, __ATOMIC_ACQUIRE);
}
