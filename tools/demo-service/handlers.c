// SPDX-License-Identifier: MIT
// The endpoints that need nothing but this process: /health, /report, /search.
#include "handlers.h"

#include "database.h"
#include "respond.h"

#include <string.h>

#define REPORT_BY(column)                                                                                              \
    {                                                                                                                  \
        column, "SELECT region, " column ", count(*), sum(quantity),"                                                  \
                "       sum(quantity * price_cents) AS turnover"                                                       \
                "  FROM orders GROUP BY region, " column " ORDER BY turnover DESC"                                     \
    }

// What reports may be grouped by, besides the region; the first is the default.
static const struct {
    const char *column;
    const char *sql;
} reports[] = {REPORT_BY("product"), REPORT_BY("customer"), REPORT_BY("day")};

static const char *const search_sql = "SELECT id, customer, product, note FROM orders WHERE note LIKE '%' || ? || '%'"
                                      "  ORDER BY price_cents DESC LIMIT 200";

void handle_health(exchange_t *exchange)
{
    respond_json(exchange, json_pack("{s:s}", "status", "ok"));
}

static const char *text_column(sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    return text != NULL ? (const char *)text : "";
}

static json_t *report_line(sqlite3_stmt *row)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:f}", "region", text_column(row, 0), "name", text_column(row, 1), "orders",
                     sqlite3_column_int(row, 2), "pieces", sqlite3_column_int(row, 3), "turnover",
                     sqlite3_column_double(row, 4) / 100);
}

static json_t *search_hit(sqlite3_stmt *row)
{
    return json_pack("{s:i, s:s, s:s, s:s}", "id", sqlite3_column_int(row, 0), "customer", text_column(row, 1),
                     "product", text_column(row, 2), "note", text_column(row, 3));
}

// Makes a JSON array of the rows. Between rows other requests may run.
static json_t *rows_to_json(sqlite3_stmt *statement, json_t *(*row_to_json)(sqlite3_stmt *))
{
    json_t *rows = json_array();
    while (sqlite3_step(statement) == SQLITE_ROW) {
        json_array_append_new(rows, row_to_json(statement));
        loop_yield_if_due();
    }
    return rows;
}

static const char *choose_report(const exchange_t *exchange)
{
    char column[16];
    if (strstr(exchange->request.query, "by=") == NULL)
        return reports[0].sql;
    if (http_query(&exchange->request, "by", column, sizeof column))
        for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
            if (strcmp(reports[i].column, column) == 0)
                return reports[i].sql;
    return NULL;
}

void handle_report(exchange_t *exchange)
{
    const char *sql = choose_report(exchange);
    if (sql == NULL) {
        respond_error(exchange, 400, "reports are by=product, by=customer or by=day");
        return;
    }
    sqlite3_stmt *statement = database_prepare(exchange->worker->db, sql);
    if (statement == NULL) {
        respond_error(exchange, 500, "the query failed");
        return;
    }
    json_t *lines = rows_to_json(statement, report_line);
    sqlite3_finalize(statement);
    respond_json(exchange, json_pack("{s:o}", "lines", lines));
}

void handle_search(exchange_t *exchange)
{
    char text[100];
    if (!http_query(&exchange->request, "q", text, sizeof text)) {
        respond_error(exchange, 400, "say what to search: /search?q=TEXT");
        return;
    }
    sqlite3_stmt *statement = database_prepare(exchange->worker->db, search_sql);
    if (statement == NULL) {
        respond_error(exchange, 500, "the query failed");
        return;
    }
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    json_t *hits = rows_to_json(statement, search_hit);
    sqlite3_finalize(statement);
    respond_json(exchange, json_pack("{s:s, s:o}", "query", text, "hits", hits));
}
