// SPDX-License-Identifier: MIT
#include "export/function_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/memory.h"

typedef struct builder {
    gp_function_table_t *table;
    const gp_report_t *report;
    size_t function_capacity, pair_count, pair_capacity;
    gp_index_t function_index, pair_index;
    uint32_t *function_seen; // number of the last row that had it, plus 1
    uint32_t *pair_seen;
    size_t pair_seen_capacity;
    uint32_t rows; // charged so far
} builder_t;

static bool function_table_same_function(const void *owner, uint32_t number, const void *key)
{
    const gp_report_frame_t *a = ((const gp_function_table_t *)owner)->functions[number].frame, *b = key;
    return a->first_line == b->first_line && strcmp(a->function, b->function) == 0 && strcmp(a->file, b->file) == 0;
}

static bool function_table_same_pair(const void *owner, uint32_t number, const void *key)
{
    const gp_function_pair_t *a = &((const gp_function_table_t *)owner)->pairs[number], *b = key;
    return a->caller == b->caller && a->callee == b->callee;
}

// Most frames are functions of their own, most functions have one caller.
static int function_table_reserve(builder_t *builder)
{
    gp_function_table_t *table = builder->table;
    uint32_t count = builder->report->frame_count;
    table->of_frame = calloc((size_t)count + 1, sizeof(*table->of_frame));
    if (table->of_frame == NULL ||
        gp_reserve(&table->functions, &builder->function_capacity, count, sizeof(*table->functions)) < 0 ||
        gp_reserve(&table->pairs, &builder->pair_capacity, count, sizeof(*table->pairs)) < 0 ||
        gp_reserve(&builder->pair_seen, &builder->pair_seen_capacity, count, sizeof(*builder->pair_seen)) < 0 ||
        gp_index_reserve(&builder->function_index, count) < 0)
        return -ENOMEM;
    return gp_index_reserve(&builder->pair_index, count);
}

// Give every frame its function.
//   wanted: bool[frame_count], those that matter; NULL = all.
static int function_table_find_functions(builder_t *builder, const bool *wanted)
{
    gp_function_table_t *table = builder->table;
    for (uint32_t i = 0; i < builder->report->frame_count; i++) {
        const gp_report_frame_t *frame = &builder->report->frames[i];
        if (wanted != NULL && !wanted[i])
            continue;
        uint64_t hash = gp_hash_bytes(frame->function, strlen(frame->function));
        hash = gp_hash_more(hash, gp_hash_bytes(frame->file, strlen(frame->file)));
        hash = gp_hash_more(hash, frame->first_line);
        uint32_t number = gp_index_find(&builder->function_index, hash, function_table_same_function, table, frame);
        if (number == GP_INDEX_NONE) {
            number = table->function_count;
            if (gp_grow(&table->functions, &builder->function_capacity, number, sizeof(*table->functions)) < 0 ||
                gp_index_add(&builder->function_index, hash, number) < 0)
                return -ENOMEM;
            table->functions[number] = (gp_function_t){.frame = frame};
            table->function_count++;
        }
        table->of_frame[i] = number;
    }
    return 0;
}

static uint32_t function_table_pair_number(builder_t *builder, uint32_t caller, uint32_t callee)
{
    gp_function_table_t *table = builder->table;
    gp_function_pair_t key = {.caller = caller, .callee = callee};
    uint64_t hash = gp_hash_u64((uint64_t)caller << 32 | callee);
    uint32_t number = gp_index_find(&builder->pair_index, hash, function_table_same_pair, table, &key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&table->pairs, &builder->pair_capacity, builder->pair_count, sizeof(*table->pairs)) < 0 ||
        gp_grow(&builder->pair_seen, &builder->pair_seen_capacity, builder->pair_count, sizeof(*builder->pair_seen)) <
            0 ||
        gp_index_add(&builder->pair_index, hash, (uint32_t)builder->pair_count) < 0)
        return GP_INDEX_NONE;
    table->pairs[builder->pair_count] = key;
    builder->pair_seen[builder->pair_count] = 0;
    return (uint32_t)builder->pair_count++;
}

// Charge one frame of a row; `caller` is GP_INDEX_NONE at the root.
static int function_table_charge_frame(builder_t *builder, const gp_report_row_t *row, uint32_t stamp, uint32_t caller,
                                       uint32_t callee, bool leaf)
{
    gp_function_t *function = &builder->table->functions[callee];
    bool first = builder->function_seen[callee] != stamp;
    builder->function_seen[callee] = stamp;
    function->calls += row->samples;
    function->primitive_calls += first ? row->samples : 0;
    function->total_ns += first ? row->weight_ns : 0;
    function->self_ns += leaf ? row->weight_ns : 0;
    if (caller == GP_INDEX_NONE)
        return 0;

    uint32_t number = function_table_pair_number(builder, caller, callee);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_function_pair_t *pair = &builder->table->pairs[number];
    bool first_pair = builder->pair_seen[number] != stamp;
    builder->pair_seen[number] = stamp;
    pair->calls += row->samples;
    pair->primitive_calls += first ? row->samples : 0;
    pair->total_ns += first_pair ? row->weight_ns : 0;
    pair->self_ns += leaf ? row->weight_ns : 0;
    return 0;
}

static int function_table_charge_row(builder_t *builder, const gp_report_row_t *row)
{
    uint32_t stamp = ++builder->rows;
    uint32_t caller = GP_INDEX_NONE;
    for (uint32_t i = 0; i < row->depth; i++) {
        uint32_t callee = builder->table->of_frame[row->frames[i]];
        if (function_table_charge_frame(builder, row, stamp, caller, callee, i + 1 == row->depth) < 0)
            return -ENOMEM;
        caller = callee;
    }
    return 0;
}

static int function_table_compare_pairs(const void *left, const void *right)
{
    const gp_function_pair_t *a = left, *b = right;
    if (a->callee != b->callee)
        return a->callee < b->callee ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

static void function_table_sort_pairs(builder_t *builder)
{
    gp_function_table_t *table = builder->table;
    table->pair_count = (uint32_t)builder->pair_count;
    if (table->pair_count > 0)
        qsort(table->pairs, table->pair_count, sizeof(*table->pairs), function_table_compare_pairs);
    for (uint32_t i = table->pair_count; i > 0; i--) {
        gp_function_t *callee = &table->functions[table->pairs[i - 1].callee];
        callee->first_caller = i - 1;
        callee->caller_count++;
    }
}

static int function_table_charge_part(void *context, const gp_report_row_t *rows, size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = function_table_charge_row(context, &rows[i]);
    return result;
}

static int function_table_charge_rows(builder_t *builder)
{
    builder->function_seen = calloc((size_t)builder->table->function_count + 1, sizeof(*builder->function_seen));
    if (builder->function_seen == NULL)
        return -ENOMEM;
    int result = gp_report_each_part(builder->report, function_table_charge_part, builder);
    function_table_sort_pairs(builder);
    return result;
}

// Charge what exact mode counted.
static int function_table_charge_call(builder_t *builder, const gp_call_t *call)
{
    gp_function_table_t *table = builder->table;
    bool wall = builder->report->measure == GP_MEASURE_WALL;
    uint32_t callee = table->of_frame[call->callee];
    uint64_t self_ns = call->self_cpu_ns + (wall ? call->self_wait_ns : 0);
    gp_function_t *function = &table->functions[callee];
    function->calls += call->calls;
    function->primitive_calls += call->primitive_calls;
    function->self_ns += self_ns;
    function->total_ns += call->cpu_ns + (wall ? call->wait_ns : 0);
    if (call->caller == GP_CALL_NO_CALLER)
        return 0;
    uint32_t number = function_table_pair_number(builder, table->of_frame[call->caller], callee);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_function_pair_t *pair = &table->pairs[number];
    pair->calls += call->calls;
    pair->primitive_calls += call->primitive_edge_calls;
    pair->self_ns += self_ns;
    pair->total_ns += call->edge_cpu_ns + (wall ? call->edge_wait_ns : 0);
    return 0;
}

static int function_table_charge_calls(builder_t *builder)
{
    const gp_report_t *report = builder->report;
    bool *called = calloc((size_t)report->frame_count + 1, sizeof(*called));
    int result = called != NULL ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < report->call_count && result == 0; i++) {
        called[report->calls[i].callee] = true;
        if (report->calls[i].caller != GP_CALL_NO_CALLER)
            called[report->calls[i].caller] = true;
    }
    if (result == 0)
        result = function_table_find_functions(builder, called);
    for (uint32_t i = 0; i < report->call_count && result == 0; i++)
        result = function_table_charge_call(builder, &report->calls[i]);
    function_table_sort_pairs(builder);
    free(called);
    return result;
}

static gp_function_table_t *function_table_create(const gp_report_t *report, bool charged)
{
    gp_function_table_t *table = calloc(1, sizeof(*table));
    builder_t builder = {.table = table, .report = report};
    int result;
    if (table == NULL)
        return NULL;
    result = function_table_reserve(&builder);
    if (result == 0 && charged && report->exact_calls)
        result = function_table_charge_calls(&builder);
    else if (result == 0)
        result = function_table_find_functions(&builder, NULL);
    if (result == 0 && charged && !report->exact_calls)
        result = function_table_charge_rows(&builder);
    free(builder.function_seen);
    free(builder.pair_seen);
    gp_index_free(&builder.function_index);
    gp_index_free(&builder.pair_index);
    if (result == 0)
        return table;
    gp_function_table_free(table);
    errno = ENOMEM;
    return NULL;
}

gp_function_table_t *gp_function_table_create(const gp_report_t *report)
{
    return function_table_create(report, true);
}

gp_function_table_t *gp_function_table_create_uncharged(const gp_report_t *report)
{
    return function_table_create(report, false);
}

void gp_function_table_free(gp_function_table_t *table)
{
    if (table == NULL)
        return;
    free(table->functions);
    free(table->pairs);
    free(table->of_frame);
    free(table);
}
