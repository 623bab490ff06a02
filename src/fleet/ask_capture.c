// SPDX-License-Identifier: MIT
#include "fleet/ask_capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/memory.h"
#include "capture/writer.h"
#include "fleet/ask_read.h"
#include "greenprof/prof.h"

#define GRAIN_NS    10000000000ull // the shipper's, where it was not told another
#define SAMPLES_MAX 1000000u       // records; a row that stands for more samples has one record for several
#define FLUSH_BYTES ((size_t)4 << 20)

enum { DEPTH_MAX = 1024 };

typedef struct known { // what has a number: functions (name, file), coroutines, traces, stacks
    const uint8_t *text[2];
    size_t len[2];
} known_t;

typedef struct table {
    known_t *items;
    size_t count, room;
    gp_index_t index;
} table_t;

typedef struct capture {
    const gp_ask_t *ask;
    const gp_ask_answer_t *answer;
    gp_writer_t writer;
    table_t functions, coros, traces, stacks; // stacks: by their ids in the store
    uint64_t samples;                         // in all
} capture_t;

static bool same_known(const void *context, uint32_t number, const void *key)
{
    const known_t *a = &((const table_t *)context)->items[number], *b = key;
    return a->len[0] == b->len[0] && a->len[1] == b->len[1] && memcmp(a->text[0], b->text[0], a->len[0]) == 0 &&
           memcmp(a->text[1], b->text[1], a->len[1]) == 0;
}

// The number of two texts, from 1; 0 = memory is short.
static uint32_t number_of(table_t *table, gp_ask_text_t first, gp_ask_text_t second, bool *is_new)
{
    known_t key = {{first.bytes, second.bytes}, {first.len, second.len}};
    uint64_t hash = gp_hash_more(gp_hash_bytes(first.bytes, first.len), gp_hash_bytes(second.bytes, second.len));
    uint32_t number = gp_index_find(&table->index, hash, same_known, table, &key);
    *is_new = number == GP_INDEX_NONE;
    if (!*is_new)
        return number + 1;
    if (gp_grow(&table->items, &table->room, table->count, sizeof(*table->items)) < 0 ||
        gp_index_add(&table->index, hash, (uint32_t)table->count) < 0)
        return 0;
    table->items[table->count++] = key;
    return (uint32_t)table->count;
}

// A thread's own stack is a group like any other: its samples count as they are.
static void put_coro(capture_t *capture, uint32_t number, gp_ask_text_t name)
{
    static const char thread[] = "[thread ";
    bool is_thread = name.len > sizeof(thread) && memcmp(name.bytes, thread, sizeof(thread) - 1) == 0;
    gp_ask_text_t bare = is_thread ? (gp_ask_text_t){name.bytes + 1, name.len - 2} : name;
    gp_coro_record_t *coro = gp_writer_add(&capture->writer, GP_CHUNK_COROS, sizeof(*coro));
    if (coro == NULL)
        return;
    coro->id = number;
    coro->kind = is_thread || capture->ask->by != NULL ? GP_CORO_GROUP : GP_CORO_ANNOUNCED;
    memcpy(coro->name, bare.bytes, bare.len < sizeof(coro->name) ? bare.len : sizeof(coro->name) - 1);
    if (bare.len == 0)
        memcpy(coro->name, "-", 1); // such as samples that are in no request, by endpoint
}

static gp_loc_t loc_of(capture_t *capture, gp_ask_text_t name, gp_ask_text_t file, uint32_t line)
{
    static const struct {
        const char *name;
        enum gp_pseudo pseudo;
    } pseudos[] = {{"[switching]", GP_PSEUDO_SWITCHING},
                   {"[truncated]", GP_PSEUDO_TRUNCATED},
                   {"[incomplete]", GP_PSEUDO_UNKNOWN},
                   {"[not started]", GP_PSEUDO_NOT_STARTED}};
    for (size_t i = 0; i < sizeof(pseudos) / sizeof(pseudos[0]); i++)
        if (name.len == strlen(pseudos[i].name) && memcmp(name.bytes, pseudos[i].name, name.len) == 0)
            return GP_LOC(GP_MODULE_PSEUDO, pseudos[i].pseudo);
    bool is_new;
    uint32_t number = number_of(&capture->functions, name, file, &is_new);
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

static uint32_t flags_of(const gp_loc_t *locs, size_t depth)
{
    uint32_t flags = 0;
    for (size_t i = 0; i < depth; i++) {
        flags |= locs[i] == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_SWITCHING) ? GP_STACK_SWITCHING : 0;
        flags |= locs[i] == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_TRUNCATED) ? GP_STACK_TRUNCATED : 0;
        flags |= locs[i] == GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN) ? GP_STACK_INCOMPLETE : 0;
    }
    return flags;
}

static int put_stack(capture_t *capture, uint32_t number, const gp_loc_t *locs, size_t depth)
{
    gp_stack_record_t *record =
        gp_writer_add(&capture->writer, GP_CHUNK_STACKS, sizeof(*record) + depth * sizeof(*locs));
    if (record == NULL)
        return -ENOMEM;
    record->id = number;
    record->depth = (uint16_t)depth;
    record->flags = (uint16_t)flags_of(locs, depth);
    for (size_t i = 0; i < depth; i++) // innermost first
        memcpy((gp_loc_t *)(record + 1) + i, &locs[depth - 1 - i], sizeof(*locs));
    return 0;
}

// One row of the stacks: texts of both arrays are side by side.
static int take_stack(capture_t *capture, gp_cursor_t *cursor)
{
    static gp_loc_t locs[DEPTH_MAX];
    static gp_ask_text_t names[DEPTH_MAX], files[DEPTH_MAX];
    bool is_new;
    gp_ask_text_t id = gp_ask_read_bytes(cursor, 8);
    uint64_t depth = gp_read_uleb(cursor);
    if (cursor->bad || depth > DEPTH_MAX)
        return -EBADMSG;
    for (size_t i = 0; i < depth; i++)
        names[i] = gp_ask_read_text(cursor);
    if (gp_read_uleb(cursor) != depth)
        return -EBADMSG;
    for (size_t i = 0; i < depth; i++)
        files[i] = gp_ask_read_text(cursor);
    if (gp_read_uleb(cursor) != depth || cursor->bad)
        return -EBADMSG;
    for (size_t i = 0; i < depth; i++)
        locs[i] = loc_of(capture, names[i], files[i], (uint32_t)gp_read_uint(cursor, 4));
    uint32_t number = cursor->bad ? 0 : number_of(&capture->stacks, id, (gp_ask_text_t){id.bytes, 0}, &is_new);
    return cursor->bad ? -EBADMSG : number == 0 ? -ENOMEM : put_stack(capture, number, locs, (size_t)depth);
}

static int flush_if_full(capture_t *capture)
{
    return gp_writer_pending(&capture->writer) < FLUSH_BYTES ? 0 : gp_writer_flush(&capture->writer);
}

static int take_stacks(capture_t *capture)
{
    const gp_ask_bytes_t *bytes = &capture->answer->stacks;
    gp_cursor_t cursor = gp_cursor_over(bytes->data, bytes->data + bytes->len);
    int result = 0;
    while (result == 0 && gp_cursor_more(&cursor)) {
        result = take_stack(capture, &cursor);
        result = result == 0 ? flush_if_full(capture) : result;
    }
    return result;
}

typedef struct row {
    uint64_t weight_ns, samples, at_s;
    uint32_t state;
    gp_ask_text_t stack, name, trace;
} row_t;

static row_t read_row(gp_cursor_t *cursor)
{
    row_t row = {.stack = gp_ask_read_bytes(cursor, 8)};
    row.state = gp_read_u8(cursor);
    row.name = gp_ask_read_text(cursor);
    row.trace = gp_ask_read_bytes(cursor, 16);
    row.at_s = gp_read_uint(cursor, 4);
    row.weight_ns = gp_read_uint(cursor, 8);
    row.samples = gp_read_uint(cursor, 8);
    return row;
}

static uint32_t trace_of(capture_t *capture, gp_ask_text_t id)
{
    static const uint8_t none[16];
    bool is_new;
    if (memcmp(id.bytes, none, sizeof(none)) == 0)
        return 0;
    uint32_t number = number_of(&capture->traces, id, (gp_ask_text_t){none, 0}, &is_new);
    gp_trace_record_t *record = is_new ? gp_writer_add(&capture->writer, GP_CHUNK_TRACES, sizeof(*record)) : NULL;
    if (record != NULL) {
        record->index = number;
        memcpy(record->id, id.bytes, sizeof(record->id));
    }
    return number;
}

// A row as as many samples as it was made of, or fewer where there are too many: their weights are the row's.
static int put_samples(capture_t *capture, const row_t *row, uint64_t share)
{
    bool is_new, is_nameless; // the stack's names have not arrived, or are not to be had any more
    uint32_t stack = number_of(&capture->stacks, row->stack, (gp_ask_text_t){row->stack.bytes, 0}, &is_nameless);
    uint32_t coro = number_of(&capture->coros, row->name, (gp_ask_text_t){row->name.bytes, 0}, &is_new);
    uint32_t trace = trace_of(capture, row->trace);
    if (coro == 0 || stack == 0)
        return -ENOMEM;
    if (is_new)
        put_coro(capture, coro, row->name);
    uint64_t count = (row->samples + share - 1) / share, given = 0, offset_s = row->at_s - capture->answer->first_s;
    count = count > 0 ? count : 1;
    for (uint64_t i = 0; i < count; i++) {
        gp_sample_record_t *sample = gp_writer_add(&capture->writer, GP_CHUNK_SAMPLES, sizeof(*sample));
        if (sample == NULL)
            return -ENOMEM;
        uint64_t upto = (uint64_t)((unsigned __int128)row->weight_ns * (i + 1) / count);
        sample->time_ns = row->at_s > 0 ? offset_s * 1000000000u + 1 : 1;
        sample->weight_ns = upto - given;
        sample->coro_id = coro;
        sample->thread = 1;
        sample->stack_id = stack;
        sample->trace = trace;
        sample->kind = row->state;
        given = upto;
        int result = flush_if_full(capture);
        if (result < 0)
            return result;
    }
    return 0;
}

// Call for each row of the samples.
static int each_row(capture_t *capture, int (*visit)(capture_t *, const row_t *, uint64_t share), uint64_t share)
{
    const gp_ask_bytes_t *bytes = &capture->answer->samples;
    gp_cursor_t cursor = gp_cursor_over(bytes->data, bytes->data + bytes->len);
    int result = 0;
    while (result == 0 && gp_cursor_more(&cursor)) {
        row_t row = read_row(&cursor);
        result = cursor.bad || row.state >= GP_KIND_COUNT ? -EBADMSG : visit(capture, &row, share);
    }
    return result;
}

static int count_samples(capture_t *capture, const row_t *row, uint64_t share)
{
    (void)share;
    capture->samples += row->samples;
    return 0;
}

static int put_first(capture_t *capture)
{
    static const char key[] = "exe", value[] = "fleet";
    size_t len = sizeof(key) + sizeof(value) - 2;
    gp_meta_record_t *meta = gp_writer_add(&capture->writer, GP_CHUNK_META, sizeof(*meta) + len);
    gp_thread_record_t *thread = gp_writer_add(&capture->writer, GP_CHUNK_THREADS, sizeof(*thread));
    if (meta == NULL || thread == NULL)
        return -ENOMEM;
    meta->key_len = sizeof(key) - 1;
    meta->value_len = sizeof(value) - 1;
    memcpy(meta + 1, key, sizeof(key) - 1);
    memcpy((char *)(meta + 1) + sizeof(key) - 1, value, sizeof(value) - 1);
    thread->index = 1;
    memcpy(thread->name, "any", 4);
    return 0;
}

static int put_last(capture_t *capture)
{
    gp_end_record_t *end = gp_writer_add(&capture->writer, GP_CHUNK_END, sizeof(*end));
    if (end == NULL)
        return -ENOMEM;
    end->time_ns = (capture->answer->last_s - capture->answer->first_s) * 1000000000u + GRAIN_NS;
    end->reason = GP_END_EXIT;
    return gp_writer_flush(&capture->writer);
}

static int write_all(capture_t *capture)
{
    int result = put_first(capture);
    if (result == 0)
        result = take_stacks(capture);
    if (result == 0)
        result = each_row(capture, count_samples, 1);
    if (result == 0)
        result = each_row(capture, put_samples, capture->samples / SAMPLES_MAX + 1);
    return result == 0 ? put_last(capture) : result;
}

static void free_table(table_t *table)
{
    free(table->items);
    gp_index_free(&table->index);
}

int gp_ask_write(const gp_ask_answer_t *answer, const char *path, const gp_ask_t *ask)
{
    capture_t capture = {.ask = ask, .answer = answer, .writer = GP_WRITER_INIT};
    gp_file_header_t header = {
        .magic = GP_FILE_MAGIC,
        .version = GP_FILE_VERSION,
        .header_bytes = sizeof(header),
        .start_realtime_ns = answer->first_s * 1000000000u,
        .elf_machine = 62,
        .clock = ask->is_wall ? PROF_CLOCK_WALL : PROF_CLOCK_CPU,
    };
    int result = gp_writer_open(&capture.writer, path, &header);
    if (result == 0)
        result = write_all(&capture);
    gp_writer_close(&capture.writer);
    free_table(&capture.functions);
    free_table(&capture.coros);
    free_table(&capture.traces);
    free_table(&capture.stacks);
    return result;
}
