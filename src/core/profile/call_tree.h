// SPDX-License-Identifier: MIT
// A call tree: stacks merged by common callers, with the weight of the samples that ended in each node.
// Not thread-safe: a profile's tree is guarded by the drain lock.
#pragma once

#include <stddef.h>

#include "model/snapshot.h"

typedef struct gp_call_tree {
    gp_snapshot_node_t *nodes; // node 0 is the root; parents before children
    uint32_t count, room;
    uint32_t *slots; // open addressing by (parent, loc): node index, 0 = empty
    uint32_t slot_mask;
} gp_call_tree_t;

// Add a sample. stack: gp_loc_t[depth], innermost first. Returns 0 or -ENOMEM: the tree is then as before, except that
// nodes without weight may have been added.
int gp_call_tree_add(gp_call_tree_t *tree, const gp_loc_t *stack, size_t depth, uint64_t weight_ns);

void gp_call_tree_free(gp_call_tree_t *tree);
