// SPDX-License-Identifier: MIT
// Calls libraries, within a request and outside of one.
#include <greenprof/trace.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOW_ROW = 4, SLOW_NS = 20000000 };

void *PQexec(void *connection, const char *query);
void *PQexecParams(void *connection, const char *command, int count, const unsigned *types, const char *const *values,
                   const int *lengths, const int *formats, int result_format);
void *PQexecPrepared(void *connection, const char *name, int count, const char *const *values, const int *lengths,
                     const int *formats, int result_format);
void *PQprepare(void *connection, const char *name, const char *query, int count, const unsigned *types);
int curl_easy_perform(const char *url);
void *redisCommand(void *context, const char *format, ...);
void *redisCommandArgv(void *context, int count, const char **arguments, const size_t *lengths);

// Returns the number of rows.
static int select_all(sqlite3 *database)
{
    sqlite3_stmt *statement;
    int rows = 0;
    sqlite3_prepare_v2(database, "SELECT name FROM t WHERE name <> 'secret' AND id > 0", -1, &statement, NULL);
    while (sqlite3_step(statement) == SQLITE_ROW)
        rows++;
    sqlite3_finalize(statement);
    return rows;
}

static int use_all(void)
{
    sqlite3 *database;
    const char *words[] = {"MGET", "a"};
    sqlite3_open(":memory:", &database);
    sqlite3_exec(database, "CREATE TABLE t(id INTEGER, name TEXT)", NULL, NULL, NULL);
    sqlite3_exec(database, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'secret')", NULL, NULL, NULL);
    sqlite3_exec(database, "NONSENSE", NULL, NULL, NULL);
    int rows = select_all(database);
    sqlite3_close(database);
    free(PQexec(NULL, "select 1"));
    free(PQexec(NULL, "update bad set x = 1"));
    void *result = PQexecParams(NULL, "delete from t where id = $1", 0, NULL, NULL, NULL, NULL, 1);
    int good = result != NULL;
    free(result);
    result = PQexecPrepared(NULL, "mine", 0, NULL, NULL, NULL, 1);
    good += result != NULL;
    free(result);
    free(PQprepare(NULL, "mine", "insert into t values ($1)", 0, NULL));
    good += curl_easy_perform("https://user:secret@host/path?token=secret") == 0;
    good += curl_easy_perform("https://bad/#secret") == 7;
    free(redisCommand(NULL, "GET key"));
    free(redisCommand(NULL, "set %s", "bad"));
    redisCommandArgv(NULL, 2, words, NULL);
    return rows == 2 && good == 4 ? 0 : 1;
}

// The argument; for one row it takes long.
static void echo(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct timespec start, now;
    int value = count == 1 ? sqlite3_value_int(values[0]) : 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (value == SLOW_ROW && (now.tv_sec - start.tv_sec) * 1000000000ll + (now.tv_nsec - start.tv_nsec) < SLOW_NS);
    sqlite3_result_int(context, value);
}

// Five rows, of which one, not the first, takes long.
static int use_slow_row(void)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    int rows = 0;
    sqlite3_open(":memory:", &database);
    sqlite3_create_function(database, "echo", 1, SQLITE_UTF8, NULL, echo, NULL, NULL);
    sqlite3_prepare_v2(database, "SELECT echo(column1) FROM (VALUES (1), (2), (3), (4), (5))", -1, &statement, NULL);
    while (sqlite3_step(statement) == SQLITE_ROW)
        rows++;
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return rows == 5 ? 0 : 1;
}

static int run_slow_row(void)
{
    prof_span_t *request = prof_span_begin(PROF_SPAN_REQUEST, "request", NULL);
    int inside = use_slow_row();
    prof_span_end(request);
    printf("%d\n", inside);
    return inside;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "slow-row") == 0)
        return run_slow_row();
    int outside = use_all();
    prof_span_t *request = prof_span_begin(PROF_SPAN_REQUEST, "request", NULL);
    int inside = use_all();
    prof_span_end(request);
    printf("%d %d\n", outside, inside);
    return outside + inside;
}
