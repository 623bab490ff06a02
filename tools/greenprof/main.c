#include "command.h"

#include <greenprof/prof.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const gp_command_t gp_commands[] = {
    {"run", "run a program and record where its CPU time goes", gp_command_run},
    {"report", "show a capture as a table", gp_command_report},
    {"export", "write a capture in another format", gp_command_export},
    {"flamegraph", "write a capture as a flame graph", gp_command_flamegraph},
    {NULL, NULL, NULL},
};

static void message(const char *subject, const char *format, va_list arguments)
{
    fprintf(stderr, "greenprof: %s: ", subject);
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

int gp_help(const char *text)
{
    fputs(text, stdout);
    return gp_finish_stdout();
}

bool gp_parse_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *number)
{
    char *end;

    if (text[0] < '0' || text[0] > '9') // strtoull() takes signs and spaces
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < lo || value > hi)
        return false;
    *number = value;
    return true;
}

static int help(void)
{
    printf("usage: greenprof COMMAND [ARGUMENT...]\n\n"
           "A sampling profiler that knows coroutines.\n\n");
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        printf("  %-12s%s\n", command->name, command->what);
    printf("\n'greenprof COMMAND --help' says more about one.\n");
    return gp_finish_stdout();
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: greenprof COMMAND [ARGUMENT...]\nTry 'greenprof --help'.\n", stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return help();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("greenprof %d.%d\n", PROF_VERSION_MAJOR, PROF_VERSION_MINOR);
        return gp_finish_stdout();
    }
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        if (strcmp(argv[1], command->name) == 0)
            return command->run(argc - 1, argv + 1);
    fprintf(stderr, "greenprof: '%s' is no command\nTry 'greenprof --help'.\n", argv[1]);
    return EXIT_USAGE;
}
