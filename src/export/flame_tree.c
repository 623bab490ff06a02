// SPDX-License-Identifier: MIT
#include "export/flame_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/memory.h"

// A smaller part of the whole than one in so many is left out, where the report comes in parts and its part ends: it
// would be narrower than anything drawn.
enum { SHARE_MIN = 20000 };

typedef struct builder {
    gp_flame_tree_t *tree;
    const gp_report_t *report;
    size_t capacity;
    gp_index_t children; // by (parent, function)
} builder_t;

static bool flame_tree_same_child(const void *owner, uint32_t number, const void *key)
{
    const gp_flame_node_t *a = &((const gp_flame_tree_t *)owner)->nodes[number], *b = key;
    return a->parent == b->parent && a->function == b->function;
}

// Find or add a node. Returns its number or GP_FLAME_NONE when memory is short.
static uint32_t flame_tree_child_of(builder_t *builder, uint32_t parent, uint32_t function)
{
    gp_flame_tree_t *tree = builder->tree;
    gp_flame_node_t key = {.parent = parent, .function = function, .first_child = GP_FLAME_NONE};
    uint64_t hash = gp_hash_u64((uint64_t)parent << 32 | function);
    uint32_t number = gp_index_find(&builder->children, hash, flame_tree_same_child, tree, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&tree->nodes, &builder->capacity, tree->count, sizeof(*tree->nodes)) < 0 ||
        gp_index_add(&builder->children, hash, tree->count) < 0)
        return GP_FLAME_NONE;
    key.next_sibling = GP_FLAME_NONE;
    if (parent != GP_FLAME_NONE) {
        key.depth = tree->nodes[parent].depth + 1;
        key.next_sibling = tree->nodes[parent].first_child;
        tree->nodes[parent].first_child = tree->count;
    }
    tree->nodes[tree->count] = key;
    return tree->count++;
}

static int flame_tree_add_row(builder_t *builder, const gp_report_row_t *row)
{
    gp_flame_tree_t *tree = builder->tree;
    uint32_t at = 0;
    for (uint32_t i = 0; i <= row->depth; i++) {
        tree->nodes[at].weight_ns += row->weight_ns;
        tree->nodes[at].samples += i == row->depth || !builder->report->exact_rows ? row->samples : 0;
        if (i == row->depth)
            break;
        at = flame_tree_child_of(builder, at, tree->table->of_frame[row->frames[i]]);
        if (at == GP_FLAME_NONE)
            return -ENOMEM;
    }
    tree->nodes[at].self_ns += row->weight_ns;
    return 0;
}

static bool flame_tree_goes_before(const gp_flame_tree_t *tree, uint32_t a, uint32_t b)
{
    const gp_flame_node_t *left = &tree->nodes[a], *right = &tree->nodes[b];
    if (left->weight_ns != right->weight_ns)
        return left->weight_ns > right->weight_ns;
    int names = strcmp(tree->table->functions[left->function].frame->function,
                       tree->table->functions[right->function].frame->function);
    return names != 0 ? names < 0 : left->function < right->function;
}

static uint32_t flame_tree_merge(gp_flame_tree_t *tree, uint32_t a, uint32_t b)
{
    uint32_t head = GP_FLAME_NONE;
    uint32_t *tail = &head;
    while (a != GP_FLAME_NONE && b != GP_FLAME_NONE) {
        uint32_t *first = flame_tree_goes_before(tree, b, a) ? &b : &a;
        *tail = *first;
        tail = &tree->nodes[*first].next_sibling;
        *first = *tail;
    }
    *tail = a != GP_FLAME_NONE ? a : b;
    return head;
}

// Sort a list of siblings by merging runs of 1, 2, 4, ...: no recursion, however many there are.
static uint32_t flame_tree_sort_siblings(gp_flame_tree_t *tree, uint32_t list)
{
    uint32_t runs[33];
    size_t used = 0;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
        runs[i] = GP_FLAME_NONE;
    while (list != GP_FLAME_NONE) {
        uint32_t one = list;
        size_t level = 0;
        list = tree->nodes[list].next_sibling;
        tree->nodes[one].next_sibling = GP_FLAME_NONE;
        for (; runs[level] != GP_FLAME_NONE; level++) {
            one = flame_tree_merge(tree, runs[level], one);
            runs[level] = GP_FLAME_NONE;
        }
        runs[level] = one;
        used = level >= used ? level + 1 : used;
    }
    for (size_t level = 0; level < used; level++)
        if (runs[level] != GP_FLAME_NONE)
            list = flame_tree_merge(tree, runs[level], list);
    return list;
}

// Put a node behind those that are kept, among the children of its parent.
static int flame_tree_keep_node(builder_t *builder, gp_flame_node_t node, const uint32_t *numbers)
{
    gp_flame_tree_t *tree = builder->tree;
    uint32_t number = tree->count++;
    node.first_child = node.next_sibling = GP_FLAME_NONE;
    if (node.parent != GP_FLAME_NONE) {
        node.parent = numbers[node.parent];
        node.next_sibling = tree->nodes[node.parent].first_child;
        tree->nodes[node.parent].first_child = number;
    }
    tree->nodes[number] = node;
    return gp_index_add(&builder->children, gp_hash_u64((uint64_t)node.parent << 32 | node.function), number);
}

// Parents have lower numbers than their children, and no less weight.
static int flame_tree_prune(builder_t *builder)
{
    gp_flame_tree_t *tree = builder->tree;
    uint32_t count = tree->count, *numbers = calloc(count, sizeof(*numbers));
    uint64_t least = builder->report->total_ns / SHARE_MIN;
    int result = numbers != NULL ? 0 : -ENOMEM;
    gp_index_free(&builder->children);
    if (result == 0)
        tree->count = 0;
    for (uint32_t i = 0; i < count && result == 0; i++) {
        if (i > 0 && tree->nodes[i].weight_ns < least)
            continue;
        numbers[i] = tree->count;
        result = flame_tree_keep_node(builder, tree->nodes[i], numbers);
    }
    free(numbers);
    return result;
}

static int flame_tree_add_part(void *context, const gp_report_row_t *rows, size_t count)
{
    builder_t *builder = context;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = flame_tree_add_row(builder, &rows[i]);
    return result == 0 && builder->report->in_parts ? flame_tree_prune(builder) : result;
}

gp_flame_tree_t *gp_flame_tree_create(const gp_report_t *report)
{
    gp_flame_tree_t *tree = calloc(1, sizeof(*tree));
    builder_t builder = {.tree = tree, .report = report};
    int result = -ENOMEM;
    if (tree == NULL)
        return NULL;
    tree->table = gp_function_table_create_uncharged(report);
    if (tree->table != NULL && flame_tree_child_of(&builder, GP_FLAME_NONE, GP_FLAME_NONE) == 0)
        result = 0;
    if (result == 0)
        result = gp_report_each_part(report, flame_tree_add_part, &builder);
    for (uint32_t i = 0; i < tree->count && result == 0; i++)
        tree->nodes[i].first_child = flame_tree_sort_siblings(tree, tree->nodes[i].first_child);
    gp_index_free(&builder.children);
    if (result == 0)
        return tree;
    gp_flame_tree_free(tree);
    errno = ENOMEM;
    return NULL;
}

void gp_flame_tree_free(gp_flame_tree_t *tree)
{
    if (tree == NULL)
        return;
    gp_function_table_free(tree->table);
    free(tree->nodes);
    free(tree);
}
