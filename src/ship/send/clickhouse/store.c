// SPDX-License-Identifier: MIT
// The destination clickhouse://.
//
// Model: of each table one statement, and one for each day where the table has parts by day: such a statement is in the
// store as a whole or not at all. Stacks and processes may come twice (ReplacingMergeTree); of requests, spans and
// samples the store is asked by the batch's id before they are sent again.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "ship/rows/capture_names.h"
#include "ship/send/clickhouse/arrived.h"
#include "ship/send/clickhouse/block.h"
#include "ship/send/destination.h"

enum { STACKS_KEPT_MAX = 1 << 20, PROCESS_AGAIN_S = 60, ID_SIZE = 96, QUERY_SIZE = 2048 };

typedef struct store {
    gp_clickhouse_t *clickhouse;
    bool is_ready;                      // the tables are there
    bool is_settled;                    // no earlier shipper's statement runs there
    gp_capture_names_table_t stacks;    // by tenant and id: sent
    gp_capture_names_table_t processes; // when they were sent, seconds since 1970
    gp_block_t block;
} store_t;

static void store_close(void *destination)
{
    store_t *store = destination;
    gp_clickhouse_close(store->clickhouse);
    gp_capture_names_clear(&store->stacks);
    gp_capture_names_clear(&store->processes);
    gp_block_free(&store->block);
    free(store);
}

static int store_open(void **destination, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE])
{
    const char *unknown = gp_fleet_url_unknown(url, gp_clickhouse_option_names);
    if (unknown != NULL) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "has an unknown option '%s'", unknown);
        return -EINVAL;
    }
    store_t *store = calloc(1, sizeof(*store));
    int result = store != NULL ? gp_clickhouse_open(&store->clickhouse, url, error) : -ENOMEM;
    if (result < 0)
        free(store);
    else
        *destination = store;
    return result;
}

static uint64_t store_now_s(void)
{
    return (uint64_t)time(NULL);
}

// INSERT INTO greenprof_samples (day, ...) FORMAT Native
static void store_make_query(const store_t *store, enum gp_schema_table table, char query[QUERY_SIZE])
{
    const gp_schema_column_t *columns = gp_schema_tables[table].columns;
    int len = snprintf(query, QUERY_SIZE, "INSERT INTO %s.greenprof_%s%s (", store->clickhouse->database,
                       gp_schema_tables[table].name, store->clickhouse->cluster[0] != '\0' ? "_local" : "");
    for (size_t i = 0; columns[i].name != NULL; i++)
        len += snprintf(query + len, QUERY_SIZE - (size_t)len, "%s`%s`", i > 0 ? "," : "", columns[i].name);
    snprintf(query + len, QUERY_SIZE - (size_t)len, ") FORMAT Native");
}

static int store_choose_none(gp_rows_t *rows, const gp_batch_t *batches, size_t count)
{
    *rows = (gp_rows_t){
        .batches = batches, .first = calloc(2 * count + 1, sizeof(size_t)), .count = count, .now_s = store_now_s()};
    rows->rows = rows->first != NULL ? rows->first + count : NULL;
    return rows->first != NULL ? 0 : -ENOMEM;
}

// The rows of the earliest day from `from` on, behind those that are chosen. Returns that day, UINT32_MAX for none.
static uint32_t store_choose_day(gp_rows_t *rows, enum gp_schema_table table, uint32_t from)
{
    uint32_t earliest = UINT32_MAX;
    for (size_t b = 0; b < rows->count; b++) {
        size_t at = rows->first[b] += rows->rows[b];
        rows->rows[b] = 0;
        uint32_t day =
            at < gp_rows_count(table, &rows->batches[b]) ? gp_rows_day(table, &rows->batches[b], at) : UINT32_MAX;
        earliest = day >= from && day < earliest ? day : earliest;
    }
    for (size_t b = 0; b < rows->count && earliest != UINT32_MAX; b++) {
        size_t at = rows->first[b], count = gp_rows_count(table, &rows->batches[b]);
        while (at < count && gp_rows_day(table, &rows->batches[b], at) == earliest)
            at++;
        rows->rows[b] = at - rows->first[b];
    }
    return earliest;
}

// Is that day's part of the batches there?
static int store_batch_has_arrived(store_t *store, enum gp_schema_table table, uint64_t batch, uint32_t day,
                                   bool *arrived, char *error)
{
    char query[QUERY_SIZE], count[32];
    snprintf(query, sizeof(query),
             "SELECT count() FROM %s.greenprof_%s WHERE day = toDate(%" PRIu32 ") AND batch = %" PRIu64,
             store->clickhouse->database, gp_schema_tables[table].name, day, batch);
    int result = gp_clickhouse_ask_text(store->clickhouse, query, count, sizeof(count), error);
    *arrived = result == 0 && strcmp(count, "0") != 0;
    return result;
}

// The prefix of a group's query_ids in this database: another shipper may send the same batches to another one.
static void store_make_prefix(const store_t *store, char prefix[ID_SIZE], const gp_batch_t *batches)
{
    const char *database = store->clickhouse->database;
    snprintf(prefix, ID_SIZE, "greenprof-%016" PRIx64,
             gp_hash_more(batches[0].id, gp_hash_bytes(database, strlen(database))));
}

// Send the chosen rows, if there are any, as one statement.
static int store_insert(store_t *store, enum gp_schema_table table, const gp_rows_t *rows, uint32_t day, char *error)
{
    char query[QUERY_SIZE], prefix[ID_SIZE], id[ID_SIZE];
    size_t b = 0;
    while (b < rows->count && rows->rows[b] == 0)
        b++;
    if (b == rows->count)
        return 0;
    store_make_query(store, table, query);
    store_make_prefix(store, prefix, rows->batches);
    snprintf(id, ID_SIZE, "%.40s-%s-%" PRIu32, prefix, gp_schema_tables[table].name, day);
    gp_block_write(&store->block, table, rows);
    if (store->block.error != 0) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "%s", strerror(ENOMEM));
        return -ENOMEM;
    }
    return gp_clickhouse_insert(store->clickhouse, query, store->block.bytes, store->block.len, id, error);
}

// A table that must not have the same rows twice: a statement for each day.
static int store_send_table(store_t *store, enum gp_schema_table table, const gp_batch_t *batches, size_t count,
                            bool again, char *error)
{
    gp_rows_t rows;
    int result = store_choose_none(&rows, batches, count);
    for (uint32_t day = 0; result == 0 && (day = store_choose_day(&rows, table, day)) != UINT32_MAX;) {
        bool arrived = false;
        size_t b = 0;
        while (rows.rows[b] == 0)
            b++;
        if (again)
            result = store_batch_has_arrived(store, table, batches[b].id, day, &arrived, error);
        if (result == 0 && !arrived)
            result = store_insert(store, table, &rows, day, error);
    }
    free(rows.first);
    return result;
}

// A table that may: all rows of the chosen batches. chosen: NULL = each.
static int store_send_replaced(store_t *store, enum gp_schema_table table, const gp_batch_t *batches, size_t count,
                               const bool *chosen, char *error)
{
    gp_rows_t rows;
    int result = store_choose_none(&rows, batches, count);
    for (size_t b = 0; b < count && result == 0; b++)
        rows.rows[b] = chosen == NULL || chosen[b] ? gp_rows_count(table, &batches[b]) : 0;
    if (result == 0)
        result = store_insert(store, table, &rows, 0, error);
    free(rows.first);
    return result;
}

static int store_send_processes(store_t *store, const gp_batch_t *batches, size_t count, char *error)
{
    bool *chosen = calloc(count, sizeof(*chosen));
    int result = chosen != NULL ? 0 : -ENOMEM;
    for (size_t b = 0; b < count && result == 0; b++) {
        const uint64_t *sent = gp_capture_names_get(&store->processes, batches[b].process->id);
        chosen[b] = sent == NULL || batches[b].is_last || store_now_s() - *sent >= PROCESS_AGAIN_S;
    }
    if (result == 0)
        result = store_send_replaced(store, GP_TABLE_PROCESSES, batches, count, chosen, error);
    for (size_t b = 0; b < count && result == 0; b++)
        if (chosen[b])
            result = gp_capture_names_put(&store->processes, batches[b].process->id, store_now_s());
    free(chosen);
    return result;
}

static uint64_t store_stack_key(const gp_batch_t *batch, const gp_row_stack_t *stack)
{
    uint64_t key = gp_hash_more(gp_hash_bytes(batch->process->tenant, strlen(batch->process->tenant)), stack->id);
    return key != 0 ? key : 1;
}

// Stacks that this process has not sent yet, as batches of their own.
static int store_choose_stacks(store_t *store, const gp_batch_t *batches, size_t count, gp_batch_t *chosen,
                               gp_arena_t *arena)
{
    gp_capture_names_table_t seen = {0}; // within these batches
    int result = 0;
    for (size_t b = 0; b < count && result == 0; b++) {
        gp_row_stack_t *stacks = gp_arena_alloc(arena, (batches[b].stack_count + 1) * sizeof(*stacks));
        chosen[b] = (gp_batch_t){.id = batches[b].id, .process = batches[b].process, .stacks = stacks};
        if (stacks == NULL)
            result = -ENOMEM;
        for (size_t i = 0; i < batches[b].stack_count && result == 0; i++) {
            uint64_t key = store_stack_key(&batches[b], &batches[b].stacks[i]);
            if (batches[b].stacks[i].id == 0 || gp_capture_names_get(&store->stacks, key) != NULL ||
                gp_capture_names_get(&seen, key) != NULL)
                continue;
            stacks[chosen[b].stack_count++] = batches[b].stacks[i];
            result = gp_capture_names_put(&seen, key, 1);
        }
    }
    gp_capture_names_clear(&seen);
    return result;
}

static int store_send_stacks(store_t *store, const gp_batch_t *batches, size_t count, char *error)
{
    gp_arena_t arena = {0};
    gp_batch_t *chosen = calloc(count, sizeof(*chosen));
    int result = chosen != NULL ? store_choose_stacks(store, batches, count, chosen, &arena) : -ENOMEM;
    if (result == 0)
        result = store_send_replaced(store, GP_TABLE_STACKS, chosen, count, NULL, error);
    if (store->stacks.count > STACKS_KEPT_MAX)
        gp_capture_names_clear(&store->stacks);
    for (size_t b = 0; b < count && result == 0; b++)
        for (size_t i = 0; i < chosen[b].stack_count && result == 0; i++)
            result = gp_capture_names_put(&store->stacks, store_stack_key(&chosen[b], &chosen[b].stacks[i]), 1);
    free(chosen);
    gp_arena_free(&arena);
    return result;
}

static int store_result_for_shipper(int result)
{
    return result == -ECONNREFUSED || result == -ETIMEDOUT || result == -EIO ? -EAGAIN : result;
}

static int store_send(void *destination, const gp_batch_t *batches, size_t count, bool again,
                      char error[GP_FLEET_ERROR_SIZE])
{
    static const enum gp_schema_table tables[] = {GP_TABLE_REQUESTS, GP_TABLE_SPANS, GP_TABLE_SAMPLES};
    store_t *store = destination;
    char prefix[ID_SIZE];
    int result = store->is_ready ? 0 : gp_schema_make(store->clickhouse, error);
    store->is_ready = result == 0;
    store_make_prefix(store, prefix, batches);
    if (result == 0 && again)
        result = gp_clickhouse_settle(store->clickhouse, prefix, error);
    store->clickhouse->at = batches[0].id % store->clickhouse->host_count;
    if (result == 0)
        result = store_send_stacks(store, batches, count, error);
    if (result == 0)
        result = store_send_processes(store, batches, count, error);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && result == 0; i++)
        result = store_send_table(store, tables[i], batches, count, again, error);
    if (result == 0)
        result = store_send_replaced(store, GP_TABLE_BATCHES, batches, count, NULL, error);
    if (result < 0)
        store->is_ready = false; // tables may have been lost with the store
    return store_result_for_shipper(result);
}

// Wait, once, for statements of a shipper before this one; into missing tables it began none.
static int store_settle(store_t *store, char *error)
{
    unsigned version = 0;
    int result = store->is_settled ? 0 : gp_schema_version(store->clickhouse, &version, error);
    if (result == 0 && version > 0)
        result = gp_clickhouse_settle_all(store->clickhouse, error);
    if (result == 0)
        result = gp_schema_make(store->clickhouse, error);
    store->is_settled = result == 0;
    return result;
}

static int store_arrived(void *destination, const gp_batch_t *batch, gp_arrived_t *arrived,
                         char error[GP_FLEET_ERROR_SIZE])
{
    store_t *store = destination;
    int result = store_settle(store, error);
    if (result == 0)
        result = gp_clickhouse_arrived(store->clickhouse, batch->process, arrived, error);
    return store_result_for_shipper(result);
}

static int store_has_arrived(void *destination, uint64_t batch, bool *has_arrived, char error[GP_FLEET_ERROR_SIZE])
{
    return store_result_for_shipper(
        gp_clickhouse_has_arrived(((store_t *)destination)->clickhouse, batch, has_arrived, error));
}

static gp_http_t *store_http(const void *destination)
{
    return ((const store_t *)destination)->clickhouse->http;
}

static void store_describe_table(store_t *store, enum gp_schema_table table, const gp_batch_t *batch, FILE *out)
{
    size_t first = 0, count = gp_rows_count(table, batch);
    const gp_rows_t rows = {batch, &first, &count, 1, store_now_s()};
    gp_block_write(&store->block, table, &rows);
    fprintf(out, "  greenprof_%s: %zu rows, %zu bytes before compression\n   ", gp_schema_tables[table].name, count,
            store->block.len);
    for (const gp_schema_column_t *column = gp_schema_tables[table].columns; column->name != NULL; column++)
        fprintf(out, " %s", column->name);
    fputc('\n', out);
}

static void store_describe_samples(const gp_batch_t *batch, FILE *out)
{
    for (size_t i = 0; i < batch->sample_count && i < 3; i++) {
        const gp_row_sample_t *sample = &batch->samples[i];
        const gp_row_stack_t *stack = &batch->stacks[sample->stack];
        fprintf(out, "    e.g. coroutine \"%s\", endpoint \"%s\", %" PRIu64 " ns, %s%s%s\n", sample->coroutine,
                sample->endpoint, sample->weight_ns, stack->depth > 1 ? "... " : "",
                stack->depth > 0 ? stack->frames[stack->depth - 1].name : "[no stack]",
                stack->depth > 0 && stack->frames[stack->depth - 1].file[0] != '\0' ? " with its file and line" : "");
    }
}

static void store_describe(void *destination, const gp_batch_t *batch, FILE *out)
{
    const gp_row_process_t *process = batch->process;
    for (int table = 0; table < GP_TABLES; table++)
        store_describe_table(destination, (enum gp_schema_table)table, batch, out);
    store_describe_samples(batch, out);
    fprintf(out,
            "    process: tenant \"%s\", service \"%s\", version \"%s\", host \"%s\", pid %" PRIu32
            ", command \"%s\"\n",
            process->tenant, process->service, process->version, process->host, process->pid, process->command);
    for (size_t i = 0; i < process->label_count; i++)
        fprintf(out, "    label %s=%s\n", process->labels[i].key, process->labels[i].value);
    for (size_t i = 0; i < batch->span_count && i < 3; i++)
        fprintf(out, "    span \"%s\"%s\n", batch->spans[i].name,
                batch->spans[i].info_count > 0 ? " with its info" : "");
}

const gp_destination_kind_t gp_destination_clickhouse = {
    .open = store_open,
    .send = store_send,
    .arrived = store_arrived,
    .has_arrived = store_has_arrived,
    .http = store_http,
    .describe = store_describe,
    .close = store_close,
};
