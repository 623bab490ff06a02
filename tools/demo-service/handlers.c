// SPDX-License-Identifier: MIT
// The endpoints that need nothing but this process: /health, /report, /search.
#include "service.h"

#include <string.h>

#define REPORT_BY(column)                                                                                              \
    {                                                                                                                  \
        column, "SELECT region, " column ", count(*), sum(quantity),"                                                  \
                "       sum(quantity * price_cents) AS turnover"                                                       \
                "  FROM orders GROUP BY region, " column " ORDER BY turnover DESC"                                     \
    }

// Columns that reports may be grouped by, besides the region; the first is the default.
static const struct {
    const char *column, *sql;
} reports[] = {REPORT_BY("product"), REPORT_BY("customer")};

static const char *const search_sql = "SELECT id, customer, product, note FROM orders WHERE note LIKE '%' || ? || '%'"
                                      "  ORDER BY price_cents DESC LIMIT 200";

void handle_health(exchange_t *exchange)
{
    answer_json(exchange, json_pack("{s:s}", "status", "ok"));
}

static json_t *report_line(sqlite3_stmt *row)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:f}", "region", sqlite3_column_text(row, 0), "name",
                     sqlite3_column_text(row, 1), "orders", sqlite3_column_int(row, 2), "pieces",
                     sqlite3_column_int(row, 3), "turnover", sqlite3_column_double(row, 4) / 100);
}

static json_t *search_hit(sqlite3_stmt *row)
{
    return json_pack("{s:i, s:s, s:s, s:s}", "id", sqlite3_column_int(row, 0), "customer", sqlite3_column_text(row, 1),
                     "product", sqlite3_column_text(row, 2), "note", sqlite3_column_text(row, 3));
}

// A JSON array of the rows of a query with, or without, a parameter; NULL where it fails. Between rows other requests
// may run.
static json_t *query_rows(const exchange_t *exchange, const char *sql, const char *text,
                          json_t *(*row_to_json)(sqlite3_stmt *))
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(exchange->worker->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return NULL;
    if (text != NULL)
        sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    json_t *rows = json_array();
    while (sqlite3_step(statement) == SQLITE_ROW) {
        json_array_append_new(rows, row_to_json(statement));
        loop_yield_if_due();
    }
    sqlite3_finalize(statement);
    return rows;
}

void handle_report(exchange_t *exchange)
{
    char column[16] = "";
    const char *sql = reports[0].sql;
    exchange_query(exchange, "by", column, sizeof(column));
    for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
        if (strcmp(reports[i].column, column) == 0)
            sql = reports[i].sql;
    answer_json(exchange, json_pack("{s:o}", "lines", query_rows(exchange, sql, NULL, report_line)));
}

void handle_search(exchange_t *exchange)
{
    char text[100] = "";
    exchange_query(exchange, "q", text, sizeof(text));
    answer_json(exchange,
                json_pack("{s:s, s:o}", "query", text, "hits", query_rows(exchange, search_sql, text, search_hit)));
}
