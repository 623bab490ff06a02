// SPDX-License-Identifier: MIT
#include "profile/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t slot_of(const gp_call_tree_t *tree, uint32_t parent, gp_loc_t loc)
{
    uint64_t hash = (loc ^ ((uint64_t)parent << 32 | parent)) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 32) & tree->slot_mask;
}

static void place(gp_call_tree_t *tree, uint32_t node)
{
    uint32_t slot = slot_of(tree, tree->nodes[node].parent, tree->nodes[node].loc);
    while (tree->slots[slot] != 0)
        slot = (slot + 1) & tree->slot_mask;
    tree->slots[slot] = node;
}

static int grow(gp_call_tree_t *tree)
{
    uint32_t room = tree->room > 0 ? tree->room * 2 : 64;
    gp_snapshot_node_t *nodes = realloc(tree->nodes, room * sizeof(*nodes));
    if (nodes == NULL)
        return -ENOMEM;
    tree->nodes = nodes;
    uint32_t *slots = calloc((size_t)room * 2, sizeof(*slots)); // at most half full
    if (slots == NULL)
        return -ENOMEM;
    free(tree->slots);
    tree->slots = slots;
    tree->slot_mask = room * 2 - 1;
    tree->room = room;
    if (tree->count == 0) {
        memset(&tree->nodes[0], 0, sizeof(tree->nodes[0]));
        tree->count = 1;
    }
    for (uint32_t node = 1; node < tree->count; node++)
        place(tree, node);
    return 0;
}

// The child of `parent` at `loc`, made if need be; 0 when memory is short.
static uint32_t child(gp_call_tree_t *tree, uint32_t parent, gp_loc_t loc)
{
    uint32_t slot = slot_of(tree, parent, loc);
    for (uint32_t node; (node = tree->slots[slot]) != 0; slot = (slot + 1) & tree->slot_mask)
        if (tree->nodes[node].parent == parent && tree->nodes[node].loc == loc)
            return node;
    if (tree->count == tree->room && grow(tree) != 0)
        return 0;
    uint32_t node = tree->count++;
    tree->nodes[node] = (gp_snapshot_node_t){.loc = loc, .parent = parent};
    place(tree, node);
    return node;
}

int gp_call_tree_add(gp_call_tree_t *tree, const gp_loc_t *stack, size_t depth, uint64_t weight_ns)
{
    if (tree->count == 0 && grow(tree) != 0)
        return -ENOMEM;
    uint32_t node = 0;
    for (size_t i = depth; i-- > 0;) {
        node = child(tree, node, stack[i]);
        if (node == 0)
            return -ENOMEM;
    }
    tree->nodes[node].weight_ns += weight_ns;
    tree->nodes[node].samples++;
    return 0;
}

void gp_call_tree_free(gp_call_tree_t *tree)
{
    free(tree->nodes);
    free(tree->slots);
    memset(tree, 0, sizeof(*tree));
}
