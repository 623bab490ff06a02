// Scopes of request profiles; see signal/scope.h for the model. Everything here: caller holds gp_registry_lock, except
// where said.
#ifndef GP_CORO_SCOPE_H
#define GP_CORO_SCOPE_H

#include "signal/coro_record.h"
#include "signal/scope.h"

struct prof;

// Put a new scope of `profile` on top of what `coro` has. Returns NULL when memory is short.
gp_scope_t *gp_scope_push(prof_coro_t *coro, struct prof *profile);

// Does `coro` belong to a scope of `profile`?
int gp_scope_covers(prof_coro_t *coro, const struct prof *profile);

// Take scopes off the top of `coro` as long as `is_over` says that their profile does not run.
void gp_scope_pop(prof_coro_t *coro, int (*is_over)(const struct prof *profile));

void gp_scope_ref(gp_scope_t *scope);   // NULL is accepted
void gp_scope_unref(gp_scope_t *scope); // NULL is accepted

// Time charged to a scope and everything below it, ns.
uint64_t gp_scope_total_ns(const gp_scope_t *scope);

// Is `inner` the scope `outer` or below it?
int gp_scope_is_within(const gp_scope_t *inner, const gp_scope_t *outer);

// The scope in slot `index`, NULL for 0. Collector, without the lock: slots are type-stable.
gp_scope_t *gp_scope_at(uint32_t index);

// Let slots that became free be reused: after every ring has been drained. Takes the lock itself. Collector only.
void gp_scope_recycle(void);

#endif
