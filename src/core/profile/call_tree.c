// SPDX-License-Identifier: MIT
#include "profile/call_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RESERVED = 8 }; // for the root's "[tree full]", and below it what else than running took the time

static uint32_t call_tree_slot_of(const gp_call_tree_t *tree, uint32_t parent, gp_loc_t loc)
{
    uint64_t hash = (loc ^ ((uint64_t)parent << 32 | parent)) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(hash >> 32) & tree->slot_mask;
}

static void call_tree_place(gp_call_tree_t *tree, uint32_t node)
{
    uint32_t slot = call_tree_slot_of(tree, tree->nodes[node].parent, tree->nodes[node].loc);
    while (tree->slots[slot] != 0)
        slot = (slot + 1) & tree->slot_mask;
    tree->slots[slot] = node;
}

static int call_tree_grow(gp_call_tree_t *tree)
{
    uint32_t room = tree->room > 0 ? tree->room * 2 : 64;
    room = room < GP_CALL_TREE_NODES_MAX ? room : GP_CALL_TREE_NODES_MAX;
    uint32_t slot_count = 128;
    while (slot_count < room * 2) // at most half full
        slot_count *= 2;
    gp_snapshot_node_t *nodes = realloc(tree->nodes, room * sizeof(*nodes));
    if (nodes == NULL)
        return -ENOMEM;
    tree->nodes = nodes;
    uint32_t *slots = calloc(slot_count, sizeof(*slots));
    if (slots == NULL)
        return -ENOMEM;
    free(tree->slots);
    tree->slots = slots;
    tree->slot_mask = slot_count - 1;
    tree->room = room;
    if (tree->count == 0) {
        memset(&tree->nodes[0], 0, sizeof(tree->nodes[0]));
        tree->count = 1;
    }
    for (uint32_t node = 1; node < tree->count; node++)
        call_tree_place(tree, node);
    return 0;
}

static uint32_t call_tree_find(const gp_call_tree_t *tree, uint32_t parent, gp_loc_t loc)
{
    uint32_t slot = call_tree_slot_of(tree, parent, loc);
    for (uint32_t node; (node = tree->slots[slot]) != 0; slot = (slot + 1) & tree->slot_mask)
        if (tree->nodes[node].parent == parent && tree->nodes[node].loc == loc)
            return node;
    return 0;
}

// The child of `parent` at `loc`, made where there are fewer than `limit` nodes; else, or where memory is short, 0.
static uint32_t call_tree_child(gp_call_tree_t *tree, uint32_t parent, gp_loc_t loc, uint32_t limit)
{
    uint32_t node = call_tree_find(tree, parent, loc);
    if (node != 0 || tree->count >= limit || (tree->count == tree->room && call_tree_grow(tree) != 0))
        return node;
    node = tree->count++;
    tree->nodes[node] = (gp_snapshot_node_t){.loc = loc, .parent = parent};
    call_tree_place(tree, node);
    return node;
}

// "[tree full]" below `parent`; where there is no room for that either, below the root.
static uint32_t call_tree_crowded_child(gp_call_tree_t *tree, uint32_t parent)
{
    const gp_loc_t full = GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_TREE_FULL);
    uint32_t node = call_tree_child(tree, parent, full, GP_CALL_TREE_NODES_MAX - RESERVED);
    return node != 0 ? node : call_tree_child(tree, 0, full, GP_CALL_TREE_NODES_MAX);
}

// Kinds of time other than running are told apart there, too.
static uint32_t call_tree_crowded_leaf(gp_call_tree_t *tree, uint32_t parent, gp_loc_t leaf)
{
    uint32_t full = call_tree_crowded_child(tree, parent);
    bool is_told = leaf == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_GIL) ||
                   leaf == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_LOCK) ||
                   (GP_LOC_MODULE(leaf) == GP_MODULE_PSEUDO && GP_LOC_OFFSET(leaf) >= GP_PSEUDO_PARKED &&
                    GP_LOC_OFFSET(leaf) <= GP_PSEUDO_BLOCKED);
    if (full == 0 || !is_told)
        return full;
    uint32_t node = call_tree_child(tree, full, leaf, GP_CALL_TREE_NODES_MAX - RESERVED);
    if (node != 0)
        return node;
    full = call_tree_child(tree, 0, GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_TREE_FULL), GP_CALL_TREE_NODES_MAX);
    return full != 0 ? call_tree_child(tree, full, leaf, GP_CALL_TREE_NODES_MAX) : 0;
}

int gp_call_tree_add(gp_call_tree_t *tree, const gp_loc_t *stack, size_t depth, uint64_t weight_ns)
{
    if (tree->count == 0 && call_tree_grow(tree) != 0)
        return -ENOMEM;
    uint32_t node = 0;
    bool is_crowded = false;
    for (size_t i = depth; i-- > 0 && !is_crowded;) {
        uint32_t next = call_tree_child(tree, node, stack[i], GP_CALL_TREE_PATHS_MAX);
        is_crowded = next == 0 && tree->count >= GP_CALL_TREE_PATHS_MAX;
        if (next == 0 && !is_crowded)
            return -ENOMEM;
        node = is_crowded ? call_tree_crowded_leaf(tree, node, stack[0]) : next;
        if (node == 0)
            return -ENOMEM;
    }
    tree->crowded += is_crowded;
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
