// SPDX-License-Identifier: MIT
// pprof: google/pprof's profile.proto, gzipped.
//
// Sample types are samples/count and cpu/nanoseconds (or wall, delay), the latter is the default. A location is an
// address with its mapping where the report has addresses (inlined functions are lines of the one location), else a
// function and line. Labels: coroutine, coroutine_id, thread, thread_id, trace_id. Losses are in a comment,
// "name=value" each.
//
// Source: google/pprof, proto/profile.proto: the field numbers in the enums below.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/prefetch.h"
#include "export/function_table.h"
#include "export/output.h"
#include "export/write/gzip.h"
#include "export/write/protobuf.h"
#include "export/write/string_table.h"
#include "report/report_words.h"

enum profile_field {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};
enum value_type_field { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION_ID = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3 };
enum mapping_field {
    MAPPING_ID = 1,
    MAPPING_MEMORY_START = 2,
    MAPPING_MEMORY_LIMIT = 3,
    MAPPING_FILENAME = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINE_NUMBERS = 9,
    MAPPING_HAS_INLINE_FRAMES = 10,
};
enum location_field {
    LOCATION_ID = 1,
    LOCATION_MAPPING_ID = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
};
enum label_key { COROUTINE, COROUTINE_ID, THREAD, THREAD_ID, TRACE_ID, LABEL_KEYS };
enum { WRITE_BYTES = 1 << 16, PIECES_BYTES_MAX = 24 << 20, ROWS_AHEAD = 8 }; // written at once, kept; asked for
enum line_field { LINE_FUNCTION_ID = 1, LINE_LINE = 2 };
enum function_field {
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_FILENAME = 4,
    FUNCTION_START_LINE = 5,
};

typedef struct piece { // of messages, as it is in all that have it; NULL = not made yet
    const char *bytes;
    uint32_t len;
} piece_t;

typedef struct pprof {
    const gp_report_t *report;
    gp_function_table_t *functions;
    bool *located;   // by frame: its location was written
    piece_t *labels; // by label: its fields of Sample
    piece_t *paths;  // by gp_row_t.path, less 1: the location ids of Sample
    gp_arena_t pieces;
    uint32_t keys[LABEL_KEYS]; // numbers of the labels' names
    gp_string_table_t strings;
    gp_gzip_t *out;
    FILE *file;
    gp_text_t whole;          // fields of Profile, with their tags, that were not written yet
    gp_text_t message, inner; // the present field's content, and a message within
    bool failed;
} pprof_t;

static uint64_t pprof_as_int64(uint64_t value)
{
    return value <= INT64_MAX ? value : INT64_MAX;
}

static void pprof_flush(pprof_t *pprof)
{
    if (!pprof->failed && pprof->whole.len > 0)
        gp_gzip_write(pprof->out, pprof->whole.data, pprof->whole.len);
    gp_text_clear(&pprof->whole);
}

// A field of Profile is in `whole`.
static void pprof_end_field(pprof_t *pprof)
{
    pprof->failed =
        pprof->failed || pprof->whole.failed || pprof->message.failed || pprof->inner.failed || pprof->strings.failed;
    gp_text_clear(&pprof->message);
    if (pprof->whole.len >= WRITE_BYTES)
        pprof_flush(pprof);
}

// Write `message` as a field of Profile.
static void pprof_write_field(pprof_t *pprof, enum profile_field field)
{
    gp_pb_message(&pprof->whole, field, &pprof->message);
    pprof_end_field(pprof);
}

static void pprof_write_number(pprof_t *pprof, enum profile_field field, uint64_t value)
{
    gp_pb_uint(&pprof->whole, field, pprof_as_int64(value));
    pprof_end_field(pprof);
}

static void pprof_put_string(pprof_t *pprof, unsigned field, const char *text)
{
    gp_pb_uint(&pprof->message, field, gp_string_table_number(&pprof->strings, text));
}

static void pprof_write_value_type(pprof_t *pprof, enum profile_field field, const char *type, const char *unit)
{
    pprof_put_string(pprof, VALUE_TYPE_TYPE, type);
    pprof_put_string(pprof, VALUE_TYPE_UNIT, unit);
    pprof_write_field(pprof, field);
}

static void pprof_write_mapping(pprof_t *pprof, uint32_t number)
{
    const gp_report_mapping_t *mapping = &pprof->report->mappings[number];
    gp_pb_uint(&pprof->message, MAPPING_ID, (uint64_t)number + 1);
    gp_pb_uint(&pprof->message, MAPPING_MEMORY_START, mapping->start);
    gp_pb_uint(&pprof->message, MAPPING_MEMORY_LIMIT, mapping->end);
    pprof_put_string(pprof, MAPPING_FILENAME, mapping->path);
    pprof_put_string(pprof, MAPPING_BUILD_ID, mapping->build_id);
    // All of it was looked up already: readers need not try.
    gp_pb_uint(&pprof->message, MAPPING_HAS_FUNCTIONS, 1);
    gp_pb_uint(&pprof->message, MAPPING_HAS_FILENAMES, 1);
    gp_pb_uint(&pprof->message, MAPPING_HAS_LINE_NUMBERS, 1);
    gp_pb_uint(&pprof->message, MAPPING_HAS_INLINE_FRAMES, 1);
    pprof_write_field(pprof, PROFILE_MAPPING);
}

// system_name stays empty: with one, pprof would demangle, and shorten, what is demangled.
static void pprof_write_function(pprof_t *pprof, uint32_t number)
{
    const gp_report_frame_t *frame = pprof->functions->functions[number].frame;
    gp_pb_uint(&pprof->message, FUNCTION_ID, (uint64_t)number + 1);
    pprof_put_string(pprof, FUNCTION_NAME, frame->function);
    pprof_put_string(pprof, FUNCTION_FILENAME, frame->pseudo ? "" : frame->file);
    gp_pb_uint(&pprof->message, FUNCTION_START_LINE, frame->first_line);
    pprof_write_field(pprof, PROFILE_FUNCTION);
}

static void pprof_put_line(pprof_t *pprof, uint32_t frame)
{
    gp_text_clear(&pprof->inner);
    gp_pb_uint(&pprof->inner, LINE_FUNCTION_ID, (uint64_t)pprof->functions->of_frame[frame] + 1);
    gp_pb_uint(&pprof->inner, LINE_LINE, pprof->report->frames[frame].line);
    gp_pb_message(&pprof->message, LOCATION_LINE, &pprof->inner);
}

// Write the location with the innermost frame `at` on the row. Returns its outermost frame's place on the row.
static uint32_t pprof_write_location(pprof_t *pprof, const gp_report_row_t *row, uint32_t at)
{
    const gp_report_frame_t *frames = pprof->report->frames;
    uint32_t innermost = row->frames[at], outermost = at;
    bool is_new = !pprof->located[innermost];
    while (outermost > 0 && frames[row->frames[outermost]].inlined)
        outermost--;
    if (!is_new)
        return outermost;
    pprof->located[innermost] = true;
    gp_pb_uint(&pprof->message, LOCATION_ID, (uint64_t)innermost + 1);
    gp_pb_uint(&pprof->message, LOCATION_MAPPING_ID, frames[innermost].mapping);
    gp_pb_uint(&pprof->message, LOCATION_ADDRESS, frames[innermost].address);
    for (uint32_t i = at + 1; i > outermost; i--)
        pprof_put_line(pprof, row->frames[i - 1]);
    pprof_write_field(pprof, PROFILE_LOCATION);
    return outermost;
}

// A label that is a text or a number; 0 = there is none.
static void pprof_put_label(pprof_t *pprof, enum label_key key, enum label_field field, uint64_t value)
{
    if (value == 0)
        return;
    gp_text_clear(&pprof->inner);
    gp_pb_uint(&pprof->inner, LABEL_KEY, pprof->keys[key]);
    gp_pb_uint(&pprof->inner, field, pprof_as_int64(value));
    gp_pb_message(&pprof->message, SAMPLE_LABEL, &pprof->inner);
}

static uint32_t pprof_string_number(pprof_t *pprof, const char *text)
{
    return text != NULL ? gp_string_table_number(&pprof->strings, text) : 0;
}

static void pprof_put_labels(pprof_t *pprof, const gp_label_t *label)
{
    pprof_put_label(pprof, COROUTINE, LABEL_STR, pprof_string_number(pprof, label->coroutine));
    pprof_put_label(pprof, COROUTINE_ID, LABEL_NUM, label->coroutine_id);
    pprof_put_label(pprof, THREAD, LABEL_STR, pprof_string_number(pprof, label->thread));
    pprof_put_label(pprof, THREAD_ID, LABEL_NUM, label->thread_id);
    pprof_put_label(pprof, TRACE_ID, LABEL_STR, pprof_string_number(pprof, label->trace));
}

// Keep what is in `message`, which is cleared.
static piece_t pprof_keep_piece(pprof_t *pprof)
{
    piece_t piece = {.len = (uint32_t)pprof->message.len};
    piece.bytes = gp_arena_copy(&pprof->pieces, piece.len > 0 ? pprof->message.data : "", piece.len);
    pprof->failed = pprof->failed || pprof->message.failed || piece.bytes == NULL;
    gp_text_clear(&pprof->message);
    return piece;
}

// Put all labels together: once a label, not once a row.
static void pprof_make_labels(pprof_t *pprof)
{
    static const char *const keys[LABEL_KEYS] = {
        [COROUTINE] = "coroutine", [COROUTINE_ID] = "coroutine_id", [THREAD] = "thread",
        [THREAD_ID] = "thread_id", [TRACE_ID] = "trace_id",
    };
    const gp_report_t *report = pprof->report;
    for (size_t i = 0; i < LABEL_KEYS && report->label_count > 0; i++)
        pprof->keys[i] = pprof_string_number(pprof, keys[i]);
    for (uint32_t i = 0; i < report->label_count && !pprof->failed; i++) {
        pprof_put_labels(pprof, &report->labels[i]);
        pprof->labels[i] = pprof_keep_piece(pprof);
    }
}

static void pprof_write_locations(pprof_t *pprof, const gp_report_row_t *row)
{
    for (uint32_t i = row->depth; i > 0;)
        i = pprof_write_location(pprof, row, i - 1);
}

// Write the locations of a row that were not written yet, and put their ids into `message`.
static piece_t pprof_make_path(pprof_t *pprof, const gp_report_row_t *row)
{
    pprof_write_locations(pprof, row);
    gp_text_clear(&pprof->inner);
    for (uint32_t i = row->depth; i > 0; i--) {
        gp_pb_varint(&pprof->inner, (uint64_t)row->frames[i - 1] + 1);
        while (i > 1 && pprof->report->frames[row->frames[i - 1]].inlined)
            i--;
    }
    gp_pb_message(&pprof->message, SAMPLE_LOCATION_ID, &pprof->inner);
    return (piece_t){pprof->message.data, (uint32_t)pprof->message.len};
}

// Many rows have the same frames: their ids are put together once, as far as there is room to keep them.
static piece_t pprof_find_path(pprof_t *pprof, const gp_report_row_t *row)
{
    if (row->path == 0 || pprof->pieces.bytes > PIECES_BYTES_MAX)
        return pprof_make_path(pprof, row);
    piece_t *path = &pprof->paths[row->path - 1];
    if (path->bytes == NULL) {
        pprof_make_path(pprof, row);
        *path = pprof_keep_piece(pprof);
    }
    return *path;
}

static void pprof_write_sample(pprof_t *pprof, const gp_report_row_t *row)
{
    const piece_t path = pprof_find_path(pprof, row),
                  label = row->label != 0 ? pprof->labels[row->label - 1] : (piece_t){0};
    gp_text_clear(&pprof->inner);
    gp_pb_varint(&pprof->inner, pprof_as_int64(row->samples));
    gp_pb_varint(&pprof->inner, pprof_as_int64(row->weight_ns));
    size_t values_len = 2 + pprof->inner.len; // a tag, a length of one byte
    gp_pb_begin(&pprof->whole, PROFILE_SAMPLE, path.len + values_len + label.len);
    gp_text_add(&pprof->whole, path.bytes, path.len);
    gp_pb_message(&pprof->whole, SAMPLE_VALUE, &pprof->inner);
    if (label.len > 0)
        gp_text_add(&pprof->whole, label.bytes, label.len);
    pprof_end_field(pprof);
}

static void pprof_add_number(gp_text_t *comment, const char *name, uint64_t value)
{
    char text[96];
    snprintf(text, sizeof(text), " %s=%" PRIu64, name, value);
    gp_text_add(comment, text, strlen(text));
}

// All that a reader of figures may want, in one comment: `pprof -top` begins with a line for each.
static void pprof_write_comment(pprof_t *pprof)
{
    const gp_report_t *report = pprof->report;
    gp_text_t *comment = &pprof->inner;
    gp_text_clear(comment);
    gp_text_add(comment, "greenprof:", strlen("greenprof:"));
    pprof_add_number(comment, "total_ns", report->total_ns);
    pprof_add_number(comment, "sampled_ns", report->sampled_ns);
    if (report->cpu_ns > 0)
        pprof_add_number(comment, "cpu_ns", report->cpu_ns);
    if (report->basis != GP_BASIS_EXACT) {
        const char *basis = report->basis == GP_BASIS_ESTIMATED ? " basis=estimated" : " basis=sampled";
        gp_text_add(comment, basis, strlen(basis));
    }
    for (uint32_t i = 0; i < report->counter_count; i++)
        if (report->counters[i] > 0 && gp_counter_name(i) != NULL)
            pprof_add_number(comment, gp_counter_name(i), report->counters[i]);
    if (!comment->failed)
        pprof_write_number(pprof, PROFILE_COMMENT, gp_string_table_number(&pprof->strings, comment->data));
    gp_text_clear(comment);
    for (size_t i = 0; report->not_known != NULL && report->not_known[i] != NULL; i++)
        pprof_write_number(pprof, PROFILE_COMMENT, gp_string_table_number(&pprof->strings, report->not_known[i]));
}

static void pprof_write_head(pprof_t *pprof)
{
    const gp_report_t *report = pprof->report;
    pprof_write_value_type(pprof, PROFILE_SAMPLE_TYPE, gp_count_words(report), "count");
    const char *measure = gp_measure_name(report->measure);
    pprof_write_value_type(pprof, PROFILE_SAMPLE_TYPE, measure, "nanoseconds");
    pprof_write_number(pprof, PROFILE_DEFAULT_SAMPLE_TYPE, gp_string_table_number(&pprof->strings, measure));
    pprof_write_number(pprof, PROFILE_TIME_NANOS, report->start_realtime_ns);
    pprof_write_number(pprof, PROFILE_DURATION_NANOS, report->duration_ns);
    pprof_write_value_type(pprof, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
    pprof_write_number(pprof, PROFILE_PERIOD, report->frequency_hz ? 1000000000 / report->frequency_hz : 0);
    pprof_write_comment(pprof);
}

// Have the labels of rows ready, which may be anywhere.
static void pprof_expect_label(const pprof_t *pprof, const gp_report_row_t *row)
{
    if (row[ROWS_AHEAD].label != 0)
        gp_prefetch(&pprof->labels[row[ROWS_AHEAD].label - 1]);
    if (row->label != 0)
        gp_prefetch(pprof->labels[row->label - 1].bytes);
}

static int pprof_write_part(void *context, const gp_report_row_t *rows, size_t count)
{
    pprof_t *pprof = context;
    for (size_t i = 0; i < count && !pprof->failed; i++) {
        if (i + 2 * ROWS_AHEAD < count)
            pprof_expect_label(pprof, &rows[i + ROWS_AHEAD]);
        pprof_write_sample(pprof, &rows[i]);
    }
    return pprof->failed ? -ENOMEM : gp_output_state(pprof->file);
}

static int pprof_write_all(pprof_t *pprof)
{
    pprof_write_head(pprof);
    for (uint32_t i = 0; i < pprof->report->mapping_count; i++)
        pprof_write_mapping(pprof, i);
    for (uint32_t i = 0; i < pprof->functions->function_count; i++)
        pprof_write_function(pprof, i);
    pprof_make_labels(pprof);
    int result = gp_report_each_part(pprof->report, pprof_write_part, pprof);
    for (size_t i = 0; i < pprof->strings.count; i++) {
        gp_pb_text(&pprof->whole, PROFILE_STRING_TABLE, pprof->strings.texts[i]);
        pprof_end_field(pprof);
    }
    pprof_flush(pprof);
    return result == 0 && pprof->failed ? -ENOMEM : result;
}

int gp_pprof_write(const gp_report_t *report, FILE *out)
{
    pprof_t pprof = {
        .report = report,
        .functions = gp_function_table_create_uncharged(report),
        .located = calloc((size_t)report->frame_count + 1, sizeof(bool)),
        .labels = calloc((size_t)report->label_count + 1, sizeof(piece_t)),
        .paths = calloc((size_t)report->path_count + 1, sizeof(piece_t)),
        .out = gp_gzip_open(out),
        .file = out,
    };
    int result = -ENOMEM;
    if (pprof.functions != NULL && pprof.located != NULL && pprof.labels != NULL && pprof.paths != NULL &&
        pprof.out != NULL)
        result = pprof_write_all(&pprof);
    int packed = gp_gzip_close(pprof.out);
    result = result == 0 ? packed : result;
    gp_function_table_free(pprof.functions);
    gp_string_table_free(&pprof.strings);
    gp_text_free(&pprof.whole);
    gp_text_free(&pprof.message);
    gp_text_free(&pprof.inner);
    free(pprof.located);
    free(pprof.labels);
    free(pprof.paths);
    gp_arena_free(&pprof.pieces);
    return result;
}
