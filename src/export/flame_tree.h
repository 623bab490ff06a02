// SPDX-License-Identifier: MIT
// The rows of a report merged from the root: the tree that a flame graph draws.
//
// Model: a node is a function below the same callers. Children are ordered by weight, the heaviest
// first, then by name, so that equal reports give equal pictures. Node 0 is the root, "all".
// Threads: immutable after gp_flame_tree_create(). Signals: not safe.
#pragma once

#include "export/function_table.h"

#define GP_FLAME_NONE UINT32_MAX

typedef struct gp_flame_node {
    uint32_t function;                          // in the function table; GP_FLAME_NONE for the root
    uint32_t parent, first_child, next_sibling; // GP_FLAME_NONE = none
    uint32_t depth;                             // 0 for the root
    uint64_t weight_ns;                         // with everything below it
    uint64_t self_ns;
    uint64_t samples; // the same; of calls: of the function itself
} gp_flame_node_t;

typedef struct gp_flame_tree {
    gp_flame_node_t *nodes;
    uint32_t count;
    gp_function_table_t *table;
} gp_flame_tree_t;

// Returns NULL and errno. The report must outlive the tree.
gp_flame_tree_t *gp_flame_tree_create(const gp_report_t *report);

void gp_flame_tree_free(gp_flame_tree_t *tree);
