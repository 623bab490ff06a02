// SPDX-License-Identifier: MIT
#include "ship/ask/ask_capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/index.h"
#include "base/memory.h"
#include "capture/write/writer.h"
#include "greenprof/prof.h"
#include "ship/ask/ask_read.h"

#define FLUSH_BYTES ((size_t)4 << 20)

enum {
    DEPTH_MAX = 1024,
    GRAIN_S = 10,         // the shipper's, where it was not told another
    DELAYS_MAX = 1000000, // records: above it, one stands for several
};

typedef struct known { // numbered things: functions (name, file), coroutines, traces, stacks
    const uint8_t *text[2];
    size_t len[2];
} known_t;

typedef struct table {
    known_t *items;
    size_t count, room;
    gp_index_t index;
} table_t;

typedef struct stack { // a stack of the store, in the capture
    gp_loc_t *locs;    // [depth], root first
    size_t depth;
} answer_stack_t;

typedef struct hog { // rows that agree in who waited for whom, and in trace and time
    gp_ask_text_t name, root, trace;
    uint64_t at_s, weight_ns, samples;
    gp_hog_stack_t *stacks;
    size_t count, room;
    uint64_t id;
} hog_t;

typedef struct capture {
    const gp_ask_t *ask;
    const gp_ask_answer_t *answer;
    gp_writer_t writer;
    table_t functions, coros, traces, stacks; // stacks: by their ids in the store, and what stands above them
    table_t bare;                             // ids of stacks whose names have come, and
    answer_stack_t *frames;                   // by number less 1
    size_t frames_room;
    gp_arena_t arena;
    uint64_t first_s, last_s; // grains of samples, since 1970
    uint64_t delays;          // records
    hog_t hog;                // that is put together
} capture_t;

static bool ask_capture_same_known(const void *context, uint32_t number, const void *key)
{
    const known_t *a = &((const table_t *)context)->items[number], *b = key;
    return a->len[0] == b->len[0] && a->len[1] == b->len[1] && memcmp(a->text[0], b->text[0], a->len[0]) == 0 &&
           memcmp(a->text[1], b->text[1], a->len[1]) == 0;
}

// The number of two texts, from 1; 0 = memory is short.
static uint32_t ask_capture_number_of(table_t *table, gp_ask_text_t first, gp_ask_text_t second, bool *is_new)
{
    known_t key = {{first.bytes, second.bytes}, {first.len, second.len}};
    uint64_t hash = gp_hash_more(gp_hash_bytes(first.bytes, first.len), gp_hash_bytes(second.bytes, second.len));
    uint32_t number = gp_index_find(&table->index, hash, ask_capture_same_known, table, &key);
    *is_new = number == GP_INDEX_NONE;
    if (!*is_new)
        return number + 1;
    if (gp_grow(&table->items, &table->room, table->count, sizeof(*table->items)) < 0 ||
        gp_index_add(&table->index, hash, (uint32_t)table->count) < 0)
        return 0;
    table->items[table->count++] = key;
    return (uint32_t)table->count;
}

static bool ask_capture_is_by_coroutine(const gp_ask_t *ask)
{
    return ask->measure == GP_ROW_VICTIM_TIME ||
           (ask->measure == GP_ROW_TIME && ask->by != NULL && strcmp(ask->by, "coroutine") == 0);
}

// A thread's own stack is a group like any other: its samples count as they are.
static void ask_capture_put_coro(capture_t *capture, uint32_t number, gp_ask_text_t name)
{
    static const char thread[] = "[thread ";
    bool is_thread = name.len > sizeof(thread) && memcmp(name.bytes, thread, sizeof(thread) - 1) == 0;
    gp_ask_text_t bare = is_thread ? (gp_ask_text_t){name.bytes + 1, name.len - 2} : name;
    gp_coro_record_t *coro = gp_writer_add(&capture->writer, GP_CHUNK_COROS, sizeof(*coro));
    if (coro == NULL)
        return;
    coro->id = number;
    coro->kind = is_thread || !ask_capture_is_by_coroutine(capture->ask) ? GP_CORO_GROUP : GP_CORO_ANNOUNCED;
    memcpy(coro->name, bare.bytes, bare.len < sizeof(coro->name) ? bare.len : sizeof(coro->name) - 1);
    if (bare.len == 0)
        memcpy(coro->name, "-", 1); // such as samples that are in no request, by endpoint
}

static gp_loc_t ask_capture_loc_of(capture_t *capture, gp_ask_text_t name, gp_ask_text_t file, uint32_t line)
{
    static const struct {
        const char *name;
        enum gp_pseudo pseudo;
    } pseudos[] = {{"[switching]", GP_PSEUDO_SWITCHING},
                   {"[truncated]", GP_PSEUDO_TRUNCATED},
                   {"[incomplete]", GP_PSEUDO_UNKNOWN},
                   {"[not started]", GP_PSEUDO_NOT_STARTED},
                   {"[signal blocked]", GP_PSEUDO_SIGNAL_BLOCKED}};
    for (size_t i = 0; i < sizeof(pseudos) / sizeof(pseudos[0]); i++)
        if (name.len == strlen(pseudos[i].name) && memcmp(name.bytes, pseudos[i].name, name.len) == 0)
            return GP_LOC(GP_MODULE_PSEUDO, pseudos[i].pseudo);
    bool is_new;
    uint32_t number = ask_capture_number_of(&capture->functions, name, file, &is_new);
    if (number == 0 || number > GP_LANGUAGE_FUNCTIONS_MAX)
        return 0;
    gp_function_record_t *record =
        is_new ? gp_writer_add(&capture->writer, GP_CHUNK_FUNCTIONS, sizeof(*record) + name.len + file.len) : NULL;
    if (record != NULL) {
        record->number = number;
        record->name_len = (uint32_t)name.len;
        record->file_len = (uint32_t)file.len;
        memcpy(record + 1, name.bytes, name.len);
        memcpy((char *)(record + 1) + name.len, file.bytes, file.len);
    }
    return GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(number, line));
}

static uint32_t ask_capture_flags_of(const gp_loc_t *locs, size_t depth)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < depth; i++) {
        flags |= locs[i] == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_SWITCHING) ? GP_STACK_SWITCHING : 0;
        flags |= locs[i] == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_TRUNCATED) ? GP_STACK_TRUNCATED : 0;
        flags |= locs[i] == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN) ? GP_STACK_INCOMPLETE : 0;
    }
    return flags;
}

// A stack with what stands above it, 0 = nothing.
static int ask_capture_put_stack(capture_t *capture, uint32_t number, gp_loc_t root, const answer_stack_t *stack)
{
    size_t depth = stack->depth + (root != 0);
    gp_stack_record_t *record =
        gp_writer_add(&capture->writer, GP_CHUNK_STACKS, sizeof(*record) + depth * sizeof(*stack->locs));
    if (record == NULL)
        return -ENOMEM;
    record->id = number;
    record->depth = (uint16_t)depth;
    record->flags = (uint16_t)ask_capture_flags_of(stack->locs, stack->depth);
    for (size_t i = 0; i < stack->depth; i++) // innermost first
        memcpy((gp_loc_t *)(record + 1) + i, &stack->locs[stack->depth - 1 - i], sizeof(*stack->locs));
    if (root != 0)
        memcpy((gp_loc_t *)(record + 1) + stack->depth, &root, sizeof(root));
    return 0;
}

static int ask_capture_keep_stack(capture_t *capture, gp_ask_text_t id, const gp_loc_t *locs, size_t depth)
{
    bool is_new;
    uint32_t number = ask_capture_number_of(&capture->bare, id, (gp_ask_text_t){id.bytes, 0}, &is_new);
    if (number == 0 || gp_grow(&capture->frames, &capture->frames_room, number - 1, sizeof(*capture->frames)) < 0)
        return -ENOMEM;
    answer_stack_t *kept = &capture->frames[number - 1];
    if (!is_new)
        return 0;
    *kept = (answer_stack_t){gp_arena_copy(&capture->arena, locs, depth * sizeof(*locs)), depth};
    return kept->locs != NULL ? 0 : -ENOMEM;
}

const char gp_ask_of_stacks[] =
    ", stack, argMin(names, nameless), argMin(files, nameless), argMin(lines, nameless) FROM "
    "(SELECT stack, names, files, lines, arrayCount(x -> x != '', builds) AS nameless";

static int ask_capture_take_stack(capture_t *capture, gp_ask_reader_t *reader)
{
    static gp_loc_t locs[DEPTH_MAX];
    static gp_ask_text_t names[DEPTH_MAX], files[DEPTH_MAX];
    gp_ask_text_t id = gp_ask_bytes(reader, 8);
    size_t depth = gp_ask_count(reader);
    if (depth > DEPTH_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < depth; i++)
        names[i] = gp_ask_text(reader);
    if (gp_ask_count(reader) != depth)
        return -EBADMSG;
    for (size_t i = 0; i < depth; i++)
        files[i] = gp_ask_text(reader);
    if (gp_ask_count(reader) != depth || reader->cursor.bad)
        return -EBADMSG;
    for (size_t i = 0; i < depth; i++)
        locs[i] = ask_capture_loc_of(capture, names[i], files[i], (uint32_t)gp_read_uint(&reader->cursor, 4));
    return reader->cursor.bad ? -EBADMSG : ask_capture_keep_stack(capture, id, locs, depth);
}

static int ask_capture_flush_if_full(capture_t *capture)
{
    return gp_writer_pending(&capture->writer) < FLUSH_BYTES ? 0 : gp_writer_flush(&capture->writer);
}

static int ask_capture_take_stacks(capture_t *capture)
{
    gp_ask_reader_t reader = gp_ask_reader(&capture->answer->stacks, NULL);
    int result = 0;
    while (result == 0 && gp_ask_more(&reader)) {
        result = ask_capture_take_stack(capture, &reader);
        result = result == 0 ? ask_capture_flush_if_full(capture) : result;
    }
    return result;
}

typedef struct row {
    uint64_t weight_ns, samples, at_s, first_s, last_s;
    double squares_ns2;
    uint32_t state;
    gp_ask_text_t stack, name, root, trace;
} row_t;

static row_t ask_capture_read_row(gp_ask_reader_t *reader)
{
    row_t row;
    GP_ASK_ROW(GP_ASK_TAKE)
    return row;
}

static int ask_capture_by_id(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

int gp_ask_stack_ids(const gp_ask_answer_t *answer, uint64_t **ids, size_t *count)
{
    gp_ask_reader_t reader = gp_ask_reader(&answer->samples, NULL);
    size_t room = 0, kept = 0;
    *count = 0;
    while (gp_ask_more(&reader)) {
        row_t row = ask_capture_read_row(&reader);
        if (reader.cursor.bad || gp_grow(ids, &room, *count, sizeof(**ids)) < 0)
            return reader.cursor.bad ? -EBADMSG : -ENOMEM;
        memcpy(&(*ids)[(*count)++], row.stack.bytes, sizeof(**ids));
    }
    if (*count > 0)
        qsort(*ids, *count, sizeof(**ids), ask_capture_by_id);
    for (size_t i = 0; i < *count; i++)
        if ((*ids)[i] != 0 && (kept == 0 || (*ids)[kept - 1] != (*ids)[i])) // 0: no stack
            (*ids)[kept++] = (*ids)[i];
    *count = kept;
    return 0;
}

static uint32_t ask_capture_trace_of(capture_t *capture, gp_ask_text_t id)
{
    static const uint8_t none[16];
    bool is_new;
    if (memcmp(id.bytes, none, sizeof(none)) == 0)
        return 0;
    uint32_t number = ask_capture_number_of(&capture->traces, id, (gp_ask_text_t){none, 0}, &is_new);
    gp_trace_record_t *record = is_new ? gp_writer_add(&capture->writer, GP_CHUNK_TRACES, sizeof(*record)) : NULL;
    if (record != NULL) {
        record->index = number;
        memcpy(record->id, id.bytes, sizeof(record->id));
    }
    return number;
}

// "[coroutine worker]", as critical paths of a capture have it.
static gp_loc_t ask_capture_root_of(capture_t *capture, gp_ask_text_t name)
{
    static const char file[] = "~";
    char text[1024];
    bool is_thread = name.len > 0 && name.bytes[0] == '[';
    int len = snprintf(text, sizeof(text), is_thread ? "%.*s" : "[coroutine %.*s]",
                       (int)(name.len < 900 ? name.len : 900), (const char *)name.bytes);
    const uint8_t *kept = gp_arena_copy(&capture->arena, text, (size_t)len + 1);
    if (kept == NULL)
        return 0;
    return ask_capture_loc_of(capture, (gp_ask_text_t){kept, (size_t)len}, (gp_ask_text_t){(const uint8_t *)file, 1},
                              0);
}

// The number of a row's stack, GP_INDEX_NONE when memory is short. Frames that have not arrived, or are not to be had
// any more, are told as lost by what reads the capture.
static uint32_t ask_capture_stack_of(capture_t *capture, const row_t *row)
{
    static const uint8_t none[8];
    static const answer_stack_t empty = {0};
    bool with_root = capture->ask->measure == GP_ROW_CRITICAL_PATH, is_new;
    gp_ask_text_t root = with_root ? row->root : (gp_ask_text_t){row->stack.bytes, 0};
    bool is_none = memcmp(row->stack.bytes, none, sizeof(none)) == 0;
    if (is_none && !with_root)
        return 0;
    uint32_t number = ask_capture_number_of(&capture->stacks, row->stack, root, &is_new);
    if (number == 0)
        return GP_INDEX_NONE;
    if (!is_new)
        return number;
    known_t key = {{row->stack.bytes, row->stack.bytes}, {row->stack.len, 0}};
    uint64_t hash = gp_hash_more(gp_hash_bytes(row->stack.bytes, row->stack.len), gp_hash_bytes(row->stack.bytes, 0));
    uint32_t bare = is_none ? GP_INDEX_NONE
                            : gp_index_find(&capture->bare.index, hash, ask_capture_same_known, &capture->bare, &key);
    if (bare == GP_INDEX_NONE && !with_root)
        return number;
    gp_loc_t loc = with_root ? ask_capture_root_of(capture, root) : 0;
    int result = ask_capture_put_stack(capture, number, loc, bare != GP_INDEX_NONE ? &capture->frames[bare] : &empty);
    return result == 0 ? number : GP_INDEX_NONE;
}

static uint32_t ask_capture_coro_of(capture_t *capture, gp_ask_text_t name)
{
    bool is_new;
    uint32_t number = ask_capture_number_of(&capture->coros, name, (gp_ask_text_t){name.bytes, 0}, &is_new);
    if (number != 0 && is_new)
        ask_capture_put_coro(capture, number, name);
    return number;
}

static uint64_t ask_capture_time_of(const capture_t *capture, uint64_t at_s)
{
    return at_s > 0 ? (at_s - capture->first_s) * 1000000000u + 1 : 1;
}

// A row as one sample, with what it is the sum of.
static int ask_capture_put_sample(capture_t *capture, const row_t *row)
{
    uint32_t stack = ask_capture_stack_of(capture, row), coro = ask_capture_coro_of(capture, row->name),
             trace = ask_capture_trace_of(capture, row->trace);
    gp_sample_record_t *sample = gp_writer_add(&capture->writer, GP_CHUNK_SAMPLES, sizeof(*sample));
    if (coro == 0 || stack == GP_INDEX_NONE || sample == NULL)
        return -ENOMEM;
    *sample = (gp_sample_record_t){
        .time_ns = ask_capture_time_of(capture, row->at_s),
        .weight_ns = row->weight_ns,
        .coro_id = coro,
        .thread = 1,
        .stack_id = stack,
        .trace = trace,
        .kind = row->state,
    };
    double weight_ns = (double)row->weight_ns;
    gp_sum_record_t *sum = row->samples > 1 ? gp_writer_add(&capture->writer, GP_CHUNK_SUMS, sizeof(*sum)) : NULL;
    if (sum != NULL)
        *sum = (gp_sum_record_t){
            .time_ns = ask_capture_time_of(capture, row->at_s),
            .coro_id = coro,
            .samples = row->samples,
            .squares_ns2 = row->squares_ns2 > 0 ? row->squares_ns2 : weight_ns * weight_ns / (double)row->samples,
            .stack_id = stack,
            .trace = trace,
            .kind = row->state,
        };
    return sum != NULL || row->samples <= 1 ? ask_capture_flush_if_full(capture) : -ENOMEM;
}

// The rows of a hog, and as many delays as there were, of which one has all of the time.
static int ask_capture_put_hog(capture_t *capture)
{
    hog_t *hog = &capture->hog;
    gp_hog_record_t *record =
        gp_writer_add(&capture->writer, GP_CHUNK_HOGS, sizeof(*record) + hog->count * sizeof(*hog->stacks));
    uint32_t trace = ask_capture_trace_of(capture, hog->trace), victim = ask_capture_coro_of(capture, hog->name);
    uint32_t coro = ask_capture_coro_of(capture, hog->root);
    if (record == NULL || victim == 0 || coro == 0)
        return -ENOMEM;
    *record = (gp_hog_record_t){
        .id = ++hog->id,
        .coro_id = coro,
        .start_ns = ask_capture_time_of(capture, hog->at_s),
        .duration_ns = hog->weight_ns,
        .thread = 1,
        .stack_count = (uint32_t)hog->count,
    };
    memcpy(record + 1, hog->stacks, hog->count * sizeof(*hog->stacks));
    uint64_t count = capture->delays + hog->samples <= DELAYS_MAX && hog->samples > 0 ? hog->samples : 1;
    for (uint64_t i = 0; i < count; i++) {
        gp_delay_record_t *delay = gp_writer_add(&capture->writer, GP_CHUNK_DELAYS, sizeof(*delay));
        if (delay == NULL)
            return -ENOMEM;
        *delay = (gp_delay_record_t){
            .hog_id = hog->id, .coro_id = victim, .delay_ns = i == 0 ? hog->weight_ns : 0, .trace = trace};
    }
    capture->delays += count;
    hog->count = 0;
    hog->weight_ns = hog->samples = 0;
    return ask_capture_flush_if_full(capture);
}

static bool ask_capture_same_text(gp_ask_text_t a, gp_ask_text_t b)
{
    return a.len == b.len && memcmp(a.bytes, b.bytes, a.len) == 0;
}

// Rows come in the order of what a hog is told by.
static int ask_capture_put_delay(capture_t *capture, const row_t *row)
{
    hog_t *hog = &capture->hog;
    bool same = hog->count > 0 && ask_capture_same_text(hog->name, row->name) &&
                ask_capture_same_text(hog->root, row->root) && ask_capture_same_text(hog->trace, row->trace) &&
                hog->at_s == row->at_s;
    int result = same || hog->count == 0 ? 0 : ask_capture_put_hog(capture);
    uint32_t stack = result == 0 ? ask_capture_stack_of(capture, row) : 0;
    if (result < 0 || stack == GP_INDEX_NONE || gp_grow(&hog->stacks, &hog->room, hog->count, sizeof(*hog->stacks)) < 0)
        return result < 0 ? result : -ENOMEM;
    hog->name = row->name;
    hog->root = row->root;
    hog->trace = row->trace;
    hog->at_s = row->at_s;
    hog->weight_ns += row->weight_ns;
    hog->samples += row->samples;
    hog->stacks[hog->count++] = (gp_hog_stack_t){.stack_id = stack, .weight_ns = row->weight_ns};
    return 0;
}

// Call for each row of the samples.
static int ask_capture_each_row(capture_t *capture, int (*visit)(capture_t *, const row_t *))
{
    gp_ask_reader_t reader = gp_ask_reader(&capture->answer->samples, NULL);
    int result = 0;
    while (result == 0 && gp_ask_more(&reader)) {
        row_t row = ask_capture_read_row(&reader);
        result = reader.cursor.bad || row.state >= GP_KIND_COUNT ? -EBADMSG : visit(capture, &row);
    }
    return result;
}

static int ask_capture_look_at_times(capture_t *capture, const row_t *row)
{
    capture->first_s = row->first_s < capture->first_s ? row->first_s : capture->first_s;
    capture->last_s = row->last_s > capture->last_s ? row->last_s : capture->last_s;
    return 0;
}

// The capture is as long as the chosen time: rates come from this length.
static int ask_capture_find_span(capture_t *capture)
{
    const gp_ask_answer_t *answer = capture->answer;
    uint64_t now_s = (uint64_t)time(NULL);
    capture->first_s = UINT64_MAX;
    int result = ask_capture_each_row(capture, ask_capture_look_at_times);
    capture->last_s += GRAIN_S;
    if (answer->from_s != 0)
        capture->first_s = answer->from_s;
    if (answer->to_s != 0 && (answer->to_s < now_s || capture->last_s > now_s))
        capture->last_s = answer->to_s;
    else if (answer->to_s != 0 || (answer->from_s != 0 && capture->last_s < now_s))
        capture->last_s = now_s;
    return result;
}

static int ask_capture_put_meta(capture_t *capture, const char *key, const char *value)
{
    size_t key_len = strlen(key), value_len = strlen(value);
    gp_meta_record_t *meta = gp_writer_add(&capture->writer, GP_CHUNK_META, sizeof(*meta) + key_len + value_len);
    if (meta == NULL)
        return -ENOMEM;
    meta->key_len = (uint16_t)key_len;
    meta->value_len = (uint32_t)value_len;
    memcpy(meta + 1, key, key_len);
    memcpy((char *)(meta + 1) + key_len, value, value_len);
    return 0;
}

static int ask_capture_put_first(capture_t *capture)
{
    char hosts[32];
    gp_thread_record_t *thread = gp_writer_add(&capture->writer, GP_CHUNK_THREADS, sizeof(*thread));
    if (thread == NULL)
        return -ENOMEM;
    thread->index = 1;
    memcpy(thread->name, "any", 4);
    snprintf(hosts, sizeof(hosts), "%" PRIu64, capture->answer->hosts);
    int result = ask_capture_put_meta(capture, "exe", "fleet");
    return result == 0 && capture->answer->hosts > 0 ? ask_capture_put_meta(capture, "hosts", hosts) : result;
}

static int ask_capture_put_last(capture_t *capture)
{
    gp_end_record_t *end = gp_writer_add(&capture->writer, GP_CHUNK_END, sizeof(*end));
    if (end == NULL)
        return -ENOMEM;
    end->time_ns = (capture->last_s - capture->first_s) * 1000000000u;
    end->reason = GP_END_EXIT;
    return gp_writer_flush(&capture->writer);
}

static int ask_capture_write_all(capture_t *capture)
{
    int result = ask_capture_put_first(capture);
    if (result == 0)
        result = ask_capture_take_stacks(capture);
    if (result == 0)
        result = ask_capture_each_row(capture, capture->ask->measure == GP_ROW_VICTIM_TIME ? ask_capture_put_delay
                                                                                           : ask_capture_put_sample);
    if (result == 0 && capture->hog.count > 0)
        result = ask_capture_put_hog(capture);
    return result == 0 ? ask_capture_put_last(capture) : result;
}

static void ask_capture_free_table(table_t *table)
{
    free(table->items);
    gp_index_free(&table->index);
}

int gp_ask_write(const gp_ask_answer_t *answer, const char *path, const gp_ask_t *ask)
{
    capture_t capture = {.ask = ask, .answer = answer, .writer = GP_WRITER_INIT};
    gp_file_header_t header = {
        .version = GP_FILE_VERSION,
        .header_bytes = sizeof(header),
        .elf_machine = 62,
        .clock = ask->is_wall ? PROF_CLOCK_WALL : PROF_CLOCK_CPU,
    };
    int result = ask_capture_find_span(&capture);
    memcpy(header.magic, GP_FILE_MAGIC, sizeof(header.magic));
    header.start_realtime_ns = capture.first_s * 1000000000u;
    if (result == 0)
        result = gp_writer_open(&capture.writer, path, &header);
    if (result == 0)
        result = ask_capture_write_all(&capture);
    gp_writer_close(&capture.writer);
    ask_capture_free_table(&capture.functions);
    ask_capture_free_table(&capture.coros);
    ask_capture_free_table(&capture.traces);
    ask_capture_free_table(&capture.stacks);
    ask_capture_free_table(&capture.bare);
    free(capture.frames);
    free(capture.hog.stacks);
    gp_arena_free(&capture.arena);
    return result;
}
