// SPDX-License-Identifier: MIT
#include "exact/exact_collect.h"

#include <errno.h>
#include <stdlib.h>

#include "exact/exact_memory.h"
#include "signal/edge.h"

// The thread that runs `coro` now, or NULL: it is parked.
static gp_thread_t *runner_of(const prof_coro_t *coro, uint64_t id)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE &&
            atomic_load_explicit(&thread->current, memory_order_relaxed) == coro &&
            atomic_load_explicit(&thread->current_id, memory_order_relaxed) == id)
            return thread;
    return NULL;
}

static bool is_current(gp_thread_t *thread, const gp_exact_stack_t *stack)
{
    return thread != NULL && atomic_load_explicit(&thread->current, memory_order_relaxed) == stack->coro &&
           atomic_load_explicit(&thread->current_id, memory_order_relaxed) == stack->coro_id;
}

// The coroutine's clocks: now, or when it was last heard of if it is over.
static void read_clocks(const gp_exact_stack_t *stack, uint64_t now, uint64_t *ticks, uint64_t *cpu_ns)
{
    *ticks = stack->last_ticks;
    *cpu_ns = stack->last_cpu_ns;
    if (atomic_load_explicit(&stack->coro->id, memory_order_acquire) != stack->coro_id)
        return;
    gp_thread_t *thread = is_current(stack->thread, stack) ? stack->thread : runner_of(stack->coro, stack->coro_id);
    uint64_t account_ns = thread != NULL ? gp_edge_cpu_ns(stack->coro, now) : gp_edge_settled_cpu_ns(stack->coro);
    *ticks = now;
    if (account_ns > *cpu_ns)
        *cpu_ns = account_ns;
}

static void sum_link(gp_exact_table_t *to, const gp_exact_stack_t *stack, const gp_exact_link_t *link, uint64_t now)
{
    uint64_t ticks, cpu_ns, called_ticks = 0, called_cpu_ns = 0;
    read_clocks(stack, now, &ticks, &cpu_ns);
    for (uint32_t index = __atomic_load_n(&stack->depth, __ATOMIC_ACQUIRE); index >= link->base; index--) {
        const gp_exact_frame_t *frame = &stack->frames[index];
        gp_exact_share_t share = gp_exact_frame_share(frame, ticks, cpu_ns, frame->called_ticks + called_ticks,
                                                      frame->called_cpu_ns + called_cpu_ns);
        gp_exact_record_t *record = gp_exact_table_get(to, gp_exact_frame_key(stack->frames, index, link->base));
        if (record != NULL)
            gp_exact_charge(record, frame, link->base, &share);
        called_ticks = share.ticks;
        called_cpu_ns = share.cpu_ns;
    }
}

void gp_exact_sum_run(gp_exact_table_t *to, const gp_exact_t *recorder, uint64_t run)
{
    uint64_t now = gp_ticks();
    bool complete = true;
    for (const gp_exact_table_t *table = recorder->tables; table != NULL; table = table->next)
        complete = gp_exact_table_sum(to, table) && complete;
    if (!complete)
        gp_exact_lose();
    for (const gp_exact_stack_t *stack = gp_exact_stacks; stack != NULL; stack = stack->next) {
        for (uint32_t i = 0; i < stack->link_count && stack->depth > 0; i++)
            if (stack->links[i].recorder == recorder && stack->links[i].run == run)
                sum_link(to, stack, &stack->links[i], now);
    }
}

void gp_exact_forget_others(void)
{
    for (gp_exact_stack_t *stack = gp_exact_stacks; stack != NULL; stack = stack->next)
        if (stack->thread != NULL && stack->thread != gp_thread_self && is_current(stack->thread, stack))
            stack->coro_id = 0;
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        atomic_store_explicit(&thread->exact_busy, NULL, memory_order_relaxed);
}

static uint64_t wait_ns(uint64_t ticks, uint64_t cpu_ns)
{
    uint64_t ns = gp_ticks_to_ns(ticks);
    return ns > cpu_ns ? ns - cpu_ns : 0;
}

static gp_call_count_t to_call(const gp_exact_record_t *record)
{
    uint32_t caller = GP_EXACT_CALLER(record->key), callee = GP_EXACT_CALLEE(record->key);
    return (gp_call_count_t){
        .caller = caller,
        .callee = callee,
        .caller_loc = caller != 0 ? gp_exact_function(caller)->loc : 0,
        .callee_loc = gp_exact_function(callee)->loc,
        .calls = record->calls,
        .nested_calls = record->nested,
        .same_edge_calls = record->same_edge,
        .own_cpu_ns = record->own_cpu_ns,
        .own_wait_ns = wait_ns(record->own_ticks, record->own_cpu_ns),
        .cpu_ns = record->cpu_ns,
        .wait_ns = wait_ns(record->ticks, record->cpu_ns),
        .nested_cpu_ns = record->edge_cpu_ns,
        .nested_wait_ns = wait_ns(record->edge_ticks, record->edge_cpu_ns),
    };
}

static int to_calls(const gp_exact_table_t *table, gp_call_count_t **calls, size_t *count)
{
    *count = 0;
    *calls = calloc(table->count > 0 ? table->count : 1, sizeof(**calls));
    if (*calls == NULL)
        return -ENOMEM;
    gp_exact_functions_locate();
    for (const gp_exact_chunk_t *chunk = table->chunks; chunk != NULL; chunk = chunk->next) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            gp_call_count_t call = to_call(&chunk->records[i]);
            if (call.callee_loc != 0) // greenprof's own
                (*calls)[(*count)++] = call;
        }
    }
    return 0;
}

int gp_exact_collect(gp_exact_t *recorder, gp_call_count_t **calls, size_t *count)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    gp_exact_table_t *table = gp_exact_table_new(NULL);
    bool complete = table != NULL && gp_exact_table_sum(table, recorder->total);
    if (complete && (recorder->run & 1))
        gp_exact_sum_run(table, recorder, recorder->run);
    gp_exact_unlock(&guard);
    int error = complete ? to_calls(table, calls, count) : -ENOMEM;
    gp_exact_lock(&guard);
    gp_exact_table_free(table);
    gp_exact_unlock(&guard);
    return error;
}
