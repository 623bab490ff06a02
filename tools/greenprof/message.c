// SPDX-License-Identifier: MIT
#include "message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "progress.h"

static void message_put_masked(const char *text)
{
    char *masked = text != NULL ? gp_secret_masked(text, "") : NULL;
    fputs(masked != NULL ? masked : "...", stderr);
    free(masked);
}

static void message_put_format(const char *format, va_list arguments)
{
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    message_put_masked(text);
    free(text);
}

static void message(const char *subject, const char *format, va_list arguments)
{
    gp_progress_clear();
    fflush(stdout); // where both are one terminal, in this order
    fputs("greenprof: ", stderr);
    message_put_masked(subject[0] != '\0' ? subject : "''");
    fputs(": ", stderr);
    message_put_format(format, arguments);
    fputc('\n', stderr);
}

void gp_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message_put_format(format, arguments);
    va_end(arguments);
}

int gp_fail(const char *subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message(subject, format, arguments);
    va_end(arguments);
    return EXIT_FAILED;
}

void gp_warn(const char *subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    message(subject, format, arguments);
    va_end(arguments);
}

int gp_usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    gp_progress_clear();
    va_start(arguments, format);
    fprintf(stderr, "greenprof %s: ", command);
    message_put_format(format, arguments);
    fprintf(stderr, "\nTry 'greenprof %s --help'.\n", command);
    va_end(arguments);
    return EXIT_USAGE;
}

int gp_finish_stdout(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return gp_fail("standard output", "%s", strerror(errno ? errno : EIO));
    return 0;
}
