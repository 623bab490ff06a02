// SPDX-License-Identifier: MIT
// The stacks of several reports as one tree of functions.
//
// Model: a frame is a function: what has the same name, file, first line and module; with `by_line` also the same line.
// Nodes are numbered as they are found; gp_nodes_finish() gives them their numbers in preorder, which `order` maps to.
// Node 0 is the root. Threads: one at a time. Signals: not safe.
#pragma once

#include "export/write/string_table.h"
#include "report/report.h"

typedef struct gp_page_frame {
    uint32_t name, file, module, line, kind;
    uint32_t at; // line within the function, where lines are told apart; else 0
} gp_page_frame_t;

typedef struct gp_page_node {
    uint32_t parent, frame;
    uint32_t first_child, last_child, next; // GP_INDEX_NONE = none
} gp_page_node_t;

typedef struct gp_nodes { // zero-initialized, then gp_nodes_init()
    gp_string_table_t names, files, modules;
    gp_page_frame_t *frames;
    size_t frame_count, frame_capacity;
    gp_page_node_t *nodes;
    size_t count, capacity;
    bool by_line;       // functions are apart by the line they were at
    uint32_t *order;    // by node: its number in preorder
    uint32_t *by_order; // the other way round
    gp_index_t frame_index, node_index;
} gp_nodes_t;

// How the frames of one report are numbered.
typedef struct gp_frame_map {
    const gp_report_t *report;
    uint32_t *frames;           // by frame of the report: number plus 1; 0 = not asked for yet
    const uint32_t *last_stack; // rows in a row often have the same
    uint32_t last_depth, last_node;
} gp_frame_map_t;

// Each returns 0 or -ENOMEM; numbers are GP_INDEX_NONE when memory is short.
int gp_nodes_init(gp_nodes_t *nodes);
int gp_frame_map_init(gp_frame_map_t *map, const gp_report_t *report);
void gp_frame_map_free(gp_frame_map_t *map);

// The node of a stack, found or added.
//   frames: of the map's report, root first.
uint32_t gp_nodes_stack(gp_nodes_t *nodes, gp_frame_map_t *map, const uint32_t *frames, uint32_t depth);

int gp_nodes_finish(gp_nodes_t *nodes);
void gp_nodes_free(gp_nodes_t *nodes);
