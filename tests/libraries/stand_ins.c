// SPDX-License-Identifier: MIT
// Exports of libpq, libcurl and hiredis, so far as greenprof stands in between; without any server behind them.
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef struct result {
    int status;
} result_t;

static result_t *answer(const char *text)
{
    result_t *result = malloc(sizeof(*result));
    result->status = text != NULL && strstr(text, "bad") != NULL ? 7 : 2;
    return result;
}

void *PQexec(void *connection, const char *query);
void *PQexec(void *connection, const char *query)
{
    (void)connection;
    return answer(query);
}

void *PQexecParams(void *connection, const char *command, int count, const unsigned *types, const char *const *values,
                   const int *lengths, const int *formats, int result_format);
void *PQexecParams(void *connection, const char *command, int count, const unsigned *types, const char *const *values,
                   const int *lengths, const int *formats, int result_format)
{
    (void)connection, (void)count, (void)types, (void)values, (void)lengths, (void)formats;
    return result_format == 1 ? answer(command) : NULL; // all arguments came through
}

void *PQexecPrepared(void *connection, const char *name, int count, const char *const *values, const int *lengths,
                     const int *formats, int result_format);
void *PQexecPrepared(void *connection, const char *name, int count, const char *const *values, const int *lengths,
                     const int *formats, int result_format)
{
    (void)connection, (void)count, (void)values, (void)lengths, (void)formats;
    return result_format == 1 ? answer(name) : NULL;
}

void *PQprepare(void *connection, const char *name, const char *query, int count, const unsigned *types);
void *PQprepare(void *connection, const char *name, const char *query, int count, const unsigned *types)
{
    (void)connection, (void)name, (void)count, (void)types;
    return answer(query);
}

int PQresultStatus(const result_t *result);
int PQresultStatus(const result_t *result)
{
    return result != NULL ? result->status : 7;
}

const char *PQresStatus(int status);
const char *PQresStatus(int status)
{
    return status == 7 ? "PGRES_FATAL_ERROR" : "PGRES_TUPLES_OK";
}

int curl_easy_perform(const char *url);
int curl_easy_perform(const char *url)
{
    return strstr(url, "bad") != NULL ? 7 : 0;
}

int curl_easy_getinfo(const char *url, int what, ...);
int curl_easy_getinfo(const char *url, int what, ...)
{
    va_list arguments;
    va_start(arguments, what);
    void *place = va_arg(arguments, void *);
    va_end(arguments);
    if (what == 0x100001)
        *(const char **)place = url;
    else if (what == 0x200002)
        *(long *)place = strstr(url, "bad") != NULL ? 0 : 204;
    return 0;
}

void *redisvCommand(void *context, const char *format, va_list arguments);
void *redisvCommand(void *context, const char *format, va_list arguments)
{
    int *reply = malloc(sizeof(int));
    (void)context;
    *reply = strchr(format, '%') != NULL && strcmp(va_arg(arguments, const char *), "bad") == 0 ? 6 : 5;
    return reply;
}

void *redisCommand(void *context, const char *format, ...);
void *redisCommand(void *context, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    void *reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    return reply;
}

void *redisCommandArgv(void *context, int count, const char **arguments, const size_t *lengths);
void *redisCommandArgv(void *context, int count, const char **arguments, const size_t *lengths)
{
    (void)context, (void)count, (void)arguments, (void)lengths;
    return NULL;
}
