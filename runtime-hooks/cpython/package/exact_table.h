// SPDX-License-Identifier: MIT
// What an exact profile knows of functions, and of pairs of caller and callee.
#ifndef GP_CPYTHON_EXACT_TABLE_H
#define GP_CPYTHON_EXACT_TABLE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct exact_counts {
    uint64_t calls, primitive_calls; // primitive: it was not on this stack already
    uint64_t own_ticks, total_ticks; // total: of primitive calls
} exact_counts_t;

typedef struct exact_level { // how often something is active, on the stack that was asked about last
    const void *stack;
    uint32_t depth;
} exact_level_t;

typedef struct exact_function {
    const void *key;         // code object, or definition of a built-in function
    PyObject *object;        // code object (kept alive: its address is the key), or the label of a built-in one
    bool hidden;             // greenprof's own
    struct exact_edge *last; // by which it was called last
    exact_counts_t counts;
    exact_level_t level;
} exact_function_t;

typedef struct exact_edge {
    exact_function_t *caller, *callee;
    exact_counts_t counts;
    exact_level_t level;
} exact_edge_t;

typedef struct exact_table {
    exact_function_t **functions; // open addressing by key
    size_t function_mask, function_count;
    exact_edge_t **edges; // open addressing by (caller, callee)
    size_t edge_mask, edge_count;
} exact_table_t;

// Find or add. `object` is the code object, or the built-in function. NULL when memory is short: no Python error is
// set.
exact_function_t *exact_table_function(exact_table_t *table, const void *key, PyObject *object);
exact_edge_t *exact_table_edge(exact_table_t *table, exact_function_t *caller, exact_function_t *callee);

void exact_table_free(exact_table_t *table);

#endif
