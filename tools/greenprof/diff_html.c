// SPDX-License-Identifier: MIT
// The differential flame graph: both sides' stacks as one tree, drawn by diff.js.
//
// Data, in <script type="application/json">: {"unit", "scale", "base", "file": titles,
//   "names": [TEXT...], "nodes": [[function or -1 for the root, depth, base, file, error,
//   1 where the change is significant], ...]} parents before their children; values are
//   whole numbers of unit/scale.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "export/json_text.h"
#include "export/xml.h"
#include "generated/diff_css.h"
#include "generated/diff_js.h"
#include "report/report_words.h"

enum { SCALE = 10000, SHARE_MIN = 10000 }; // less than this part of its side is not drawn

#define NONE UINT32_MAX

typedef struct tree {
    const gp_diff_t *diff;
    gp_diff_node_t *nodes; // the root first
    size_t count, capacity;
    gp_index_t index;
} tree_t;

static bool same_node(const void *owner, uint32_t number, const void *key)
{
    const gp_diff_node_t *a = &((const tree_t *)owner)->nodes[number], *b = key;
    return a->parent == b->parent && a->function == b->function;
}

static uint32_t child_of(tree_t *tree, uint32_t parent, uint32_t function)
{
    gp_diff_node_t key = {.parent = parent, .function = function, .first_child = NONE, .next_sibling = NONE};
    uint64_t hash = gp_hash_u64((uint64_t)parent << 32 | function);
    uint32_t number = gp_index_find(&tree->index, hash, same_node, tree, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&tree->nodes, &tree->capacity, tree->count, sizeof(*tree->nodes)) < 0 ||
        gp_index_add(&tree->index, hash, (uint32_t)tree->count) < 0)
        return NONE;
    tree->nodes[tree->count] = key;
    return (uint32_t)tree->count++;
}

static void charge(gp_diff_node_t *node, size_t side, const gp_row_t *row)
{
    node->weights[side].ns += row->weight_ns;
    node->weights[side].samples += row->samples;
    node->weights[side].squares_ns2 += row->squares_ns2;
}

static int add_row(tree_t *tree, size_t which, const gp_row_t *row)
{
    const gp_diff_side_t *side = &tree->diff->sides[which];
    uint32_t at = 0;
    charge(&tree->nodes[0], which, row);
    for (uint32_t i = 0; i < row->depth; i++) {
        at = child_of(tree, at, side->functions[row->frames[i]]);
        if (at == NONE)
            return -ENOMEM;
        charge(&tree->nodes[at], which, row);
    }
    return 0;
}

static double size_of(const tree_t *tree, const gp_diff_node_t *node)
{
    return (double)node->weights[GP_BASE].ns * tree->diff->sides[GP_BASE].factor +
           (double)node->weights[GP_FILE].ns * tree->diff->sides[GP_FILE].factor;
}

static const tree_t *sorting; // qsort() has no context

// Siblings side by side, the smallest first: linking turns them round.
static int compare_siblings(const void *left, const void *right)
{
    const gp_diff_node_t *a = &sorting->nodes[*(const uint32_t *)left];
    const gp_diff_node_t *b = &sorting->nodes[*(const uint32_t *)right];
    double first = size_of(sorting, a), second = size_of(sorting, b);
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (first != second)
        return first < second ? -1 : 1;
    return a->function > b->function ? -1 : a->function < b->function;
}

static int link_children(tree_t *tree)
{
    uint32_t *order = calloc(tree->count + 1, sizeof(*order));
    if (order == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < tree->count; i++)
        order[i] = i;
    sorting = tree;
    qsort(order, tree->count, sizeof(*order), compare_siblings);
    for (size_t i = 0; i < tree->count; i++) {
        gp_diff_node_t *node = &tree->nodes[order[i]];
        if (order[i] == 0)
            continue;
        node->next_sibling = tree->nodes[node->parent].first_child;
        tree->nodes[node->parent].first_child = order[i];
    }
    free(order);
    return 0;
}

static int make_tree(tree_t *tree)
{
    if (child_of(tree, NONE, NONE) != 0)
        return -ENOMEM;
    for (size_t side = 0; side < GP_SIDES; side++) {
        const gp_report_t *report = tree->diff->sides[side].report;
        for (uint32_t i = 0; i < report->row_count; i++)
            if (add_row(tree, side, &report->rows[i]) < 0)
                return -ENOMEM;
    }
    return link_children(tree);
}

static bool is_drawn(const tree_t *tree, const gp_diff_node_t *node)
{
    for (size_t side = 0; side < GP_SIDES; side++)
        if (node->weights[side].ns >= tree->nodes[0].weights[side].ns / SHARE_MIN && node->weights[side].ns > 0)
            return true;
    return false;
}

static uint64_t scaled(double value)
{
    return (uint64_t)llround(value * SCALE);
}

static void put_node(const tree_t *tree, gp_json_t *json, uint32_t number, uint32_t depth)
{
    const gp_diff_node_t *node = &tree->nodes[number];
    gp_change_t change = gp_diff_change(tree->diff, node->weights);
    gp_json_line(json);
    gp_json_open(json, '[');
    if (node->function == NONE)
        gp_json_minus_one(json);
    else
        gp_json_uint(json, node->function);
    gp_json_uint(json, depth);
    gp_json_uint(json, scaled(change.value[GP_BASE]));
    gp_json_uint(json, scaled(change.value[GP_FILE]));
    gp_json_uint(json, scaled(change.error));
    gp_json_uint(json, change.is_significant);
    gp_json_close(json, ']');
}

// Parents before children, without recursion: stacks may be deep.
static void put_nodes(const tree_t *tree, gp_json_t *json)
{
    uint32_t at = 0, depth = 0;
    put_node(tree, json, 0, 0);
    for (;;) {
        uint32_t next = tree->nodes[at].first_child;
        depth++;
        while (next != NONE && !is_drawn(tree, &tree->nodes[next]))
            next = tree->nodes[next].next_sibling;
        while (next == NONE) { // up, and to the right
            if (at == 0)
                return;
            next = tree->nodes[at].next_sibling;
            while (next != NONE && !is_drawn(tree, &tree->nodes[next]))
                next = tree->nodes[next].next_sibling;
            at = tree->nodes[at].parent;
            depth--;
        }
        at = next;
        put_node(tree, json, at, depth);
    }
}

static void put_side(gp_json_t *json, const char *key, const gp_diff_side_t *side)
{
    gp_json_line(json);
    gp_json_key(json, key);
    gp_json_open(json, '{');
    gp_json_key_text(json, "path", side->source.path);
    gp_json_key(json, "total_ms");
    gp_json_milliseconds(json, side->report->total_ns);
    gp_json_key_text(json, "measure", gp_measure_words(side->report->measure));
    gp_json_key_uint(json, "samples", side->report->samples);
    gp_json_close(json, '}');
}

static void put_data(const tree_t *tree, FILE *out)
{
    const gp_diff_t *diff = tree->diff;
    gp_json_t json = {.out = out};
    gp_json_open(&json, '{');
    gp_json_key_text(&json, "unit", diff->unit);
    gp_json_key_uint(&json, "scale", SCALE);
    put_side(&json, "base", &diff->sides[GP_BASE]);
    put_side(&json, "file", &diff->sides[GP_FILE]);
    gp_json_line(&json);
    gp_json_key(&json, "names");
    gp_json_open(&json, '[');
    for (size_t i = 0; i < diff->function_count; i++) {
        gp_json_line(&json);
        gp_json_text(&json, diff->functions[i].name);
    }
    gp_json_close(&json, ']');
    gp_json_line(&json);
    gp_json_key(&json, "nodes");
    gp_json_open(&json, '[');
    put_nodes(tree, &json);
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
}

int gp_diff_write_html(const gp_diff_t *diff, FILE *out)
{
    tree_t tree = {.diff = diff};
    int result = make_tree(&tree);
    if (result == 0) {
        fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>", out);
        gp_xml_text(out, diff->sides[GP_FILE].report->title);
        fprintf(out, ": what changed</title>\n<style>\n%s</style>\n<body>\n", diff_css);
        fputs("<script type=\"application/json\" id=\"data\">\n", out);
        put_data(&tree, out);
        fprintf(out, "\n</script>\n<script>\n%s</script>\n</body>\n</html>\n", diff_js);
    }
    free(tree.nodes);
    gp_index_free(&tree.index);
    return result;
}
