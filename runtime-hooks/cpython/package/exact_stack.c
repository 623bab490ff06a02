// SPDX-License-Identifier: MIT
#include "exact_stack.h"

#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "exact_profile.h"

enum {
    FIRST_ROOM = 32,
    TRIES = 20,             // ~0.1 us each
    ENOUGH_NS = 1000000000, // right to 1e-7 then
};

bool exact_use_counter;
static uint64_t first_ticks, first_ns;

uint64_t exact_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// The same moment by both clocks: the best of a few tries, for the thread may be preempted in between.
static void read_both(uint64_t *ticks, uint64_t *ns)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = exact_ticks(), now = exact_clock_ns(), took = exact_ticks() - before;
        if (took >= least)
            continue;
        least = took;
        *ticks = before + took / 2;
        *ns = now;
    }
}

void exact_ticks_init(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    exact_use_counter = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0; // invariant
#endif
    read_both(&first_ticks, &first_ns);
}

// Measured anew while the time to measure by is short: numbers that are read one after the other shall agree.
double exact_seconds_per_tick(void)
{
    static double seconds;
    static uint64_t measured_ns;
    uint64_t ticks = first_ticks, ns = first_ns;
    if (!exact_use_counter)
        return 1e-9;
    if (measured_ns >= ENOUGH_NS || exact_clock_ns() - first_ns < 2 * measured_ns)
        return seconds;
    read_both(&ticks, &ns);
    measured_ns = ns - first_ns;
    return seconds = ticks > first_ticks ? (double)measured_ns / (double)(ticks - first_ticks) * 1e-9 : 0;
}

// How often a function, or an edge, is active on this stack: remembered for the stack that asked last, else counted.
static uint32_t *function_depth(exact_function_t *function, const exact_stack_t *stack)
{
    if (function->level.stack != stack) {
        function->level.stack = stack;
        function->level.depth = 0;
        for (size_t i = 0; i < stack->depth; i++)
            function->level.depth += stack->entries[i].function == function;
    }
    return &function->level.depth;
}

static uint32_t *edge_depth(exact_edge_t *edge, const exact_stack_t *stack)
{
    if (edge->level.stack != stack) {
        edge->level.stack = stack;
        edge->level.depth = 0;
        for (size_t i = 0; i < stack->depth; i++)
            edge->level.depth += stack->entries[i].edge == edge;
    }
    return &edge->level.depth;
}

static void count_call(exact_counts_t *counts, uint32_t *depth)
{
    counts->calls++;
    counts->primitive_calls += *depth == 0;
    ++*depth;
}

static void count_return(exact_counts_t *counts, uint32_t *depth, uint64_t own, uint64_t total)
{
    counts->own_ticks += own;
    if (--*depth == 0)
        counts->total_ticks += total;
}

static bool make_room(exact_stack_t *stack)
{
    if (stack->depth < stack->room)
        return true;
    size_t room = stack->room > 0 ? stack->room * 2 : FIRST_ROOM;
    exact_entry_t *grown = realloc(stack->entries, room * sizeof(*grown));
    if (grown == NULL)
        return false;
    stack->entries = grown;
    stack->room = room;
    return true;
}

void exact_stack_push(exact_stack_t *stack, uint64_t now, const void *key, PyObject *object)
{
    exact_table_t *table = &stack->profile->table;
    exact_function_t *function = exact_table_function(table, key, object);
    if (function == NULL || !make_room(stack)) {
        stack->profile->lost++;
        return;
    }
    if (function->hidden)
        return; // nor will its return fit an entry
    exact_edge_t *edge = NULL;
    if (stack->depth > 0)
        edge = exact_table_edge(table, stack->entries[stack->depth - 1].function, function);
    count_call(&function->counts, function_depth(function, stack));
    if (edge != NULL)
        count_call(&edge->counts, edge_depth(edge, stack));
    stack->entries[stack->depth++] = (exact_entry_t){function, edge, now - stack->excluded, 0};
}

static void pop_one(exact_stack_t *stack, uint64_t stack_now)
{
    exact_entry_t *entry = &stack->entries[stack->depth - 1];
    uint64_t total = stack_now - entry->start, own = total - entry->below;
    uint32_t *function = function_depth(entry->function, stack), *edge = NULL;
    if (entry->edge != NULL)
        edge = edge_depth(entry->edge, stack);
    count_return(&entry->function->counts, function, own, total);
    if (edge != NULL)
        count_return(&entry->edge->counts, edge, own, total);
    if (--stack->depth > 0)
        stack->entries[stack->depth - 1].below += total;
    else
        stack->profile->total_ticks += total;
}

void exact_stack_pop(exact_stack_t *stack, uint64_t now, const void *key)
{
    size_t found = stack->depth;
    while (found > 0 && stack->entries[found - 1].function->key != key)
        found--;
    if (found == 0)
        return;
    while (stack->depth >= found)
        pop_one(stack, now - stack->excluded);
}

void exact_stack_pause(exact_stack_t *stack, uint64_t now)
{
    stack->paused_at = now;
}

void exact_stack_resume(exact_stack_t *stack, uint64_t now)
{
    if (stack->paused_at != 0)
        stack->excluded += now - stack->paused_at;
    stack->paused_at = 0;
}

void exact_stack_flush(exact_stack_t *stack, uint64_t now)
{
    uint64_t at = stack->paused_at != 0 ? stack->paused_at : now;
    while (stack->depth > 0)
        pop_one(stack, at - stack->excluded);
}
