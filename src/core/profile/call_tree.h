// SPDX-License-Identifier: MIT
// A call tree: stacks merged by common callers, with the weight of the samples that ended in each node.
//
// Memory is bounded: a tree with GP_CALL_TREE_PATHS_MAX nodes has no room for new paths, as of a profile that never
// stops, or of code compiled anew all the time. A sample on one then stands in "[tree full]" below the nearest of its
// callers that is there, and is counted in `crowded`: no time is lost. Not thread-safe: a profile's tree is guarded by
// the drain lock.
#pragma once

#include <stddef.h>

#include "model/snapshot.h"

typedef struct gp_call_tree {
    gp_snapshot_node_t *nodes; // node 0 is the root; parents before children
    uint32_t count, room;
    uint32_t *slots; // open addressing by (parent, loc): node index, 0 = empty
    uint32_t slot_mask;
    uint64_t crowded; // samples on paths that there was no room for
} gp_call_tree_t;

// Nodes of paths at most, and of all, with those of "[tree full]" and of what the time was: 28 MiB, index included.
enum { GP_CALL_TREE_PATHS_MAX = 1 << 19, GP_CALL_TREE_NODES_MAX = GP_CALL_TREE_PATHS_MAX + (1 << 17) };

// Add a sample. stack: gp_loc_t[depth], innermost first. Returns 0 or -ENOMEM: the tree is then as before, except that
// nodes without weight may have been added.
int gp_call_tree_add(gp_call_tree_t *tree, const gp_loc_t *stack, size_t depth, uint64_t weight_ns);

void gp_call_tree_free(gp_call_tree_t *tree);
