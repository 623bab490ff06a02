// SPDX-License-Identifier: MIT
#include "ship/send/clickhouse/schema.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN_FIELD(since, type, column, value) {since, column, GP_TYPE_##type, GP_NONE_##type},
#define COLUMN_VALUE(since, type, column, value) {since, column, GP_TYPE_##type, NULL},
#define COLUMN_LIST(since, type, column, ...)    {since, column, "Array(" GP_TYPE_##type ")", "emptyArray" #type "()"},

#define COLUMNS(NAME, lower, ...)                                                                                      \
    static const gp_schema_column_t lower[] = {GP_##NAME##_COLUMNS(COLUMN_FIELD, COLUMN_VALUE, COLUMN_LIST){0}};
GP_ROW_TABLES(COLUMNS)

const gp_schema_table_info_t gp_schema_tables[GP_TABLES] = {
#define TABLE(NAME, lower, type, rows, count, day, engine, order) [GP_TABLE_##NAME] = {#lower, engine, order, lower},
    GP_ROW_TABLES(TABLE)};

typedef struct statement { // text that is put together
    char text[8192];
    size_t len;
    bool is_full;
} statement_t;

static void schema_add(statement_t *statement, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void schema_add(statement_t *statement, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    size_t left = sizeof(statement->text) - statement->len;
    int len = vsnprintf(statement->text + statement->len, left, format, values);
    va_end(values);
    if (len < 0 || (size_t)len >= left)
        statement->is_full = true;
    else
        statement->len += (size_t)len;
}

static void schema_add_columns(statement_t *statement, const gp_schema_table_info_t *table)
{
    schema_add(statement, "(");
    for (const gp_schema_column_t *column = table->columns; column->name != NULL; column++)
        schema_add(statement, "%s`%s` %s", column > table->columns ? ", " : "", column->name, column->type);
    schema_add(statement, ")");
}

static int schema_run(gp_clickhouse_t *clickhouse, const statement_t *statement, char *error)
{
    char answer[64];
    if (statement->is_full) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "a statement is too long");
        return -E2BIG;
    }
    return gp_clickhouse_ask_text(clickhouse, statement->text, answer, sizeof(answer), error);
}

// The table that questions go to on a cluster: all servers' parts together, without rows of its own.
static int schema_make_whole(gp_clickhouse_t *clickhouse, const gp_schema_table_info_t *table, char *error)
{
    const char *database = clickhouse->database, *cluster = clickhouse->cluster;
    statement_t all = {.len = 0};
    schema_add(&all, "CREATE TABLE IF NOT EXISTS %s.greenprof_%s ON CLUSTER %s ", database, table->name, cluster);
    schema_add_columns(&all, table);
    schema_add(&all, " ENGINE = Distributed(%s, %s, greenprof_%s_local, rand())", cluster, database, table->name);
    return schema_run(clickhouse, &all, error);
}

// On one server: the table. On a cluster: on all servers, the part of each, and over these what is asked.
static int schema_make_table(gp_clickhouse_t *clickhouse, const gp_schema_table_info_t *table, char *error)
{
    const char *database = clickhouse->database, *cluster = clickhouse->cluster;
    bool is_cluster = cluster[0] != '\0';
    statement_t local = {.len = 0};
    schema_add(&local, "CREATE TABLE IF NOT EXISTS %s.greenprof_%s%s ", database, table->name,
               is_cluster ? "_local" : "");
    if (is_cluster)
        schema_add(&local, "ON CLUSTER %s ", cluster);
    schema_add_columns(&local, table);
    if (is_cluster) {
        const char *parameter = strchr(table->engine, '(');
        size_t len = parameter != NULL ? (size_t)(parameter - table->engine) : strlen(table->engine);
        schema_add(&local, " ENGINE = Replicated%.*s('/clickhouse/tables/%s/{shard}/greenprof_%s', '{replica}'%s%s",
                   (int)len, table->engine, database, table->name, parameter != NULL ? ", " : "",
                   parameter != NULL ? parameter + 1 : ")");
    } else {
        schema_add(&local, " ENGINE = %s%s", table->engine, strchr(table->engine, '(') != NULL ? "" : "()");
    }
    if (strcmp(table->columns->name, "day") == 0)
        schema_add(&local, " PARTITION BY day");
    schema_add(&local, " ORDER BY %s", table->order);
    int result = schema_run(clickhouse, &local, error);
    return result == 0 && is_cluster ? schema_make_whole(clickhouse, table, error) : result;
}

static int schema_has_column(gp_clickhouse_t *clickhouse, const char *table, const char *column, bool *has, char *error)
{
    statement_t ask = {.len = 0};
    char count[32];
    schema_add(&ask,
               "SELECT count() FROM system.columns WHERE database = '%s' AND table = 'greenprof_%s' AND name = '%s'",
               clickhouse->database, table, column);
    int result = gp_clickhouse_ask_text(clickhouse, ask.text, count, sizeof(count), error);
    *has = result == 0 && strcmp(count, "0") != 0;
    return result;
}

// ClickHouse 18.16 knows no ADD COLUMN IF NOT EXISTS: where another shipper was faster, it is there in the end.
static int schema_add_column(gp_clickhouse_t *clickhouse, const char *table, const gp_schema_column_t *column,
                             char *error)
{
    const char *database = clickhouse->database, *cluster = clickhouse->cluster;
    statement_t statement = {.len = 0};
    bool has;
    int result = schema_has_column(clickhouse, table, column->name, &has, error);
    if (result < 0 || has)
        return result;
    schema_add(&statement, "ALTER TABLE %s.greenprof_%s ", database, table);
    if (cluster[0] != '\0')
        schema_add(&statement, "ON CLUSTER %s ", cluster);
    schema_add(&statement, "ADD COLUMN `%s` %s", column->name, column->type);
    result = schema_run(clickhouse, &statement, error);
    if (result < 0 && schema_has_column(clickhouse, table, column->name, &has, error) == 0 && has)
        return 0;
    return result;
}

// ALTER ON CLUSTER refuses a table that is not replicated itself.
static int schema_remake_whole(gp_clickhouse_t *clickhouse, const gp_schema_table_info_t *table, char *error)
{
    statement_t drop = {.len = 0};
    schema_add(&drop, "DROP TABLE IF EXISTS %s.greenprof_%s ON CLUSTER %s", clickhouse->database, table->name,
               clickhouse->cluster);
    int result = schema_run(clickhouse, &drop, error);
    return result == 0 ? schema_make_whole(clickhouse, table, error) : result;
}

static int schema_add_new_column(gp_clickhouse_t *clickhouse, const gp_schema_table_info_t *table,
                                 const gp_schema_column_t *column, char *error)
{
    char part[64];
    bool has, is_cluster = clickhouse->cluster[0] != '\0';
    snprintf(part, sizeof(part), "%s%s", table->name, is_cluster ? "_local" : "");
    int result = schema_add_column(clickhouse, part, column, error);
    if (result < 0 || !is_cluster)
        return result;
    result = schema_has_column(clickhouse, table->name, column->name, &has, error);
    return result == 0 && !has ? schema_remake_whole(clickhouse, table, error) : result;
}

// Add the columns that a store of this version lacks. The part of each server first: the whole asks for them.
static int schema_add_new_columns(gp_clickhouse_t *clickhouse, unsigned version, char *error)
{
    int result = 0;
    for (size_t i = 0; i < GP_TABLES; i++)
        for (const gp_schema_column_t *column = gp_schema_tables[i].columns; column->name != NULL && result == 0;
             column++)
            if (column->since > version)
                result = schema_add_new_column(clickhouse, &gp_schema_tables[i], column, error);
    return result;
}

static unsigned schema_latest_version(void)
{
    unsigned latest = 0;
    for (size_t i = 0; i < GP_TABLES; i++)
        for (const gp_schema_column_t *column = gp_schema_tables[i].columns; column->name != NULL; column++)
            latest = column->since > latest ? column->since : latest;
    return latest;
}

void gp_schema_put_read(FILE *text, enum gp_schema_table table, unsigned version)
{
    for (const gp_schema_column_t *column = gp_schema_tables[table].columns; column->name != NULL; column++)
        if (column->none != NULL)
            fprintf(text, ", %s", column->since <= version ? column->name : column->none);
}

static const gp_schema_column_t versions[] = {{1, "version", "UInt32", NULL}, {1, "made", "DateTime", NULL}, {0}};
static const gp_schema_table_info_t version_table = {"versions", "ReplacingMergeTree", "version", versions};

int gp_schema_version(gp_clickhouse_t *clickhouse, unsigned *version, char error[GP_FLEET_ERROR_SIZE])
{
    char query[512], text[32];
    *version = 0;
    snprintf(query, sizeof(query), "EXISTS TABLE %s.greenprof_versions", clickhouse->database);
    int result = gp_clickhouse_ask_text(clickhouse, query, text, sizeof(text), error);
    if (result < 0 || strcmp(text, "1") != 0)
        return result;
    snprintf(query, sizeof(query), "SELECT max(version) FROM %s.greenprof_versions", clickhouse->database);
    result = gp_clickhouse_ask_text(clickhouse, query, text, sizeof(text), error);
    *version = result == 0 ? (unsigned)strtoul(text, NULL, 10) : 0;
    return result;
}

static int schema_make_database(gp_clickhouse_t *clickhouse, char *error)
{
    const char *database = clickhouse->database, *cluster = clickhouse->cluster;
    statement_t make = {.len = 0};
    if (strcmp(database, "default") == 0)
        return 0;
    schema_add(&make, "CREATE DATABASE IF NOT EXISTS %s", database);
    if (cluster[0] != '\0')
        schema_add(&make, " ON CLUSTER %s", cluster);
    return schema_run(clickhouse, &make, error);
}

int gp_schema_make(gp_clickhouse_t *clickhouse, char error[GP_FLEET_ERROR_SIZE])
{
    unsigned version = 0, latest = schema_latest_version();
    int result = gp_schema_version(clickhouse, &version, error);
    if (result < 0 || version >= latest)
        return result;
    result = schema_make_database(clickhouse, error);
    for (size_t i = 0; i < GP_TABLES && result == 0; i++)
        result = schema_make_table(clickhouse, &gp_schema_tables[i], error);
    if (result == 0 && version > 0)
        result = schema_add_new_columns(clickhouse, version, error);
    if (result == 0)
        result = schema_make_table(clickhouse, &version_table, error);
    statement_t done = {.len = 0};
    schema_add(&done, "INSERT INTO %s.greenprof_versions (version, made) VALUES (%u, now())", clickhouse->database,
               latest);
    return result == 0 ? schema_run(clickhouse, &done, error) : result;
}
