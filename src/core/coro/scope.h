// SPDX-License-Identifier: MIT
// Scopes of request profiles; see signal/scope_record.h for the model. Everything here: caller holds gp_registry_lock,
// except where said.
#pragma once

#include "signal/coro_record.h"
#include "signal/scope_record.h"

struct prof;

// Put a new scope of `profile` on top of what `coro` has. exact: the profile's recorder of calls, or NULL.
// Returns NULL when memory is short.
gp_scope_t *gp_scope_push(prof_coro_t *coro, struct prof *profile, struct gp_exact *exact);

// The profile of a scope is freed: its reference to the scope with it.
void gp_scope_forget_profile(gp_scope_t *scope);

// Does `coro` belong to a scope of `profile`?
int gp_scope_covers(prof_coro_t *coro, const struct prof *profile);

// Take scopes off the top of `coro` as long as `is_over` says so of their profile.
void gp_scope_pop(prof_coro_t *coro, int (*is_over)(const struct prof *profile, const prof_coro_t *coro));

// A new coroutine begins in `scope`, by inheritance; or a coroutine that is over leaves its scope. NULL is accepted.
void gp_scope_inherit(prof_coro_t *coro, gp_scope_t *scope);
void gp_scope_quit(prof_coro_t *coro);

void gp_scope_ref(gp_scope_t *scope);   // NULL is accepted
void gp_scope_unref(gp_scope_t *scope); // NULL is accepted

// Add the ledger of a scope and everything below it, up to `now` (ticks). Cost: O(coroutines in it).
void gp_scope_total(gp_scope_t *scope, uint64_t now, gp_ledger_t *sum);

// The scope in slot `index`, NULL for 0. Collector, without the lock: slots are type-stable.
gp_scope_t *gp_scope_at(uint32_t index);

// Let slots that became free be reused: after every ring has been drained. Takes the lock itself. Collector only.
void gp_scope_recycle(void);
