// SPDX-License-Identifier: MIT
// Firefox Profiler's processed JSON, version 60; newer readers upgrade it.
//
// A "thread" with everything, then one for each of the heaviest coroutines. A report knows no
// times: all samples are at 0, so that there is no axis of time; the heaviest come first. Weights are milliseconds.
//
// Source: firefox-devtools/profiler, src/types/profile.ts and docs-developer/CHANGELOG-formats.md.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/function_table.h"
#include "export/output.h"
#include "export/write/json_text.h"
#include "export/write/string_table.h"
#include "report/report_coros.h"
#include "report/report_words.h"
#include "report/spill.h"

enum { PROCESSED_VERSION = 60, NS_PER_MS = 1000000 };
enum category { CATEGORY_PSEUDO, CATEGORY_PROGRAM };
#define NONE UINT32_MAX

typedef struct node {
    uint32_t frame, prefix; // prefix: number of a stack before it, or NONE
} node_t;

// Columns that are put by until their tables are written: of the stack table, then of each thread.
enum { COLUMN_FRAME, COLUMN_PREFIX, COLUMN_THREADS };
enum { COLUMN_STACK, COLUMN_WEIGHT, THREAD_COLUMNS };

typedef struct firefox {
    const gp_report_t *report;
    gp_function_table_t *table;
    gp_report_coro_t *coros;
    size_t coro_count;
    size_t thread_count;
    uint32_t *of_label; // by label: number of its thread, 0 = none of its own
    gp_spill_t columns;
    node_t *stacks;       // still possible in rows
    uint32_t first_stack; // the first one's number in the stack table
    size_t stack_count, stack_capacity;
    gp_index_t stack_index;
    gp_string_table_t strings, files;
    uint32_t *function_names, *function_files; // by function
    gp_json_t json;
} firefox_t;

static bool firefox_same_stack(const void *owner, uint32_t number, const void *key)
{
    const node_t *a = &((const firefox_t *)owner)->stacks[number], *b = key;
    return a->frame == b->frame && a->prefix == b->prefix;
}

// Find or add a stack. Returns 0 or a negative errno value.
static int firefox_find_stack(firefox_t *firefox, uint32_t prefix, uint32_t frame, uint32_t *stack)
{
    node_t key = {.frame = frame, .prefix = prefix};
    uint64_t hash = gp_hash_u64((uint64_t)prefix << 32 | frame);
    uint32_t number = gp_index_find(&firefox->stack_index, hash, firefox_same_stack, firefox, &key);
    if (number == GP_INDEX_NONE) {
        number = (uint32_t)firefox->stack_count;
        if (firefox->first_stack + number == NONE)
            return -EFBIG;
        if (gp_grow(&firefox->stacks, &firefox->stack_capacity, number, sizeof(key)) < 0 ||
            gp_index_add(&firefox->stack_index, hash, number) < 0)
            return -ENOMEM;
        firefox->stacks[firefox->stack_count++] = key;
        int result = gp_spill_add(&firefox->columns, COLUMN_FRAME, &frame, sizeof(frame));
        if (result == 0)
            result = gp_spill_add(&firefox->columns, COLUMN_PREFIX, &prefix, sizeof(prefix));
        if (result < 0)
            return result;
    }
    *stack = firefox->first_stack + number;
    return 0;
}

static size_t firefox_thread_column(size_t thread, size_t column)
{
    return COLUMN_THREADS + thread * THREAD_COLUMNS + column;
}

static int firefox_add_sample(firefox_t *firefox, size_t thread, uint32_t stack, uint64_t weight_ns)
{
    int result = gp_spill_add(&firefox->columns, firefox_thread_column(thread, COLUMN_STACK), &stack, sizeof(stack));
    return result == 0 ? gp_spill_add(&firefox->columns, firefox_thread_column(thread, COLUMN_WEIGHT), &weight_ns,
                                      sizeof(weight_ns))
                       : result;
}

static int firefox_add_row(firefox_t *firefox, const gp_report_row_t *row)
{
    uint32_t stack = NONE, thread = row->label != 0 ? firefox->of_label[row->label - 1] : 0;
    int result = 0;
    for (uint32_t i = 0; i < row->depth && result == 0; i++)
        result = firefox_find_stack(firefox, stack, row->frames[i], &stack);
    if (result == 0)
        result = firefox_add_sample(firefox, 0, stack, row->weight_ns);
    return result == 0 && thread != 0 ? firefox_add_sample(firefox, thread, stack, row->weight_ns) : result;
}

static int firefox_add_rows(void *context, const gp_report_row_t *rows, size_t count)
{
    firefox_t *firefox = context;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = firefox_add_row(firefox, &rows[i]);
    if (firefox->report->rooted) { // no other part has these stacks
        firefox->first_stack += (uint32_t)firefox->stack_count;
        firefox->stack_count = 0;
        gp_index_free(&firefox->stack_index);
    }
    return result;
}

// Which labels have a thread of their own: those of the heaviest coroutines.
static void firefox_find_threads(firefox_t *firefox)
{
    const gp_report_t *report = firefox->report;
    firefox->thread_count = 1 + (firefox->coro_count < GP_HEAVIEST_MAX ? firefox->coro_count : GP_HEAVIEST_MAX);
    for (uint32_t label = 0; label < report->label_count; label++)
        for (size_t thread = 1; thread < firefox->thread_count; thread++)
            if (report->labels[label].coroutine_id == firefox->coros[thread - 1].label->coroutine_id)
                firefox->of_label[label] = (uint32_t)thread;
}

static int firefox_find_texts(firefox_t *firefox)
{
    for (uint32_t i = 0; i < firefox->table->function_count; i++) {
        const gp_report_frame_t *frame = firefox->table->functions[i].frame;
        firefox->function_names[i] = gp_string_table_number(&firefox->strings, frame->function);
        firefox->function_files[i] = gp_string_table_number(&firefox->files, frame->pseudo ? "" : frame->file);
    }
    for (size_t i = 0; i < firefox->files.count; i++)
        gp_string_table_number(&firefox->strings, firefox->files.texts[i]);
    return firefox->strings.failed || firefox->files.failed ? -ENOMEM : 0;
}

// A column of a table: begin, values, end.
static void firefox_column(gp_json_t *json, const char *name)
{
    gp_json_key(json, name);
    gp_json_open(json, '[');
}

static void firefox_column_end(gp_json_t *json)
{
    gp_json_close(json, ']');
}

// A column that has the same in every row: a number, or null for NONE.
static void firefox_column_of(gp_json_t *json, const char *name, size_t count, uint32_t value)
{
    firefox_column(json, name);
    for (size_t i = 0; i < count; i++)
        if (value == NONE)
            gp_json_null(json);
        else
            gp_json_uint(json, value);
    firefox_column_end(json);
}

static void firefox_column_minus_one(gp_json_t *json, const char *name, size_t count)
{
    firefox_column(json, name);
    for (size_t i = 0; i < count; i++)
        gp_json_minus_one(json);
    firefox_column_end(json);
}

static void firefox_column_false(gp_json_t *json, const char *name, size_t count)
{
    firefox_column(json, name);
    for (size_t i = 0; i < count; i++)
        gp_json_bool(json, false);
    firefox_column_end(json);
}

static void firefox_known_uint(gp_json_t *json, uint32_t value)
{
    if (value == 0)
        gp_json_null(json);
    else
        gp_json_uint(json, value);
}

static void firefox_table_begin(gp_json_t *json, const char *name, size_t length)
{
    gp_json_line(json);
    gp_json_key(json, name);
    gp_json_open(json, '{');
    gp_json_key_uint(json, "length", length);
}

static void firefox_table_end(gp_json_t *json)
{
    gp_json_close(json, '}');
}

static int firefox_put_numbers(void *context, const void *bytes, size_t len)
{
    firefox_t *firefox = context;
    const uint32_t *numbers = bytes;
    for (size_t i = 0; i < len / sizeof(*numbers); i++)
        if (numbers[i] == NONE)
            gp_json_null(&firefox->json);
        else
            gp_json_uint(&firefox->json, numbers[i]);
    return gp_output_state(firefox->json.out);
}

static int firefox_put_weights(void *context, const void *bytes, size_t len)
{
    firefox_t *firefox = context;
    const uint64_t *weights = bytes;
    for (size_t i = 0; i < len / sizeof(*weights); i++)
        gp_json_milliseconds(&firefox->json, weights[i]);
    return gp_output_state(firefox->json.out);
}

// A column that was put by.
static int firefox_column_put_with(firefox_t *firefox, const char *name, size_t number, size_t unit,
                                   int (*put)(void *, const void *, size_t))
{
    firefox_column(&firefox->json, name);
    int result = gp_spill_read(&firefox->columns, number, unit, put, firefox);
    firefox_column_end(&firefox->json);
    return result;
}

static int firefox_put_stack_table(firefox_t *firefox)
{
    gp_json_t *json = &firefox->json;
    size_t unit = sizeof(uint32_t);
    firefox_table_begin(json, "stackTable", gp_spill_bytes(&firefox->columns, COLUMN_FRAME) / unit);
    int result = firefox_column_put_with(firefox, "frame", COLUMN_FRAME, unit, firefox_put_numbers);
    if (result == 0)
        result = firefox_column_put_with(firefox, "prefix", COLUMN_PREFIX, unit, firefox_put_numbers);
    firefox_table_end(json);
    return result;
}

static void firefox_put_frame_table(firefox_t *firefox)
{
    const gp_report_t *report = firefox->report;
    gp_json_t *json = &firefox->json;
    uint32_t count = report->frame_count;
    firefox_table_begin(json, "frameTable", count);
    firefox_column_minus_one(json, "address", count);
    firefox_column_of(json, "inlineDepth", count, 0);
    firefox_column(json, "category");
    for (uint32_t i = 0; i < count; i++)
        gp_json_uint(json, report->frames[i].pseudo ? CATEGORY_PSEUDO : CATEGORY_PROGRAM);
    firefox_column_end(json);
    firefox_column_of(json, "subcategory", count, 0);
    firefox_column(json, "func");
    for (uint32_t i = 0; i < count; i++)
        gp_json_uint(json, firefox->table->of_frame[i]);
    firefox_column_end(json);
    firefox_column_of(json, "nativeSymbol", count, NONE);
    firefox_column_of(json, "innerWindowID", count, 0);
    firefox_column(json, "line");
    for (uint32_t i = 0; i < count; i++)
        firefox_known_uint(json, report->frames[i].line);
    firefox_column_end(json);
    firefox_column_of(json, "column", count, NONE);
    firefox_table_end(json);
}

static void firefox_put_function_table(firefox_t *firefox)
{
    gp_json_t *json = &firefox->json;
    uint32_t count = firefox->table->function_count;
    firefox_table_begin(json, "funcTable", count);
    firefox_column(json, "name");
    for (uint32_t i = 0; i < count; i++)
        gp_json_uint(json, firefox->function_names[i]);
    firefox_column_end(json);
    firefox_column_false(json, "isJS", count);
    firefox_column_false(json, "relevantForJS", count);
    firefox_column_minus_one(json, "resource", count);
    firefox_column(json, "source");
    for (uint32_t i = 0; i < count; i++)
        if (firefox->function_files[i] == 0)
            gp_json_null(json);
        else
            gp_json_uint(json, firefox->function_files[i] - 1);
    firefox_column_end(json);
    firefox_column(json, "lineNumber");
    for (uint32_t i = 0; i < count; i++)
        firefox_known_uint(json, firefox->table->functions[i].frame->first_line);
    firefox_column_end(json);
    firefox_column_of(json, "columnNumber", count, NONE);
    firefox_table_end(json);
}

// Source files: number 0 of `files` is "no file" and is not among them.
static void firefox_put_sources(firefox_t *firefox)
{
    gp_json_t *json = &firefox->json;
    size_t count = firefox->files.count > 0 ? firefox->files.count - 1 : 0;
    firefox_table_begin(json, "sources", count);
    firefox_column_of(json, "uuid", count, NONE);
    firefox_column(json, "filename");
    for (size_t i = 0; i < count; i++)
        gp_json_uint(json, gp_string_table_number(&firefox->strings, firefox->files.texts[i + 1]));
    firefox_column_end(json);
    firefox_table_end(json);
}

static void firefox_put_empty_table(gp_json_t *json, const char *name, const char *const columns[])
{
    firefox_table_begin(json, name, 0);
    for (size_t i = 0; columns[i] != NULL; i++)
        firefox_column_of(json, columns[i], 0, 0);
    firefox_table_end(json);
}

static int firefox_put_shared(firefox_t *firefox)
{
    static const char *const resources[] = {"lib", "name", "host", "type", NULL};
    static const char *const symbols[] = {"libIndex", "address", "name", "functionSize", NULL};
    gp_json_t *json = &firefox->json;
    gp_json_line(json);
    gp_json_key(json, "shared");
    gp_json_open(json, '{');
    firefox_put_sources(firefox);
    int result = firefox_put_stack_table(firefox);
    firefox_put_frame_table(firefox);
    firefox_put_function_table(firefox);
    firefox_put_empty_table(json, "resourceTable", resources);
    firefox_put_empty_table(json, "nativeSymbols", symbols);
    gp_json_line(json);
    firefox_column(json, "stringArray");
    for (size_t i = 0; i < firefox->strings.count; i++)
        gp_json_text(json, firefox->strings.texts[i]);
    firefox_column_end(json);
    gp_json_close(json, '}');
    return result;
}

// Which stack, when, how much.
static int firefox_put_samples(firefox_t *firefox, size_t thread)
{
    size_t stacks = firefox_thread_column(thread, COLUMN_STACK);
    size_t weights = firefox_thread_column(thread, COLUMN_WEIGHT), unit = sizeof(uint64_t);
    gp_json_t *json = &firefox->json;
    firefox_table_begin(json, "samples", gp_spill_bytes(&firefox->columns, weights) / unit);
    gp_json_key_text(json, "weightType", "tracing-ms");
    int result = firefox_column_put_with(firefox, "stack", stacks, sizeof(uint32_t), firefox_put_numbers);
    if (result == 0)
        result = firefox_column_put_with(firefox, "weight", weights, unit, firefox_put_weights);
    firefox_column_of(json, "time", gp_spill_bytes(&firefox->columns, weights) / unit, 0);
    firefox_table_end(json);
    return result;
}

// A thread of a coroutine; the first one of everything.
static int firefox_put_thread(firefox_t *firefox, size_t number)
{
    const gp_report_coro_t *coro = number > 0 ? &firefox->coros[number - 1] : NULL;
    static const char *const markers[] = {"data", "name", "startTime", "endTime", "phase", "category", NULL};
    gp_json_t *json = &firefox->json;
    char name[320], pid[16];
    gp_json_line(json);
    gp_json_open(json, '{');
    gp_json_key_text(json, "processType", "default");
    gp_json_key_text(json, "processName", firefox->report->title);
    gp_json_key_text(json, "name",
                     coro ? gp_report_coro_name(coro, name, sizeof(name)) : gp_measure_words(firefox->report->measure));
    gp_json_key(json, "isMainThread");
    gp_json_bool(json, coro == NULL);
    snprintf(pid, sizeof(pid), "%" PRIu32, firefox->report->pid > 0 ? firefox->report->pid : 1);
    gp_json_key_text(json, "pid", pid);
    gp_json_key_uint(json, "tid", coro ? coro->label->coroutine_id : 0);
    gp_json_key_uint(json, "processStartupTime", 0);
    gp_json_key(json, "processShutdownTime");
    gp_json_null(json);
    gp_json_key_uint(json, "registerTime", 0);
    gp_json_key(json, "unregisterTime");
    gp_json_null(json);
    firefox_column_of(json, "pausedRanges", 0, 0);
    int result = firefox_put_samples(firefox, number);
    firefox_put_empty_table(json, "markers", markers);
    gp_json_close(json, '}');
    return result;
}

static void firefox_put_category(gp_json_t *json, const char *name, const char *color)
{
    gp_json_open(json, '{');
    gp_json_key_text(json, "name", name);
    gp_json_key_text(json, "color", color);
    firefox_column(json, "subcategories");
    gp_json_text(json, "Other");
    firefox_column_end(json);
    gp_json_close(json, '}');
}

static void firefox_put_meta(firefox_t *firefox)
{
    const gp_report_t *report = firefox->report;
    gp_json_t *json = &firefox->json;
    gp_json_key(json, "meta");
    gp_json_open(json, '{');
    gp_json_key(json, "interval");
    gp_json_milliseconds(json, report->frequency_hz ? 1000000000 / report->frequency_hz : NS_PER_MS);
    gp_json_key(json, "startTime");
    gp_json_milliseconds(json, report->start_realtime_ns);
    gp_json_key_text(json, "product", report->title);
    gp_json_key_text(json, "importedFrom", "greenprof");
    gp_json_key_uint(json, "processType", 0);
    gp_json_key_uint(json, "stackwalk", 1);
    gp_json_key_uint(json, "version", 31);
    gp_json_key_uint(json, "preprocessedProfileVersion", PROCESSED_VERSION);
    gp_json_key(json, "symbolicated");
    gp_json_bool(json, true);
    firefox_column(json, "categories"); // in the order of enum category
    firefox_put_category(json, "Other", "grey");
    firefox_put_category(json, "Program", "yellow");
    firefox_column_end(json);
    firefox_column_of(json, "markerSchema", 0, 0);
    gp_json_key(json, "sampleUnits");
    gp_json_open(json, '{');
    gp_json_key_text(json, "time", "ms");
    gp_json_key_text(json, "eventDelay", "ms");
    gp_json_key_text(json, "threadCPUDelta", "ns");
    gp_json_close(json, '}');
    gp_json_close(json, '}');
}

static int firefox_put_all(firefox_t *firefox)
{
    gp_json_t *json = &firefox->json;
    gp_json_open(json, '{');
    firefox_put_meta(firefox);
    firefox_column_of(json, "libs", 0, 0);
    int result = firefox_put_shared(firefox);
    gp_json_line(json);
    firefox_column(json, "threads");
    for (size_t i = 0; i < firefox->thread_count && result == 0; i++)
        result = firefox_put_thread(firefox, i);
    firefox_column_end(json);
    gp_json_close(json, '}');
    putc('\n', json->out);
    return result;
}

static int firefox_prepare(firefox_t *firefox)
{
    const gp_report_t *report = firefox->report;
    firefox->table = gp_function_table_create_uncharged(report);
    firefox->coros = gp_report_coros_create(report, &firefox->coro_count);
    firefox->function_names = calloc((size_t)report->frame_count + 1, sizeof(uint32_t));
    firefox->function_files = calloc((size_t)report->frame_count + 1, sizeof(uint32_t));
    firefox->of_label = calloc((size_t)report->label_count + 1, sizeof(uint32_t));
    if (firefox->table == NULL || firefox->coros == NULL || firefox->function_names == NULL ||
        firefox->function_files == NULL || firefox->of_label == NULL || firefox_find_texts(firefox) < 0)
        return -ENOMEM;
    firefox_find_threads(firefox);
    int result = gp_spill_init(&firefox->columns, COLUMN_THREADS + firefox->thread_count * THREAD_COLUMNS);
    return result == 0 ? gp_report_each_part(report, firefox_add_rows, firefox) : result;
}

int gp_firefox_write(const gp_report_t *report, FILE *out)
{
    firefox_t firefox = {.report = report, .json = {.out = out}};
    int result = firefox_prepare(&firefox);
    if (result == 0)
        result = firefox_put_all(&firefox);
    gp_function_table_free(firefox.table);
    gp_string_table_free(&firefox.strings);
    gp_string_table_free(&firefox.files);
    gp_index_free(&firefox.stack_index);
    gp_spill_free(&firefox.columns);
    free(firefox.coros);
    free(firefox.stacks);
    free(firefox.of_label);
    free(firefox.function_names);
    free(firefox.function_files);
    return result;
}
