// SPDX-License-Identifier: MIT
// Where no stubs are made: swapcontext and setcontext as C wrappers, which will do for functions that return at most
// once a call.
#include "coro/spawn.h"
#include "interpose/interpose.h"
#include "ucontext_hook.h"

typedef int swap_t(ucontext_t *, const ucontext_t *);
typedef int set_t(const ucontext_t *);

PROF_API int swapcontext(ucontext_t *from, const ucontext_t *to)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED)) {
        gp_park_t park = gp_spawn_caller();
        gp_ucontext_switch(to, &park);
    }
    return GP_ORIGINAL(swap_t, "swapcontext")(from, to);
}

PROF_API int setcontext(const ucontext_t *to)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED)) {
        gp_park_t park = gp_spawn_caller();
        gp_ucontext_leave(to, &park);
    }
    return GP_ORIGINAL(set_t, "setcontext")(to);
}
