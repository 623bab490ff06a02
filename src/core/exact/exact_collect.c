// SPDX-License-Identifier: MIT
#include "exact/exact_collect.h"

#include <errno.h>
#include <stdlib.h>

#include "exact/exact_memory.h"
#include "signal/ledger_edges.h"

// The thread that runs `coro` now, or NULL: it is parked.
static gp_thread_t *exact_collect_runner_of(const prof_coro_t *coro, uint64_t id)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE &&
            atomic_load_explicit(&thread->current, memory_order_relaxed) == coro &&
            atomic_load_explicit(&thread->current_id, memory_order_relaxed) == id)
            return thread;
    return NULL;
}

static bool exact_collect_is_current(gp_thread_t *thread, const gp_exact_stack_t *stack)
{
    return thread != NULL && atomic_load_explicit(&thread->current, memory_order_relaxed) == stack->coro &&
           atomic_load_explicit(&thread->current_id, memory_order_relaxed) == stack->coro_id;
}

// The coroutine's clocks: now, or when it was last heard of if it is over.
static void exact_collect_read_clocks(const gp_exact_stack_t *stack, uint64_t now, uint64_t *ticks, uint64_t *cpu_ns)
{
    *ticks = stack->last_ticks;
    *cpu_ns = gp_exact_stack_cpu_ns(stack);
    if (atomic_load_explicit(&stack->coro->id, memory_order_acquire) != stack->coro_id)
        return;
    gp_thread_t *thread = exact_collect_is_current(stack->thread, stack)
                              ? stack->thread
                              : exact_collect_runner_of(stack->coro, stack->coro_id);
    uint64_t account_ns =
        thread != NULL ? gp_ledger_edge_cpu_ns(stack->coro, now) : gp_ledger_edge_settled_cpu_ns(stack->coro);
    *ticks = now;
    *cpu_ns = account_ns;
}

// Charge the call that runs, as far as `link` counts it: its node's twin.
static void exact_collect_end_now(const gp_exact_stack_t *stack, const gp_exact_link_t *link, uint64_t now)
{
    uint64_t ticks, cpu_ns;
    uint32_t depth = gp_exact_depth(stack);
    gp_exact_node_t *node = depth >= link->base ? *gp_exact_node_at(stack, link, depth) : NULL;
    if (node == NULL || node->twin == NULL)
        return;
    exact_collect_read_clocks(stack, now, &ticks, &cpu_ns);
    gp_exact_span_t span = gp_exact_stack_span(stack, ticks, cpu_ns);
    gp_exact_charge(node->twin, &span);
}

void gp_exact_sum_run(gp_exact_tree_t *to, const gp_exact_t *recorder, uint64_t run)
{
    uint64_t now = gp_ticks();
    bool complete = true;
    for (gp_exact_tree_t *tree = recorder->trees; tree != NULL; tree = tree->next)
        complete = gp_exact_tree_sum(to, tree) && complete;
    if (!complete)
        gp_exact_lose();
    for (const gp_exact_stack_t *stack = gp_exact_stacks; stack != NULL; stack = stack->older)
        for (uint32_t i = 0; i < stack->link_count; i++)
            if (stack->links[i].recorder == recorder && stack->links[i].run == run)
                exact_collect_end_now(stack, &stack->links[i], now);
}

void gp_exact_forget_others(void)
{
    for (gp_exact_stack_t *stack = gp_exact_stacks; stack != NULL; stack = stack->older)
        if (stack->thread != NULL && stack->thread != gp_thread_self && exact_collect_is_current(stack->thread, stack))
            stack->coro_id = 0; // begun anew if it is used
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        atomic_store_explicit(&thread->exact.stack, NULL, memory_order_relaxed);
        atomic_store_explicit(&thread->exact.busy, NULL, memory_order_relaxed);
        atomic_store_explicit(&thread->exact_ready, NULL, memory_order_relaxed);
    }
}

static uint64_t exact_collect_wait_ns(const gp_exact_node_t *node)
{
    uint64_t ns = gp_ticks_to_ns(node->own_ticks), cpu_ns = gp_exact_node_cpu_ns(node);
    return ns > cpu_ns ? ns - cpu_ns : 0;
}

// Functions without a location are greenprof's own: what they called was called by their callers.
static int exact_collect_to_paths(const gp_exact_tree_t *tree, gp_exact_path_t **paths, size_t *count)
{
    uint32_t *numbers = calloc((size_t)tree->count + 1, sizeof(*numbers)); // of nodes' paths
    *paths = calloc((size_t)tree->count + 1, sizeof(**paths));
    *count = 1;
    if (*paths == NULL || numbers == NULL) {
        free(numbers);
        free(*paths);
        *paths = NULL;
        return -ENOMEM;
    }
    gp_exact_functions_locate();
    for (const gp_exact_chunk_t *chunk = tree->chunks; chunk != NULL; chunk = chunk->next) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            const gp_exact_node_t *node = &chunk->nodes[i];
            uint32_t function = node->function, parent = numbers[node->parent->number];
            gp_loc_t loc = gp_exact_function(function)->loc;
            numbers[node->number] = loc != 0 ? (uint32_t)*count : parent;
            if (loc != 0)
                (*paths)[(*count)++] = (gp_exact_path_t){
                    loc, parent, function, node->calls, gp_exact_node_cpu_ns(node), exact_collect_wait_ns(node)};
        }
    }
    free(numbers);
    return 0;
}

int gp_exact_collect(gp_exact_t *recorder, gp_exact_path_t **paths, size_t *count)
{
    gp_exact_guard_t guard;
    *paths = NULL;
    gp_exact_lock(&guard);
    gp_exact_tree_t *tree = gp_exact_tree_new(NULL);
    bool complete = tree != NULL && gp_exact_tree_sum(tree, recorder->total);
    if (complete && (recorder->run & 1))
        gp_exact_sum_run(tree, recorder, recorder->run);
    gp_exact_unlock(&guard);
    int error = complete ? exact_collect_to_paths(tree, paths, count) : -ENOMEM;
    gp_exact_lock(&guard);
    gp_exact_tree_free(tree);
    gp_exact_unlock(&guard);
    return error;
}

uint64_t gp_exact_language_ns(gp_exact_t *recorder)
{
    gp_exact_path_t *paths;
    size_t count;
    uint64_t sum = 0;
    bool has_language = false;
    if (gp_exact_collect(recorder, &paths, &count) != 0)
        return 0;
    for (size_t i = 1; i < count; i++) {
        sum += paths[i].own_cpu_ns;
        has_language |= GP_LOC_MODULE(paths[i].loc) == GP_MODULE_LANGUAGE;
    }
    free(paths);
    return has_language ? sum : 0;
}
