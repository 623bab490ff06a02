// SPDX-License-Identifier: MIT
// A scope: the link between a coroutine and the request profiles that cover it.
//
// Scopes form a tree: prof_start() on a coroutine puts a new scope, child of the one it had, on top. A coroutine points
// to its innermost scope and thereby belongs to all profiles up to the root. Scopes live in a type-stable table; a slot
// is reused only after the collector drained the samples that name it.
#ifndef GP_SIGNAL_SCOPE_RECORD_H
#define GP_SIGNAL_SCOPE_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

#include "signal/coro_record.h"

struct gp_scope {
    uint32_t index; // slot in the scope table, constant; 0 is never used
    // Everything below: under the registry's lock (src/core/coro/scope.c).
    struct gp_scope *parent;
    struct gp_scope *first_child, *next_sibling, *prev_sibling;
    struct prof *profile;      // NULL once the profile is freed
    struct prof_coro *members; // coroutines of which it is the innermost scope
    gp_ledger_t ledger;        // of coroutines that left it, and of descendants that are gone
    uint32_t references;       // coroutines, children, the profile
    struct gp_scope *next_in_profile, *next_free;
};

#endif
