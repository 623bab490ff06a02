// SPDX-License-Identifier: MIT
// The state of a page while it is put together. Private to src/page.
#pragma once

#include "export/write/json_text.h"
#include "page/columns.h"
#include "page/nodes.h"
#include "page/page_facts.h"
#include "report/requests.h"

// Limits of a page; notes say what was left out.
enum {
    GP_PAGE_ROWS_MAX = 250000,
    GP_PAGE_COROS_MAX = 20000,
    GP_PAGE_ACTIVITIES_MAX = 150000,
    GP_PAGE_REQUESTS_MAX = 20000,
    GP_PAGE_SPANS_MAX = 50000,
    GP_PAGE_SEGMENTS_MAX = 100000,
    GP_PAGE_NOTES_MAX = 16,
    GP_PAGE_NOTE_SIZE = 256,
};

enum { // tables
    GP_PAGE_FRAMES,
    GP_PAGE_NODES,
    GP_PAGE_COROS,
    GP_PAGE_LABELS,
    GP_PAGE_ROWS,
    GP_PAGE_DELAYS,
    GP_PAGE_PATHS,
    GP_PAGE_REQUESTS,
    GP_PAGE_SPANS,
    GP_PAGE_ACTIVITIES,
    GP_PAGE_SEGMENTS,
    GP_PAGE_HOGS,
    GP_PAGE_VICTIMS,
    GP_PAGE_HEAT,
    GP_PAGE_TABLES,
};

enum { GP_HEAT_ROWS = 12, GP_HEAT_COLUMNS_MAX = 240 };
extern const uint64_t gp_heat_edges[GP_HEAT_ROWS + 1]; // ns

typedef struct gp_page_folded { // coroutines of one name
    gp_ledger_t ledger;
    uint32_t name;
} gp_page_folded_t;

typedef struct gp_page_coros {
    uint32_t *numbers; // by coroutine of the dataset: number plus 1
    size_t own;        // so many are shown each by itself; the folded ones follow
    gp_page_folded_t *folded;
    size_t folded_count, folded_capacity;
} gp_page_coros_t;

typedef struct gp_page_writer {
    const gp_report_t *sides[2]; // of a diff, else one
    size_t side_count;
    const gp_report_t *report;   // the last one, whose requests, coroutines and timeline there are
    const gp_dataset_t *dataset; // its; NULL: a profile of this process, or what has no page
    const gp_page_t *page;
    gp_nodes_t nodes;
    gp_page_labels_t labels;
    gp_page_facts_t rows, delays, paths;
    gp_string_table_t threads, traces, coro_names;
    gp_page_coros_t coros;
    uint32_t *requests; // by request of the report: number plus 1; 0 = left out
    uint32_t *spawns;   // by coroutine of the dataset: node plus 1
    gp_page_table_t tables[GP_PAGE_TABLES];
    uint64_t heat_column_ns;
    size_t heat_columns;
    char notes[GP_PAGE_NOTES_MAX][GP_PAGE_NOTE_SIZE];
    size_t note_count;
} gp_page_writer_t;

// Say what was left out. A note too many, is dropped.
__attribute__((format(printf, 2, 3))) void gp_page_note(gp_page_writer_t *writer, const char *format, ...);

// Each returns 0 or a negative errno value. In this order:
int gp_page_coros(gp_page_writer_t *writer);    // which coroutines there are
int gp_page_requests(gp_page_writer_t *writer); // which requests
int gp_page_rows(gp_page_writer_t *writer);     // stacks, labels and weights
int gp_page_segments(gp_page_writer_t *writer); // critical paths of the slowest; the nodes get their numbers
void gp_page_put_stacks(gp_page_writer_t *writer);
void gp_page_put_coros(gp_page_writer_t *writer);
int gp_page_spans(gp_page_writer_t *writer);
int gp_page_hogs(gp_page_writer_t *writer);     // long slices, victims
int gp_page_timeline(gp_page_writer_t *writer); // activities, heat

// The elements of the header's "sources".
void gp_page_sources(const gp_page_writer_t *writer, gp_json_t *json);

// The header, with the columns of all tables.
void gp_page_header(const gp_page_writer_t *writer, gp_json_t *json);

uint32_t gp_page_coro(const gp_page_writer_t *writer, uint32_t coro); // number plus 1 by that of the dataset; 0 = none
uint32_t gp_page_trace(gp_page_writer_t *writer, uint32_t trace);     // the same
uint32_t gp_page_thread(gp_page_writer_t *writer, uint32_t index);    // by its index in the capture
