// SPDX-License-Identifier: MIT
// libpq: the calls that wait for their result.
//
// Source: libpq-fe.h of PostgreSQL 15 (PQexec and its like; PGRES_BAD_RESPONSE, PGRES_FATAL_ERROR).
#include "libraries/call_span.h"

enum { BAD_RESPONSE = 5, FATAL_ERROR = 7, STATEMENT_MAX = 512 };

typedef void *exec_t(void *connection, const char *query);
typedef void *params_t(void *connection, const char *command, int count, const unsigned *types,
                       const char *const *values, const int *lengths, const int *formats, int result_format);
typedef void *prepared_t(void *connection, const char *name, int count, const char *const *values, const int *lengths,
                         const int *formats, int result_format);
typedef void *prepare_t(void *connection, const char *name, const char *query, int count, const unsigned *types);
typedef int status_t(const void *result);
typedef char *text_of_status_t(int status);

PROF_API exec_t PQexec;
PROF_API params_t PQexecParams;
PROF_API prepared_t PQexecPrepared;
PROF_API prepare_t PQprepare;

static prof_span_t *libpq_begin(const char *sql, const char *otherwise)
{
    char verb[16], plain[STATEMENT_MAX];
    prof_span_t *span = gp_call_begin(GP_CLIENT_LIBPQ, PROF_SPAN_DATABASE, gp_call_verb(sql, otherwise, verb));
    if (sql != NULL) {
        gp_call_statement(sql, plain, sizeof(plain));
        prof_span_set(span, "db.statement", plain);
    }
    return span;
}

// original: a function of the library.
static void *libpq_end(prof_span_t *span, void *result, const void *original)
{
    static gp_sibling_t status_function, text_function;
    status_t *status_of = (status_t *)(uintptr_t)gp_call_sibling(&status_function, original, "PQresultStatus");
    text_of_status_t *text_of = (text_of_status_t *)(uintptr_t)gp_call_sibling(&text_function, original, "PQresStatus");
    int status = status_of != NULL ? status_of(result) : 0;
    if (status == FATAL_ERROR || status == BAD_RESPONSE)
        prof_span_fail(span, text_of != NULL ? text_of(status) : "failed", NULL);
    prof_span_end(span);
    return result;
}

void *PQexec(void *connection, const char *query)
{
    exec_t *real = GP_ORIGINAL(exec_t, "PQexec");
    if (!gp_client_may_call(GP_CLIENT_LIBPQ, PROF_SPAN_DATABASE))
        return real(connection, query);
    prof_span_t *span = libpq_begin(query, "exec");
    return libpq_end(span, real(connection, query), (void *)(uintptr_t)real);
}

void *PQexecParams(void *connection, const char *command, int count, const unsigned *types, const char *const *values,
                   const int *lengths, const int *formats, int result_format)
{
    params_t *real = GP_ORIGINAL(params_t, "PQexecParams");
    if (!gp_client_may_call(GP_CLIENT_LIBPQ, PROF_SPAN_DATABASE))
        return real(connection, command, count, types, values, lengths, formats, result_format);
    prof_span_t *span = libpq_begin(command, "exec");
    return libpq_end(span, real(connection, command, count, types, values, lengths, formats, result_format),
                     (void *)(uintptr_t)real);
}

void *PQexecPrepared(void *connection, const char *name, int count, const char *const *values, const int *lengths,
                     const int *formats, int result_format)
{
    prepared_t *real = GP_ORIGINAL(prepared_t, "PQexecPrepared");
    if (!gp_client_may_call(GP_CLIENT_LIBPQ, PROF_SPAN_DATABASE))
        return real(connection, name, count, values, lengths, formats, result_format);
    prof_span_t *span = libpq_begin(NULL, "exec prepared");
    prof_span_set(span, "db.prepared", name);
    return libpq_end(span, real(connection, name, count, values, lengths, formats, result_format),
                     (void *)(uintptr_t)real);
}

void *PQprepare(void *connection, const char *name, const char *query, int count, const unsigned *types)
{
    prepare_t *real = GP_ORIGINAL(prepare_t, "PQprepare");
    if (!gp_client_may_call(GP_CLIENT_LIBPQ, PROF_SPAN_DATABASE))
        return real(connection, name, query, count, types);
    prof_span_t *span = libpq_begin(query, "prepare");
    return libpq_end(span, real(connection, name, query, count, types), (void *)(uintptr_t)real);
}
