// SPDX-License-Identifier: MIT
// SQLite: the first step of a statement does most of the work; later steps are shown where they take long.
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

// SQLite's calls of itself, in many builds through the dynamic linker, are part of the program's call.
static bool sqlite_is_wanted(void)
{
    return gp_client_may_call(GP_CLIENT_SQLITE, PROF_SPAN_DATABASE);
}

static const char *sqlite_sql_of(step_t *real, void *statement)
{
    static gp_sibling_t function;
    sql_t *get = (sql_t *)(uintptr_t)gp_call_sibling(&function, (void *)(uintptr_t)real, "sqlite3_sql");
    return get != NULL && statement != NULL ? get(statement) : NULL;
}

// Has the statement had a step since it was reset? Where it cannot be asked, each step may be one of many.
static bool sqlite_is_later(step_t *real, void *statement)
{
    static gp_sibling_t function;
    step_t *is_busy = (step_t *)(uintptr_t)gp_call_sibling(&function, (void *)(uintptr_t)real, "sqlite3_stmt_busy");
    return is_busy == NULL || statement == NULL || is_busy(statement);
}

static void sqlite_add_statement(prof_span_t *span, const char *sql)
{
    char plain[STATEMENT_MAX];
    if (sql == NULL)
        return;
    gp_call_statement(sql, plain, sizeof(plain));
    prof_span_set(span, "db.statement", plain);
}

static void sqlite_add_result(prof_span_t *span, int result)
{
    char code[16];
    if (result == OK || result == ROW || result == DONE)
        return;
    snprintf(code, sizeof(code), "SQLITE %d", result);
    prof_span_fail(span, code, NULL);
}

static int sqlite_end(prof_span_t *span, const char *sql, int result)
{
    sqlite_add_statement(span, sql);
    sqlite_add_result(span, result);
    prof_span_end(span);
    return result;
}

static int sqlite_first_step(step_t *real, void *statement)
{
    const char *sql = sqlite_sql_of(real, statement);
    char verb[16];
    prof_span_t *span = gp_call_begin(GP_CLIENT_SQLITE, PROF_SPAN_DATABASE, gp_call_verb(sql, "step", verb));
    return sqlite_end(span, sql, real(statement));
}

// A later step takes fifty nanoseconds, often: it becomes a span when it has turned out to take long. Only then is it
// looked whether a request is open, which was open before as well.
static int sqlite_later_step(step_t *real, void *statement)
{
    gp_span_since_t since;
    char verb[16];
    gp_span_note(&since);
    int result = real(statement);
    if (__builtin_expect(gp_ticks_to_ns(gp_ticks() - since.ticks) < SLOW_NS, 1) || !sqlite_is_wanted())
        return result;
    const char *sql = sqlite_sql_of(real, statement);
    return sqlite_end(
        gp_call_begin_since(GP_CLIENT_SQLITE, PROF_SPAN_DATABASE, gp_call_verb(sql, "step", verb), &since), sql,
        result);
}

int sqlite3_step(void *statement)
{
    step_t *real = GP_ORIGINAL(step_t, "sqlite3_step");
    if (__builtin_expect(!gp_spans_are_wanted(GP_SPANS_BY_ANY), 1) || !gp_client_is_on(GP_CLIENT_SQLITE))
        return real(statement);
    bool is_first = !sqlite_is_later(real, statement);
    if (is_first && !sqlite_is_wanted())
        return real(statement);
    return is_first ? sqlite_first_step(real, statement) : sqlite_later_step(real, statement);
}

int sqlite3_exec(void *database, const char *sql, int (*callback)(void *, int, char **, char **), void *argument,
                 char **message)
{
    exec_t *real = GP_ORIGINAL(exec_t, "sqlite3_exec");
    char verb[16];
    if (!sqlite_is_wanted())
        return real(database, sql, callback, argument, message);
    prof_span_t *span = gp_call_begin(GP_CLIENT_SQLITE, PROF_SPAN_DATABASE, gp_call_verb(sql, "exec", verb));
    return sqlite_end(span, sql, real(database, sql, callback, argument, message));
}
