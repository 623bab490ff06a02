// SPDX-License-Identifier: MIT
// The weights of a page: rows of samples, delays and critical paths, with their stacks and labels.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"

typedef struct taking { // the rows of a report
    gp_page_writer_t *writer;
    const gp_report_t *report;
    gp_page_facts_t *facts;
    gp_frame_map_t map;
    uint32_t *labels; // by label of the report: that of the page plus 1; 0 = not asked for yet
    uint16_t side;
    bool is_own; // of the dataset whose coroutines, traces and requests the page has
} taking_t;

// Leaves say what the time was. [not started] is ready.
static uint16_t rows_state_of(const gp_report_t *report, const gp_report_row_t *row)
{
    static const struct {
        const char *leaf;
        uint16_t state;
    } states[] = {
        {"[preempted]", GP_KIND_PREEMPTED},  {"[parked]", GP_KIND_PARKED},
        {"[ready]", GP_KIND_READY},          {"[waiting]", GP_KIND_WAITING},
        {"[blocked]", GP_KIND_BLOCKED},      {"[gil]", GP_KIND_GIL},
        {"[queued]", GP_KIND_QUEUED},        {"[not started]", GP_KIND_READY},
        {"[not recorded]", GP_KIND_WAITING}, {"[at another request]", GP_KIND_WAITING},
    };
    uint32_t depth = row->depth;
    while (depth > 1 && strncmp(report->frames[row->frames[depth - 1]].function, "[behind ", 8) == 0)
        depth--;
    const gp_report_frame_t *leaf = depth > 0 ? &report->frames[row->frames[depth - 1]] : NULL;
    for (size_t i = 0; leaf != NULL && leaf->pseudo && i < sizeof(states) / sizeof(states[0]); i++)
        if (strcmp(leaf->function, states[i].leaf) == 0)
            return states[i].state;
    return GP_KIND_CPU;
}

static uint32_t rows_thread_of(gp_page_writer_t *writer, const gp_label_t *label)
{
    char text[32];
    if (label->thread_id == 0)
        return 0;
    snprintf(text, sizeof(text), "%" PRIu32, label->thread_id);
    return gp_string_table_number(&writer->threads, label->thread != NULL ? label->thread : text) + 1;
}

static uint32_t rows_make_label(const taking_t *taking, const gp_label_t *label)
{
    gp_page_writer_t *writer = taking->writer;
    gp_page_label_t made = {.thread = rows_thread_of(writer, label)};
    if (taking->is_own) {
        made.coro = gp_page_coro(writer, gp_dataset_coro_find(writer->dataset, label->coroutine_id));
        made.trace = label->trace != NULL ? gp_string_table_number(&writer->traces, label->trace) + 1 : 0;
        made.request = label->request != 0 ? writer->requests[label->request - 1] : 0;
    }
    return gp_page_label(&writer->labels, &made);
}

static uint32_t rows_label_of(taking_t *taking, const gp_report_row_t *row)
{
    if (row->label == 0)
        return 0;
    uint32_t *label = &taking->labels[row->label - 1];
    if (*label == 0)
        *label = rows_make_label(taking, &taking->report->labels[row->label - 1]) + 1;
    return *label - 1; // GP_INDEX_NONE when memory was short
}

static int rows_take(void *context, const gp_report_row_t *rows, size_t count)
{
    taking_t *taking = context;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].weight_ns == 0 && rows[i].samples == 0)
            continue;
        const gp_fact_t fact = {
            .node = gp_nodes_stack(&taking->writer->nodes, &taking->map, rows[i].frames, rows[i].depth),
            .label = rows_label_of(taking, &rows[i]),
            .tick = taking->is_own ? rows[i].tick : 0,
            .state = rows_state_of(taking->report, &rows[i]),
            .side = taking->side,
            .weight_ns = rows[i].weight_ns,
            .samples = rows[i].samples,
            .squares_ns2 = rows[i].squares_ns2,
        };
        if (fact.node == GP_INDEX_NONE || fact.label == GP_INDEX_NONE || gp_page_facts_add(taking->facts, &fact) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int rows_take_report(gp_page_writer_t *writer, const gp_report_t *report, gp_page_facts_t *facts, uint16_t side)
{
    taking_t taking = {
        .writer = writer,
        .report = report,
        .facts = facts,
        .labels = calloc((size_t)report->label_count + 1, sizeof(uint32_t)),
        .side = side,
        .is_own = writer->dataset != NULL && side + 1u == writer->side_count,
    };
    int result = taking.labels != NULL ? gp_frame_map_init(&taking.map, report) : -ENOMEM;
    if (result == 0)
        result = gp_report_each_part(report, rows_take, &taking);
    gp_frame_map_free(&taking.map);
    free(taking.labels);
    return result;
}

int gp_page_rows(gp_page_writer_t *writer)
{
    const gp_page_label_t nothing = {0};
    int result = gp_page_label(&writer->labels, &nothing) == 0 ? 0 : -ENOMEM;
    gp_page_facts_t *all[] = {&writer->rows, &writer->delays, &writer->paths};
    for (size_t i = 0; i < 3; i++) {
        all[i]->limit = i == 0 ? GP_PAGE_ROWS_MAX : SIZE_MAX; // of the others there are fewer
        all[i]->labels = &writer->labels;
    }
    for (size_t i = 0; i < writer->side_count && result == 0; i++)
        result = rows_take_report(writer, writer->sides[i], &writer->rows, (uint16_t)i);
    const gp_page_t *page = writer->page;
    writer->delays.coarse = writer->paths.coarse = writer->rows.coarse; // ticks are the same
    uint16_t side = (uint16_t)(writer->side_count - 1);
    if (result == 0 && page != NULL && page->delays != NULL && !page->delays->is_unknown)
        result = rows_take_report(writer, page->delays, &writer->delays, side);
    if (result == 0 && page != NULL && page->paths != NULL)
        result = rows_take_report(writer, page->paths, &writer->paths, side);
    return result;
}

// 0 is "not known", also of what no whole number in JSON holds: a damaged capture's.
static uint64_t rows_error_of(const gp_fact_t *fact)
{
    double error_ns = gp_root_of(fact->squares_ns2);
    return error_ns < 0x1p53 ? (uint64_t)error_ns : 0;
}

static void rows_put_facts(gp_page_writer_t *writer, gp_page_facts_t *facts, int table, const char *name)
{
    // Without two sides there is nothing to compare.
    gp_page_table_begin(&writer->tables[table], name,
                        writer->side_count > 1 ? "d:node label state tick weight samples side error"
                                               : "d:node label state tick weight samples");
    gp_page_facts_sort(facts, writer->nodes.order);
    for (size_t i = 0; i < facts->count; i++) {
        const gp_fact_t *fact = &facts->items[i];
        const uint64_t row[] = {fact->node,      fact->label,   fact->state, fact->tick,
                                fact->weight_ns, fact->samples, fact->side,  rows_error_of(fact)};
        gp_page_table_row(&writer->tables[table], row);
    }
}

static void rows_put_nodes(gp_page_writer_t *writer)
{
    const gp_nodes_t *nodes = &writer->nodes;
    gp_page_table_begin(&writer->tables[GP_PAGE_NODES], "node", "parent frame");
    gp_page_table_begin(&writer->tables[GP_PAGE_FRAMES], "frame", "name file module line kind at");
    for (size_t i = 0; i < nodes->frame_count; i++) {
        const gp_page_frame_t *frame = &nodes->frames[i];
        const uint64_t row[] = {frame->name, frame->file, frame->module, frame->line, frame->kind, frame->at};
        gp_page_table_row(&writer->tables[GP_PAGE_FRAMES], row);
    }
    for (size_t i = 0; i < nodes->count; i++) {
        const gp_page_node_t *node = &nodes->nodes[nodes->by_order[i]];
        const uint64_t row[] = {i > 0 ? i - nodes->order[node->parent] : 0, i > 0 ? node->frame : 0};
        gp_page_table_row(&writer->tables[GP_PAGE_NODES], row);
    }
}

static void rows_put_labels(gp_page_writer_t *writer)
{
    gp_page_table_begin(&writer->tables[GP_PAGE_LABELS], "label", "coro thread trace request");
    for (size_t i = 0; i < writer->labels.count; i++) {
        const gp_page_label_t *label = &writer->labels.items[i];
        const uint64_t row[] = {label->coro, label->thread, label->trace, label->request};
        gp_page_table_row(&writer->tables[GP_PAGE_LABELS], row);
    }
}

static void rows_note_coarseness(gp_page_writer_t *writer)
{
    const gp_coarseness_t *coarse = &writer->rows.coarse;
    if (coarse->no_ticks)
        gp_page_note(writer,
                     "There are too many different stacks for parts of the time to be chosen: --from and --to of "
                     "greenprof flamegraph choose one.");
    if (coarse->no_threads)
        gp_page_note(writer, "There are too many different stacks to be told apart by thread: --thread chooses one.");
    if (coarse->no_traces)
        gp_page_note(writer, "There are too many different stacks to be told apart by trace: --trace chooses one.");
}

void gp_page_put_stacks(gp_page_writer_t *writer)
{
    rows_put_nodes(writer);
    rows_put_facts(writer, &writer->rows, GP_PAGE_ROWS, "row");
    rows_put_facts(writer, &writer->delays, GP_PAGE_DELAYS, "delay");
    rows_put_facts(writer, &writer->paths, GP_PAGE_PATHS, "path");
    rows_put_labels(writer);
    rows_note_coarseness(writer);
}
