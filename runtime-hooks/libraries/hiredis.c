// SPDX-License-Identifier: MIT
// hiredis: commands that wait for their reply. A command's first word is kept, and no argument.
//
// Source: hiredis.h of 0.14 to 1.2 (REDIS_REPLY_ERROR; `type` is the first member of redisReply).
#include "libraries/call_span.h"

#include <stdarg.h>
#include <stdio.h>

enum { REPLY_ERROR = 6 };

typedef void *vcommand_t(void *context, const char *format, va_list arguments);
typedef void *argv_t(void *context, int count, const char **arguments, const size_t *lengths);

PROF_API void *redisCommand(void *context, const char *format, ...);
PROF_API vcommand_t redisvCommand;
PROF_API argv_t redisCommandArgv;

static prof_span_t *hiredis_begin(const char *command)
{
    char verb[16];
    return gp_call_begin(GP_CLIENT_HIREDIS, PROF_SPAN_CACHE, gp_call_verb(command, "command", verb));
}

static void *hiredis_end(prof_span_t *span, void *reply)
{
    if (reply == NULL)
        prof_span_fail(span, "no reply", NULL);
    else if (*(const int *)reply == REPLY_ERROR)
        prof_span_fail(span, "error reply", NULL);
    prof_span_end(span);
    return reply;
}

static void *hiredis_command(vcommand_t *real, void *context, const char *format, va_list arguments)
{
    if (!gp_client_may_call(GP_CLIENT_HIREDIS, PROF_SPAN_CACHE))
        return real(context, format, arguments);
    prof_span_t *span = hiredis_begin(format);
    return hiredis_end(span, real(context, format, arguments));
}

void *redisCommand(void *context, const char *format, ...)
{
    vcommand_t *real = GP_ORIGINAL(vcommand_t, "redisvCommand");
    va_list arguments;
    va_start(arguments, format);
    void *reply = hiredis_command(real, context, format, arguments);
    va_end(arguments);
    return reply;
}

void *redisvCommand(void *context, const char *format, va_list arguments)
{
    return hiredis_command(GP_ORIGINAL(vcommand_t, "redisvCommand"), context, format, arguments);
}

void *redisCommandArgv(void *context, int count, const char **arguments, const size_t *lengths)
{
    argv_t *real = GP_ORIGINAL(argv_t, "redisCommandArgv");
    if (!gp_client_may_call(GP_CLIENT_HIREDIS, PROF_SPAN_CACHE))
        return real(context, count, arguments, lengths);
    prof_span_t *span = hiredis_begin(count > 0 && lengths == NULL ? arguments[0] : NULL);
    return hiredis_end(span, real(context, count, arguments, lengths));
}
