// SPDX-License-Identifier: MIT
// pstats: one marshalled dict in cProfile's shape,
//   (file, first line, function) -> (primitive calls, calls, own seconds, cumulative seconds,
//   callers) callers: (file, first line, function) -> (calls, primitive calls, own seconds,
//   cumulative seconds)
// The first two of a caller's tuple are the other way round. Source: Lib/cProfile.py
// snapshot_stats(), Lib/pstats.py print_call_line() of CPython 3.11.
//
// Exact mode counts calls, and callers' primitive calls as cProfile does: those of the pair. A sampler counts no calls:
// the counts are numbers of samples (function_table.h), and a row that says so is part of the file.
#include "export/formats.h"

#include <errno.h>
#include <stdlib.h>

#include "export/function_table.h"
#include "export/marshal.h"

enum { PART_BYTES = 60 * 1024, PSTATS_NOTES_MAX = 2 };

static double pstats_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void pstats_write_key(gp_text_t *out, const gp_report_frame_t *frame)
{
    gp_marshal_tuple(out, 3);
    gp_marshal_text(out, frame->file);
    gp_marshal_int(out, frame->first_line);
    gp_marshal_text(out, frame->function);
}

// The keys of all functions as they are in the file: each is there once for the function and once
// for each function that it calls.
typedef struct keys {
    gp_text_t bytes;
    size_t *ends; // size_t[function_count]
} keys_t;

static int pstats_make_keys(keys_t *keys, const gp_function_table_t *table)
{
    keys->ends = calloc((size_t)table->function_count + 1, sizeof(*keys->ends));
    for (uint32_t i = 0; i < table->function_count && keys->ends != NULL; i++) {
        pstats_write_key(&keys->bytes, table->functions[i].frame);
        keys->ends[i] = keys->bytes.len;
    }
    return keys->ends != NULL && !keys->bytes.failed ? 0 : -ENOMEM;
}

static void pstats_put_key(gp_text_t *out, const keys_t *keys, uint32_t function)
{
    size_t start = function > 0 ? keys->ends[function - 1] : 0;
    gp_text_add(out, keys->bytes.data + start, keys->ends[function] - start);
}

static void pstats_write_function(gp_text_t *out, const gp_function_table_t *table, const keys_t *keys, uint32_t number)
{
    const gp_function_t *item = &table->functions[number];
    pstats_put_key(out, keys, number);
    gp_marshal_tuple(out, 5);
    gp_marshal_int(out, item->primitive_calls);
    gp_marshal_int(out, item->calls);
    gp_marshal_float(out, pstats_seconds(item->self_ns));
    gp_marshal_float(out, pstats_seconds(item->total_ns));
    gp_marshal_dict_begin(out);
    for (uint32_t i = 0; i < item->caller_count; i++) {
        const gp_function_pair_t *pair = &table->pairs[item->first_caller + i];
        pstats_put_key(out, keys, pair->caller);
        gp_marshal_tuple(out, 4);
        gp_marshal_int(out, pair->calls);
        gp_marshal_int(out, pair->primitive_calls);
        gp_marshal_float(out, pstats_seconds(pair->self_ns));
        gp_marshal_float(out, pstats_seconds(pair->total_ns));
    }
    gp_marshal_dict_end(out);
}

// A row without time; it also keeps a profile without samples from being an empty dict, which pstats refuses.
static void pstats_write_note(gp_text_t *out, const char *text)
{
    const gp_report_frame_t frame = {.function = text, .file = "~"};
    pstats_write_key(out, &frame);
    gp_marshal_tuple(out, 5);
    gp_marshal_int(out, 0);
    gp_marshal_int(out, 0);
    gp_marshal_float(out, 0);
    gp_marshal_float(out, 0);
    gp_marshal_dict_begin(out);
    gp_marshal_dict_end(out);
}

// The names of rows without calls and time, which say what the numbers are. Returns how many there are.
static size_t pstats_notes(const gp_report_t *report, const char *notes[PSTATS_NOTES_MAX])
{
    size_t count = 0;
    if (!report->exact_calls)
        notes[count++] = "[call counts are numbers of samples]";
    else if (gp_report_is_empty(report))
        notes[count++] = "[no samples]";
    if (report->basis != GP_BASIS_EXACT)
        notes[count++] = "[times are those of the samples]";
    return count;
}

static int pstats_flush(gp_text_t *text, FILE *out)
{
    int result = text->failed ? -ENOMEM : 0;
    if (text->len > 0)
        fwrite(text->data, 1, text->len, out);
    gp_text_clear(text);
    return result;
}

// The file is put together in memory and handed over in large parts.
static int pstats_write_all(const gp_report_t *report, const gp_function_table_t *table, const keys_t *keys, FILE *file)
{
    gp_text_t text = {0}, *out = &text;
    const char *notes[PSTATS_NOTES_MAX];
    int result = 0;
    gp_marshal_dict_begin(out);
    for (uint32_t i = 0; i < table->function_count && result == 0; i++) {
        // Frames of rows that were given up on have no samples; "[no samples]" has none but has the time.
        if (table->functions[i].calls > 0 || table->functions[i].total_ns > 0)
            pstats_write_function(out, table, keys, i);
        if (text.len > PART_BYTES)
            result = pstats_flush(out, file);
    }
    size_t count = pstats_notes(report, notes);
    for (size_t i = 0; i < count; i++)
        pstats_write_note(out, notes[i]);
    gp_marshal_dict_end(out);
    if (result == 0)
        result = pstats_flush(out, file);
    gp_text_free(out);
    return result;
}

int gp_pstats_write(const gp_report_t *report, FILE *out)
{
    gp_function_table_t *table = gp_function_table_create(report);
    keys_t keys = {0};
    int result = table ? pstats_make_keys(&keys, table) : -ENOMEM;
    if (result == 0)
        result = pstats_write_all(report, table, &keys, out);
    gp_text_free(&keys.bytes);
    free(keys.ends);
    gp_function_table_free(table);
    return result;
}
