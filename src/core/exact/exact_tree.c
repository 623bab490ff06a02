// SPDX-License-Identifier: MIT
#include "exact/exact_tree.h"

#include "exact/exact_memory.h"

gp_exact_node_t gp_exact_no_node = {.last = &gp_exact_no_node, .next = &gp_exact_no_node, .site = &gp_exact_no_site};

static size_t exact_tree_index_bytes(uint32_t slots)
{
    return sizeof(gp_exact_index_t) + (size_t)slots * sizeof(gp_exact_node_t *);
}

static gp_exact_index_t *exact_tree_new_index(uint32_t slots)
{
    gp_exact_index_t *index = gp_exact_alloc(exact_tree_index_bytes(slots));
    if (index != NULL) {
        index->shift = 64 - (uint32_t)__builtin_ctz(slots);
        index->mask = slots - 1;
    }
    return index;
}

static void exact_tree_place(gp_exact_index_t *index, gp_exact_node_t *node)
{
    uint32_t slot = gp_exact_slot(index, node->parent->number, node->function);
    while (index->slots[slot] != NULL)
        slot = (slot + 1) & index->mask;
    index->slots[slot] = node;
}

gp_exact_tree_t *gp_exact_tree_new(gp_thread_t *thread)
{
    gp_exact_tree_t *tree = gp_exact_alloc(sizeof(*tree));
    gp_exact_index_t *index = tree != NULL ? exact_tree_new_index(GP_EXACT_FIRST_SLOTS) : NULL;
    if (index == NULL) {
        gp_exact_release(tree, sizeof(*tree));
        return NULL;
    }
    tree->thread = thread;
    tree->index = index;
    tree->root.last = &gp_exact_no_node;
    tree->root.site = &gp_exact_no_site;
    return tree;
}

void gp_exact_tree_free(gp_exact_tree_t *tree)
{
    if (tree == NULL)
        return;
    for (gp_exact_index_t *index = tree->index; index != NULL;) {
        gp_exact_index_t *older = index->older;
        gp_exact_release(index, exact_tree_index_bytes(index->mask + 1));
        index = older;
    }
    for (gp_exact_chunk_t *chunk = tree->chunks; chunk != NULL;) {
        gp_exact_chunk_t *next = chunk->next;
        gp_exact_release(chunk, sizeof(*chunk));
        chunk = next;
    }
    gp_exact_release(tree, sizeof(*tree));
}

static bool exact_tree_grow_index(gp_exact_tree_t *tree)
{
    gp_exact_index_t *old = tree->index, *index = exact_tree_new_index((old->mask + 1) * 2);
    if (index == NULL)
        return false;
    for (uint32_t slot = 0; slot <= old->mask; slot++)
        if (old->slots[slot] != NULL)
            exact_tree_place(index, old->slots[slot]);
    index->older = old;
    tree->index = index;
    return true;
}

static gp_exact_node_t *exact_tree_new_node(gp_exact_tree_t *tree)
{
    gp_exact_chunk_t *chunk = tree->last_chunk;
    if (chunk == NULL || chunk->count == GP_EXACT_CHUNK) {
        gp_exact_chunk_t **link = chunk != NULL ? &chunk->next : &tree->chunks;
        chunk = gp_exact_alloc(sizeof(*chunk));
        if (chunk == NULL)
            return NULL;
        *link = tree->last_chunk = chunk;
    }
    gp_exact_node_t *node = &chunk->nodes[chunk->count++];
    node->number = ++tree->count;
    node->last = &gp_exact_no_node;
    node->site = &gp_exact_no_site;
    return node;
}

static void exact_tree_join(gp_exact_node_t *parent, gp_exact_node_t *node)
{
    gp_exact_node_t *last = parent->last;
    bool is_first = last == &gp_exact_no_node;
    node->parent = parent;
    node->next = is_first ? node : last->next;
    if (!is_first)
        last->next = node;
    parent->last = node;
}

gp_exact_node_t *gp_exact_tree_get(gp_exact_tree_t *tree, gp_exact_node_t *parent, uint32_t function)
{
    gp_exact_node_t *node = gp_exact_find(tree, parent, function);
    if (node != NULL)
        return node;
    if (tree->count >= GP_EXACT_NODES_MAX && parent != &tree->root)
        return gp_exact_tree_get(tree, &tree->root, function);
    if (tree->count >= (tree->index->mask + 1) / 2 && !exact_tree_grow_index(tree))
        return NULL;
    node = exact_tree_new_node(tree);
    if (node == NULL)
        return NULL;
    node->function = function;
    exact_tree_join(parent, node);
    exact_tree_place(tree->index, node);
    return node;
}

bool gp_exact_tree_sum(gp_exact_tree_t *to, gp_exact_tree_t *from)
{
    bool complete = true;
    from->root.twin = &to->root;
    for (gp_exact_chunk_t *chunk = from->chunks; chunk != NULL; chunk = chunk->next) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            gp_exact_node_t *node = &chunk->nodes[i], *parent = node->parent->twin, *twin = NULL;
            if (parent != NULL)
                twin = gp_exact_tree_get(to, parent, node->function);
            node->twin = twin;
            complete = complete && twin != NULL;
            if (twin == NULL)
                continue;
            twin->calls += __atomic_load_n(&node->calls, __ATOMIC_RELAXED);
            twin->own_ticks += __atomic_load_n(&node->own_ticks, __ATOMIC_RELAXED);
            twin->off_ns += __atomic_load_n(&node->off_ns, __ATOMIC_RELAXED);
        }
    }
    return complete;
}
