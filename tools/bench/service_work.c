// SPDX-License-Identifier: MIT
// A service's work between two waits: queries to SQLite, JSON of the rows (jansson), compression (zlib), each request
// on a ucontext coroutine of its own that yields to its loop between rows. A second thread sleeps, as services have
// some: glibc saves single-threaded programs some locks, a percent of this one's time, which any profiler with a thread
// of its own ends.
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <zlib.h>

#include "worker.h"

enum {
    STACK_BYTES = 256 << 10,
    COROUTINES = 8,
    ROWS = 4000,
    YIELD_ROWS = 16,
};

typedef struct request {
    ucontext_t context;
    void *stack;
    unsigned long number;
    int over;
} request_t;

static sqlite3 *database;
static ucontext_t loop;
static request_t requests[COROUTINES], *running;

static const char *const statements[] = {
    "SELECT region, product, count(*), sum(quantity), sum(price) FROM orders WHERE id % 4 = ? GROUP BY 1, 2 ORDER BY 5",
    "SELECT id, product, region, quantity, price FROM orders WHERE note LIKE '%' || ? || '%' LIMIT 120",
    "SELECT id, note, region, quantity, price FROM orders WHERE id % 40 = ? ORDER BY note",
};

static void yield_to_loop(void)
{
    swapcontext(&running->context, &loop);
}

static json_t *row_as_json(sqlite3_stmt *row)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:f}", "a", (const char *)sqlite3_column_text(row, 0), "b",
                     (const char *)sqlite3_column_text(row, 1), "c", (const char *)sqlite3_column_text(row, 2), "n",
                     sqlite3_column_int(row, 3), "v", sqlite3_column_double(row, 4));
}

static json_t *query(unsigned long number)
{
    sqlite3_stmt *statement;
    json_t *rows = json_array();
    if (sqlite3_prepare_v2(database, statements[number % 3], -1, &statement, NULL) != SQLITE_OK)
        abort();
    sqlite3_bind_int(statement, 1, (int)(number / 3 % 4));
    for (int i = 0; sqlite3_step(statement) == SQLITE_ROW; i++) {
        json_array_append_new(rows, row_as_json(statement));
        if (i % YIELD_ROWS == YIELD_ROWS - 1)
            yield_to_loop();
    }
    sqlite3_finalize(statement);
    return rows;
}

static void deflate_text(const char *text, size_t length)
{
    uLongf size = compressBound(length);
    Bytef *packed = malloc(size);
    if (packed == NULL || compress2(packed, &size, (const Bytef *)text, length, 6) != Z_OK)
        abort();
    free(packed);
}

static void serve(void)
{
    json_t *rows = query(running->number);
    char *text = json_dumps(rows, JSON_COMPACT);
    json_decref(rows);
    yield_to_loop();
    json_t *again = json_loads(text, 0, NULL);
    json_decref(again);
    deflate_text(text, strlen(text));
    free(text);
    running->over = 1;
    setcontext(&loop);
}

__attribute__((noinline)) static void begin(request_t *request, unsigned long number)
{
    getcontext(&request->context);
    request->context.uc_stack.ss_sp = request->stack;
    request->context.uc_stack.ss_size = STACK_BYTES;
    request->number = number;
    request->over = 0;
    makecontext(&request->context, serve, 0);
}

// Serve requests `from` up to `to`, which are at most COROUTINES, at once.
static void serve_together(unsigned long from, unsigned long to)
{
    unsigned long left = to - from;
    for (unsigned long i = from; i < to; i++)
        begin(&requests[i - from], i);
    while (left > 0) {
        for (unsigned long i = from; i < to; i++) {
            running = &requests[i - from];
            if (running->over)
                continue;
            swapcontext(&loop, &running->context);
            left -= running->over != 0;
        }
    }
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which, (void)figures;
    for (unsigned long at = 0; at < amount; at += COROUTINES)
        serve_together(at, at + COROUTINES < amount ? at + COROUTINES : amount);
}

static void *sleep_on(void *unused)
{
    for (;;)
        pause();
    return unused;
}

// Signals for the process are left to the thread that works.
static int start_second_thread(void)
{
    sigset_t all, old;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(&thread, NULL, sleep_on, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return error;
}

static int fill_database(void)
{
    static const char fill[] =
        "CREATE TABLE orders(id INTEGER PRIMARY KEY, region TEXT, product TEXT, quantity INTEGER, price REAL,"
        " note TEXT);"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO orders "
        "SELECT i, 'region ' || (i * 7 %% 6), 'product ' || (i * 31 %% 97), i %% 20 + 1, i * 37 %% 20000 / 100.0,"
        " 'note ' || (i * 7919 %% 10007) || ' left at the door' FROM n";
    char sql[sizeof(fill) + 16];
    snprintf(sql, sizeof(sql), fill, ROWS);
    if (sqlite3_open(":memory:", &database) != SQLITE_OK)
        return -1;
    return sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
    uint64_t start = worker_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < COROUTINES; i++) {
        requests[i].stack = malloc(STACK_BYTES);
        if (requests[i].stack == NULL)
            return 1;
    }
    if (start_second_thread() != 0)
        return 1;
    if (fill_database() != 0) {
        fprintf(stderr, "service_work: %s\n", sqlite3_errmsg(database));
        return 1;
    }
    int status = worker_serve(argc, argv, block);
    // The truth that profiles are held against: what the program did since profilers were loaded.
    fprintf(stderr, "own CPU ns: %lu\n", (unsigned long)(worker_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start));
    return status;
}
