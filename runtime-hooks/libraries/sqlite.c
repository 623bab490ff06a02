// SPDX-License-Identifier: MIT
// SQLite: the first step of a statement does most of what it has to do; of the others, those that take long are shown.
//
// Source: sqlite3.h (SQLITE_ROW, SQLITE_DONE; sqlite3_stmt_busy: since 3.7.10).
#include "libraries/call_span.h"

#include <stdio.h>

enum { ROW = 100, DONE = 101, OK = 0, SLOW_NS = 100000, STATEMENT_MAX = 512 };

typedef int step_t(void *statement);
typedef int exec_t(void *database, const char *sql, int (*callback)(void *, int, char **, char **), void *argument,
                   char **message);
typedef const char *sql_t(void *statement);

PROF_API int sqlite3_step(void *statement);
PROF_API int sqlite3_exec(void *database, const char *sql, int (*callback)(void *, int, char **, char **),
                          void *argument, char **message);

// The span of the thread's latest sqlite3_exec(): in many builds that calls sqlite3_step() and itself through the
// dynamic linker.
static __thread uint64_t exec_span __attribute__((tls_model("initial-exec")));

// What SQLite calls itself is part of the call that the program made.
static bool is_wanted(void)
{
    uint64_t span = prof_span_current();
    return __builtin_expect(span != 0, 0) && span != exec_span && gp_call_is_on(GP_LIBRARY_SQLITE);
}

static void add_statement(prof_span_t *span, const char *sql)
{
    char plain[STATEMENT_MAX];
    if (sql == NULL)
        return;
    gp_call_statement(sql, plain, sizeof(plain));
    prof_span_set(span, "db.statement", plain);
}

static void add_result(prof_span_t *span, int result)
{
    char code[16];
    if (result == OK || result == ROW || result == DONE)
        return;
    snprintf(code, sizeof(code), "SQLITE %d", result);
    prof_span_fail(span, code, NULL);
}

static int end(prof_span_t *span, const char *sql, int result)
{
    add_statement(span, sql);
    add_result(span, result);
    prof_span_end(span);
    return result;
}

// Of a hundred nanoseconds, often: it becomes a span when it has turned out to take long.
static int later_step(step_t *real, void *statement, sql_t *sql_of)
{
    gp_span_since_t since;
    char verb[16];
    gp_span_note(&since);
    int result = real(statement);
    if (gp_ticks_to_ns(gp_ticks() - since.ticks) < SLOW_NS)
        return result;
    const char *sql = sql_of != NULL && statement != NULL ? sql_of(statement) : NULL;
    return end(gp_call_begin_since(GP_LIBRARY_SQLITE, PROF_SPAN_DATABASE, gp_call_verb(sql, "step", verb), &since), sql,
               result);
}

static int step(step_t *real, void *statement)
{
    static gp_sibling_t sql_function, busy_function;
    sql_t *sql_of = (sql_t *)(uintptr_t)gp_call_sibling(&sql_function, (void *)(uintptr_t)real, "sqlite3_sql");
    step_t *is_busy =
        (step_t *)(uintptr_t)gp_call_sibling(&busy_function, (void *)(uintptr_t)real, "sqlite3_stmt_busy");
    if (is_busy == NULL || statement == NULL || is_busy(statement))
        return later_step(real, statement, sql_of);
    const char *sql = sql_of != NULL ? sql_of(statement) : NULL;
    char verb[16];
    prof_span_t *span = gp_call_begin(GP_LIBRARY_SQLITE, PROF_SPAN_DATABASE, gp_call_verb(sql, "step", verb));
    return end(span, sql, real(statement));
}

int sqlite3_step(void *statement)
{
    step_t *real = GP_ORIGINAL(step_t, "sqlite3_step");
    return is_wanted() ? step(real, statement) : real(statement);
}

int sqlite3_exec(void *database, const char *sql, int (*callback)(void *, int, char **, char **), void *argument,
                 char **message)
{
    exec_t *real = GP_ORIGINAL(exec_t, "sqlite3_exec");
    char verb[16];
    if (!is_wanted())
        return real(database, sql, callback, argument, message);
    prof_span_t *span = gp_call_begin(GP_LIBRARY_SQLITE, PROF_SPAN_DATABASE, gp_call_verb(sql, "exec", verb));
    uint64_t around = exec_span;
    exec_span = prof_span_id(span);
    int result = real(database, sql, callback, argument, message);
    exec_span = around;
    return end(span, sql, result);
}
