// SPDX-License-Identifier: MIT
// The truth for exact mode, kept by the program itself the plain way: a stack of numbers for every coroutine, and
// tables [caller][callee] for every profile over it. Nothing here is instrumented.
#ifndef TRUTH_H
#define TRUTH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PLAIN __attribute__((no_instrument_function))

enum {
    FUNCTIONS = 24,
    NO_CALLER = FUNCTIONS, // as a caller
    DEPTH_MAX = 4096,
    TABLES_MAX = 16, // profiles at a time
};

typedef struct truth_count {
    unsigned long calls, nested, same_edge;
} truth_count_t;

typedef struct truth_table {
    truth_count_t edges[FUNCTIONS + 1][FUNCTIONS];
} truth_table_t;

typedef struct truth_stack { // of one coroutine
    int depth;
    uint8_t functions[DEPTH_MAX];
    truth_table_t *tables[TABLES_MAX]; // of profiles that cover it
    int base[TABLES_MAX];              // depth at which each came
} truth_stack_t;

PLAIN static inline int truth_caller(const truth_stack_t *stack, int at, int base)
{
    return at > base ? (int)stack->functions[at - 1] : (int)NO_CALLER;
}

PLAIN static inline void truth_count_call(const truth_stack_t *stack, truth_table_t *table, int base, int function)
{
    int caller = truth_caller(stack, stack->depth, base);
    bool nested = false, same_edge = false;
    for (int i = base; i < stack->depth; i++) {
        nested |= stack->functions[i] == function;
        same_edge |= stack->functions[i] == function && truth_caller(stack, i, base) == caller;
    }
    truth_count_t *count = &table->edges[caller][function];
    count->calls++;
    count->nested += nested;
    count->same_edge += same_edge;
}

PLAIN static inline void truth_enter(truth_stack_t *stack, int function)
{
    for (int i = 0; i < TABLES_MAX; i++)
        if (stack->tables[i] != NULL)
            truth_count_call(stack, stack->tables[i], stack->base[i], function);
    if (stack->depth == DEPTH_MAX)
        abort();
    stack->functions[stack->depth++] = (uint8_t)function;
}

// Frames from `depth` on are gone: returned from, or jumped out of.
PLAIN static inline void truth_leave(truth_stack_t *stack, int depth)
{
    stack->depth = depth;
    for (int i = 0; i < TABLES_MAX; i++)
        if (stack->base[i] > depth)
            stack->base[i] = depth;
}

PLAIN static inline void truth_cover(truth_stack_t *stack, int slot, truth_table_t *table)
{
    stack->tables[slot] = table;
    stack->base[slot] = stack->depth;
}

// A line of JSON: the profile's file and [caller, callee, calls, nested, same edge]...
PLAIN static inline void truth_print(FILE *out, const char *file, const truth_table_t *table)
{
    const char *comma = "";
    fprintf(out, "{\"file\": \"%s\", \"edges\": [", file);
    for (int caller = 0; caller <= NO_CALLER; caller++) {
        for (int callee = 0; callee < FUNCTIONS; callee++) {
            const truth_count_t *count = &table->edges[caller][callee];
            if (count->calls == 0)
                continue;
            fprintf(out, "%s[%d, %d, %lu, %lu, %lu]", comma, caller, callee, count->calls, count->nested,
                    count->same_edge);
            comma = ", ";
        }
    }
    fprintf(out, "]}\n");
}

#endif
