// SPDX-License-Identifier: MIT
#include "ship/send/clickhouse_arrived.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ship/rows/known.h"
#include "ship/send/clickhouse_schema.h"

enum { QUERY_SIZE = 2048, TENANT_SIZE = 512, DAY_S = 86400, LINE_SIZE = 128 };

typedef struct lines { // of an answer: numbers with tabs between
    char text[LINE_SIZE];
    size_t len;
    int (*take)(void *context, const uint64_t *numbers);
    void *context;
} lines_t;

static int end_line(lines_t *lines)
{
    uint64_t numbers[3] = {0};
    char *at = lines->text;
    lines->text[lines->len] = '\0';
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && *at != '\0'; i++) {
        numbers[i] = strtoull(at, &at, 10);
        at += *at == '\t';
    }
    lines->len = 0;
    return *at == '\0' ? lines->take(lines->context, numbers) : -EBADMSG;
}

static int take_bytes(void *context, const void *bytes, size_t len)
{
    lines_t *lines = context;
    int result = 0;
    for (const char *at = bytes, *end = at + len; at < end && result == 0; at++)
        if (*at == '\n')
            result = end_line(lines);
        else if (lines->len + 1 < sizeof(lines->text))
            lines->text[lines->len++] = *at;
        else
            result = -EMSGSIZE;
    return result;
}

static int ask_numbers(gp_clickhouse_t *clickhouse, const char *query, int (*take)(void *, const uint64_t *),
                       void *context, char *error)
{
    lines_t lines = {.take = take, .context = context};
    return gp_clickhouse_ask(clickhouse, query, NULL, take_bytes, &lines, error);
}

static int take_piece(void *context, const uint64_t *numbers)
{
    gp_arrived_t *arrived = context;
    if (gp_grow(&arrived->pieces, &arrived->capacity, arrived->count, sizeof(*arrived->pieces)) < 0)
        return -ENOMEM;
    arrived->pieces[arrived->count++] = (gp_arrived_piece_t){numbers[0], numbers[1], numbers[2]};
    return 0;
}

typedef struct opens {
    gp_arrived_t *arrived;
    gp_known_table_t known; // numbers of batches
} opens_t;

static int take_open(void *context, const uint64_t *numbers)
{
    opens_t *opens = context;
    gp_arrived_t *arrived = opens->arrived;
    if (gp_known_get(&opens->known, numbers[0]) != NULL)
        return 0;
    if (gp_grow(&arrived->open, &arrived->open_capacity, arrived->open_count, sizeof(*arrived->open)) < 0)
        return -ENOMEM;
    arrived->open[arrived->open_count++] = numbers[0];
    return gp_known_put(&opens->known, numbers[0], 1);
}

// Rows of the process, of its capture's days; the store finds them by tenant and service.
static int ask_for_rows(gp_clickhouse_t *clickhouse, enum gp_schema_table table, const gp_row_process_t *process,
                        opens_t *opens, char *error)
{
    char query[QUERY_SIZE], tenant[TENANT_SIZE];
    if (gp_clickhouse_quote(tenant, tenant + sizeof(tenant), process->tenant) == NULL)
        return -EINVAL;
    snprintf(query, sizeof(query),
             "SELECT DISTINCT batch FROM %s.greenprof_%s WHERE tenant = %s AND process = %" PRIu64
             " AND day >= toDate(%" PRIu64 ")",
             gp_clickhouse_database(clickhouse), gp_schema_tables[table].name, tenant, process->id,
             process->start_ns / 1000000000 / DAY_S - 1);
    return ask_numbers(clickhouse, query, take_open, opens, error);
}

static int ask_for_pieces(gp_clickhouse_t *clickhouse, const gp_row_process_t *process, gp_arrived_t *arrived,
                          char *error)
{
    char query[QUERY_SIZE], tenant[TENANT_SIZE];
    if (gp_clickhouse_quote(tenant, tenant + sizeof(tenant), process->tenant) == NULL)
        return -EINVAL;
    snprintf(query, sizeof(query),
             "SELECT DISTINCT from_byte, to_byte, batch FROM %s.greenprof_batches WHERE process = %" PRIu64
             " AND tenant = %s",
             gp_clickhouse_database(clickhouse), process->id, tenant);
    return ask_numbers(clickhouse, query, take_piece, arrived, error);
}

int gp_clickhouse_arrived(gp_clickhouse_t *clickhouse, const gp_row_process_t *process, gp_arrived_t *arrived,
                          char error[GP_FLEET_ERROR_SIZE])
{
    static const enum gp_schema_table tables[] = {GP_TABLE_SAMPLES, GP_TABLE_REQUESTS, GP_TABLE_SPANS};
    opens_t opens = {.arrived = arrived};
    int result = ask_for_pieces(clickhouse, process, arrived, error);
    for (size_t i = 0; i < arrived->count && result == 0; i++)
        result = gp_known_put(&opens.known, arrived->pieces[i].batch, 1);
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && result == 0; i++)
        result = ask_for_rows(clickhouse, tables[i], process, &opens, error);
    gp_known_clear(&opens.known);
    if (result < 0 && error[0] == '\0')
        snprintf(error, GP_FLEET_ERROR_SIZE, "what it has: %s", strerror(-result));
    return result;
}

int gp_clickhouse_has_arrived(gp_clickhouse_t *clickhouse, uint64_t batch, bool *has_arrived,
                              char error[GP_FLEET_ERROR_SIZE])
{
    char query[QUERY_SIZE], count[32];
    snprintf(query, sizeof(query), "SELECT count() FROM %s.greenprof_batches WHERE batch = %" PRIu64,
             gp_clickhouse_database(clickhouse), batch);
    int result = gp_clickhouse_ask_text(clickhouse, query, count, sizeof(count), error);
    *has_arrived = result == 0 && strcmp(count, "0") != 0;
    return result;
}
