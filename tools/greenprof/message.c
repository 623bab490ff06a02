// SPDX-License-Identifier: MIT
#include "message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "progress.h"

static void message(const char *subject, const char *format, va_list arguments)
{
    gp_progress_clear();
    fflush(stdout); // where both are one terminal, in this order
    fprintf(stderr, "greenprof: %s: ", subject[0] != '\0' ? subject : "''");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
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
    vfprintf(stderr, format, arguments);
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
