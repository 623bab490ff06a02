// SPDX-License-Identifier: MIT
#include "page/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_NATIVE, KIND_LANGUAGE, KIND_PSEUDO }; // frame.kind of DATA.md

static bool nodes_same_frame(const void *owner, uint32_t number, const void *key)
{
    return memcmp(&((const gp_nodes_t *)owner)->frames[number], key, sizeof(gp_page_frame_t)) == 0;
}

static bool nodes_same_node(const void *owner, uint32_t number, const void *key)
{
    const gp_page_node_t *a = &((const gp_nodes_t *)owner)->nodes[number], *b = key;
    return a->parent == b->parent && a->frame == b->frame;
}

int gp_nodes_init(gp_nodes_t *nodes)
{
    const gp_page_node_t root = {
        .first_child = GP_INDEX_NONE, .last_child = GP_INDEX_NONE, .next = GP_INDEX_NONE, .parent = GP_INDEX_NONE};
    if (gp_grow(&nodes->nodes, &nodes->capacity, 0, sizeof(root)) < 0)
        return -ENOMEM;
    nodes->nodes[0] = root;
    nodes->count = 1;
    gp_string_table_number(&nodes->names, "");
    gp_string_table_number(&nodes->files, "");
    gp_string_table_number(&nodes->modules, "");
    return nodes->names.failed || nodes->files.failed || nodes->modules.failed ? -ENOMEM : 0;
}

int gp_frame_map_init(gp_frame_map_t *map, const gp_report_t *report)
{
    *map = (gp_frame_map_t){.report = report, .frames = calloc((size_t)report->frame_count + 1, sizeof(uint32_t))};
    return map->frames != NULL ? 0 : -ENOMEM;
}

void gp_frame_map_free(gp_frame_map_t *map)
{
    free(map->frames);
    map->frames = NULL;
}

static uint32_t nodes_add_frame(gp_nodes_t *nodes, const gp_report_frame_t *frame)
{
    const gp_page_frame_t key = {
        .name = gp_string_table_number(&nodes->names, frame->function),
        .file = gp_string_table_number(&nodes->files, frame->file),
        .module = gp_string_table_number(&nodes->modules, frame->module),
        .line = frame->first_line,
        .at = nodes->by_line && !frame->pseudo ? frame->line : 0,
        .kind = frame->pseudo              ? KIND_PSEUDO
                : frame->module[0] == '\0' ? KIND_LANGUAGE
                                           : KIND_NATIVE,
    };
    uint64_t hash = gp_hash_bytes(&key, sizeof(key));
    uint32_t number = gp_index_find(&nodes->frame_index, hash, nodes_same_frame, nodes, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (nodes->names.failed || nodes->files.failed || nodes->modules.failed ||
        gp_grow(&nodes->frames, &nodes->frame_capacity, nodes->frame_count, sizeof(key)) < 0 ||
        gp_index_add(&nodes->frame_index, hash, (uint32_t)nodes->frame_count) < 0)
        return GP_INDEX_NONE;
    nodes->frames[nodes->frame_count] = key;
    return (uint32_t)nodes->frame_count++;
}

static uint32_t nodes_add_node(gp_nodes_t *nodes, uint32_t parent, uint32_t frame)
{
    const gp_page_node_t key = {parent, frame, GP_INDEX_NONE, GP_INDEX_NONE, GP_INDEX_NONE};
    uint64_t hash = gp_hash_u64((uint64_t)parent << 32 | frame);
    uint32_t number = gp_index_find(&nodes->node_index, hash, nodes_same_node, nodes, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&nodes->nodes, &nodes->capacity, nodes->count, sizeof(key)) < 0 ||
        gp_index_add(&nodes->node_index, hash, (uint32_t)nodes->count) < 0)
        return GP_INDEX_NONE;
    number = (uint32_t)nodes->count++;
    nodes->nodes[number] = key;
    gp_page_node_t *above = &nodes->nodes[parent];
    if (above->last_child != GP_INDEX_NONE)
        nodes->nodes[above->last_child].next = number;
    else
        above->first_child = number;
    above->last_child = number;
    return number;
}

uint32_t gp_nodes_stack(gp_nodes_t *nodes, gp_frame_map_t *map, const uint32_t *frames, uint32_t depth)
{
    if (frames == map->last_stack && depth == map->last_depth && depth > 0)
        return map->last_node;
    uint32_t node = 0;
    for (uint32_t i = 0; i < depth && node != GP_INDEX_NONE; i++) {
        uint32_t *frame = &map->frames[frames[i]];
        if (*frame == 0)
            *frame = nodes_add_frame(nodes, &map->report->frames[frames[i]]) + 1;
        node = *frame != 0 ? nodes_add_node(nodes, node, *frame - 1) : GP_INDEX_NONE;
    }
    map->last_stack = frames;
    map->last_depth = depth;
    map->last_node = node;
    return node;
}

int gp_nodes_finish(gp_nodes_t *nodes)
{
    nodes->order = malloc(nodes->count * sizeof(*nodes->order));
    nodes->by_order = malloc(nodes->count * sizeof(*nodes->by_order));
    if (nodes->order == NULL || nodes->by_order == NULL)
        return -ENOMEM;
    uint32_t node = 0;
    for (uint32_t number = 0; node != GP_INDEX_NONE; number++) {
        nodes->order[node] = number;
        nodes->by_order[number] = node;
        uint32_t next = nodes->nodes[node].first_child;
        while (next == GP_INDEX_NONE && node != 0) {
            next = nodes->nodes[node].next;
            node = nodes->nodes[node].parent;
        }
        node = next;
    }
    return 0;
}

void gp_nodes_free(gp_nodes_t *nodes)
{
    gp_string_table_free(&nodes->names);
    gp_string_table_free(&nodes->files);
    gp_string_table_free(&nodes->modules);
    gp_index_free(&nodes->frame_index);
    gp_index_free(&nodes->node_index);
    free(nodes->frames);
    free(nodes->nodes);
    free(nodes->order);
    free(nodes->by_order);
    *nodes = (gp_nodes_t){0};
}
