// SPDX-License-Identifier: MIT
#include "coro/hook_cost.h"
#include "coro/switch.h"
#include "greenlet/greenlet_run.h"
#include "interpreter/frame_walk.h"

// For a census, which looks at this thread from outside.
static void greenlet_step_set_base(uintptr_t base)
{
    if (gp_thread_self == NULL)
        return;
    atomic_store_explicit(&gp_thread_self->language.state, (uintptr_t)gp_cpython_runtime.thread_state(),
                          memory_order_relaxed);
    atomic_store_explicit(&gp_thread_self->language.base, base, memory_order_relaxed);
}

void gp_step_begin(gp_task_step_t *outer, const gp_greenlet_t *record, uintptr_t waiting)
{
    gp_park_t park = {
        .sp = (uintptr_t)__builtin_frame_address(0)}; // no place to go on: a stepping task is walked from its frames
    bool sampling = __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) != 0;
    uint64_t begun = sampling ? gp_hook_cost_begin() : 0;
    *outer = gp_step_here;
    gp_step_here = (gp_task_step_t){
        .task = record->object,
        .greenlet = gp_greenlet_current(),
        .base = gp_cpython_leaf(),
        .coro = record->coro,
        .coro_id = record->coro_id,
        .waiting = waiting,
    };
    atomic_signal_fence(memory_order_seq_cst);
    if (sampling)
        gp_switch_to(gp_step_here.coro, gp_step_here.coro_id, &park);
    atomic_signal_fence(memory_order_seq_cst);
    gp_step_here.waiting = 0;
    greenlet_step_set_base(gp_step_here.base);
    gp_hook_cost_end(begun, 1);
}

void gp_step_rebase(uintptr_t base)
{
    gp_step_here.base = base;
    greenlet_step_set_base(base);
}

void gp_step_end(const gp_task_step_t *outer)
{
    gp_park_t park = {.sp = (uintptr_t)__builtin_frame_address(0)};
    bool sampling = __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) != 0;
    uint64_t begun = sampling ? gp_hook_cost_begin() : 0;
    gp_greenlet_t next = gp_greenlet_running(outer);
    if (sampling)
        gp_switch_to(next.coro, next.coro_id, &park);
    atomic_signal_fence(memory_order_seq_cst);
    gp_step_here = *outer;
    greenlet_step_set_base(outer->base);
    gp_hook_cost_end(begun, 1);
}
