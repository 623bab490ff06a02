// SPDX-License-Identifier: MIT
// Where no stubs are made: swapcontext and setcontext as C wrappers, which will do for functions that return at most
// once a call.
#include "interpose/interpose.h"
#include "ucontext_hook.h"

typedef int swap_t(ucontext_t *, const ucontext_t *);
typedef int set_t(const ucontext_t *);

static gp_park_t ucontext_switch_park_of(const uintptr_t *frame, void *pc)
{
    return (gp_park_t){.pc = (uintptr_t)pc, .sp = (uintptr_t)frame, .fp = frame[0]};
}

PROF_API int swapcontext(ucontext_t *from, const ucontext_t *to)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED)) {
        gp_park_t park = ucontext_switch_park_of(__builtin_frame_address(0), __builtin_return_address(0));
        gp_ucontext_switch(to, &park);
    }
    return GP_ORIGINAL(swap_t, "swapcontext")(from, to);
}

PROF_API int setcontext(const ucontext_t *to)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED)) {
        gp_park_t park = ucontext_switch_park_of(__builtin_frame_address(0), __builtin_return_address(0));
        gp_ucontext_leave(to, &park);
    }
    return GP_ORIGINAL(set_t, "setcontext")(to);
}
