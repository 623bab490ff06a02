// SPDX-License-Identifier: MIT
#include "ship/send/clickhouse/arrived.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ship/rows/capture_names.h"
#include "ship/send/clickhouse/schema.h"

enum { QUERY_SIZE = 2048, TENANT_SIZE = 512, ANSWER_MAX = 256 << 20 };

// The next number of an answer, TabSeparated. Returns whether there was one.
static bool arrived_next_number(const char **at, uint64_t *number)
{
    char *end = (char *)*at;
    *number = *at != NULL ? strtoull(*at, &end, 10) : 0;
    bool is_there = end != *at;
    *at = end;
    return is_there;
}

// Batches with rows, none of which is known as arrived.
static int arrived_take_open(const char *at, gp_arrived_t *arrived, gp_capture_names_table_t *known)
{
    for (uint64_t batch; arrived_next_number(&at, &batch);) {
        if (gp_capture_names_get(known, batch) != NULL)
            continue;
        if (gp_grow(&arrived->open, &arrived->open_capacity, arrived->open_count, sizeof(*arrived->open)) < 0 ||
            gp_capture_names_put(known, batch, 1) < 0)
            return -ENOMEM;
        arrived->open[arrived->open_count++] = batch;
    }
    return 0;
}

static int arrived_take_pieces(const char *at, gp_arrived_t *arrived, gp_capture_names_table_t *known)
{
    for (gp_arrived_piece_t piece; arrived_next_number(&at, &piece.from);) {
        if (!arrived_next_number(&at, &piece.to) || !arrived_next_number(&at, &piece.batch))
            return -EBADMSG;
        if (gp_grow(&arrived->pieces, &arrived->capacity, arrived->count, sizeof(piece)) < 0 ||
            gp_capture_names_put(known, piece.batch, 1) < 0)
            return -ENOMEM;
        arrived->pieces[arrived->count++] = piece;
    }
    return 0;
}

// Rows of the process, of its capture's days; the store finds them by tenant and service.
static int arrived_ask_for_rows(gp_clickhouse_t *clickhouse, enum gp_schema_table table,
                                const gp_row_process_t *process, const char *tenant, gp_http_answer_t *answer,
                                char *error)
{
    char query[QUERY_SIZE];
    snprintf(query, sizeof(query),
             "SELECT DISTINCT batch FROM %s.greenprof_%s WHERE tenant = %s AND process = %" PRIu64
             " AND day >= toDate(%" PRIu64 ")",
             clickhouse->database, gp_schema_tables[table].name, tenant, process->id,
             process->start_ns / GP_ROW_S_NS / GP_ROW_DAY_S - 1);
    return gp_clickhouse_ask(clickhouse, query, ANSWER_MAX, answer, error);
}

static int arrived_ask_for_pieces(gp_clickhouse_t *clickhouse, const gp_row_process_t *process, const char *tenant,
                                  gp_http_answer_t *answer, char *error)
{
    char query[QUERY_SIZE];
    snprintf(query, sizeof(query),
             "SELECT DISTINCT from_byte, to_byte, batch FROM %s.greenprof_batches WHERE process = %" PRIu64
             " AND tenant = %s",
             clickhouse->database, process->id, tenant);
    return gp_clickhouse_ask(clickhouse, query, ANSWER_MAX, answer, error);
}

int gp_clickhouse_arrived(gp_clickhouse_t *clickhouse, const gp_row_process_t *process, gp_arrived_t *arrived,
                          char error[GP_FLEET_ERROR_SIZE])
{
    static const enum gp_schema_table tables[] = {GP_TABLE_SAMPLES, GP_TABLE_REQUESTS, GP_TABLE_SPANS};
    char tenant[TENANT_SIZE];
    gp_capture_names_table_t known = {0}; // numbers of batches
    gp_http_answer_t answer = {0};
    int result = gp_clickhouse_quote(tenant, tenant + sizeof(tenant), process->tenant) != NULL ? 0 : -EINVAL;
    if (result == 0)
        result = arrived_ask_for_pieces(clickhouse, process, tenant, &answer, error);
    if (result == 0)
        result = arrived_take_pieces(answer.text, arrived, &known);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && result == 0; i++) {
        gp_http_answer_free(&answer);
        result = arrived_ask_for_rows(clickhouse, tables[i], process, tenant, &answer, error);
        if (result == 0)
            result = arrived_take_open(answer.text, arrived, &known);
    }
    gp_http_answer_free(&answer);
    gp_capture_names_clear(&known);
    if (result < 0 && error[0] == '\0')
        snprintf(error, GP_FLEET_ERROR_SIZE, "what it has: %s", strerror(-result));
    return result;
}

int gp_clickhouse_has_arrived(gp_clickhouse_t *clickhouse, uint64_t batch, bool *has_arrived,
                              char error[GP_FLEET_ERROR_SIZE])
{
    char query[QUERY_SIZE], count[32];
    snprintf(query, sizeof(query), "SELECT count() FROM %s.greenprof_batches WHERE batch = %" PRIu64,
             clickhouse->database, batch);
    int result = gp_clickhouse_ask_text(clickhouse, query, count, sizeof(count), error);
    *has_arrived = result == 0 && strcmp(count, "0") != 0;
    return result;
}
