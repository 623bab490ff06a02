// SPDX-License-Identifier: MIT
// minicoro, where MINICORO_IMPL is in a file of its own (its switch routine has no symbol to be wrapped): a coroutine
// runs from the call of mco_resume() to its return. Its stack pointer is not known from outside, so the middle of its
// stack stands for it.
#include "minicoro/minicoro_layout.h"
#include "wrap/wrap.h"

extern int __real_mco_create(mco_coro_t **out, void *description);
extern int __real_mco_resume(mco_coro_t *coroutine);
int __wrap_mco_create(mco_coro_t **out, void *description);
int __wrap_mco_resume(mco_coro_t *coroutine);

int __wrap_mco_create(mco_coro_t **out, void *description)
{
    int result = __real_mco_create(out, description);
    if (result == 0)
        gp_wrap_announce((*out)->stack_low, (*out)->stack_bytes, (const void *)(uintptr_t)(*out)->run, NULL);
    return result;
}

int __wrap_mco_resume(mco_coro_t *coroutine)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    prof_park_t park = {.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
    if (coroutine == NULL || !__atomic_load_n(gp_wrap_active, __ATOMIC_RELAXED))
        return __real_mco_resume(coroutine);
    uintptr_t inside = (uintptr_t)coroutine->stack_low + coroutine->stack_bytes / 2;
    gp_wrap_switch(inside, &park);
    int result = __real_mco_resume(coroutine);
    if (__atomic_load_n(gp_wrap_active, __ATOMIC_RELAXED)) {
        prof_park_t left = {.sp = inside}; // where the coroutine goes on is not known
        gp_wrap_switch((uintptr_t)frame, &left);
    }
    return result;
}
