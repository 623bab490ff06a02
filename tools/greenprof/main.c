// SPDX-License-Identifier: MIT
#include <greenprof/prof.h>

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/threads.h"
#include "base/memory.h"
#include "command.h"
#include "command_line.h"
#include "message.h"
#include "nearest.h"
#include "progress.h"
#include "report/output_guard.h"
#include "report/output_kind.h"
#include "run/environment.h"
#include "symbol/symfs.h"

static const char *main_nearest_command(const char *word)
{
    gp_nearest_t nearest = {.word = word};
    const char *meaning = gp_nearest_meaning("", word);
    if (meaning != NULL)
        return meaning;
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++) {
        gp_nearest_try(&nearest, command->name);
        if (command->also != NULL)
            gp_nearest_try(&nearest, command->also);
    }
    return nearest.name;
}

static int main_help(const gp_arguments_t *arguments)
{
    if (arguments->operand_count == 0)
        return gp_help_overview();
    if (strcmp(arguments->operands[0], "environment") == 0)
        return gp_environment_help();
    const gp_command_t *command = gp_command_find(arguments->operands[0]);
    if (command != NULL)
        return gp_help_command(command);
    const char *word = arguments->operands[0], *near = main_nearest_command(word);
    return near != NULL ? gp_usage_error("help", "unknown command '%s'; did you mean '%s'?", word, near)
                        : gp_usage_error("help", "unknown command '%s'", word);
}

static int (*const runners[GP_COMMAND_COUNT])(const gp_arguments_t *) = {
    [GP_COMMAND_RUN] = gp_command_run,
    [GP_COMMAND_REPORT] = gp_command_report,
    [GP_COMMAND_EXPORT] = gp_command_export,
    [GP_COMMAND_FLAMEGRAPH] = gp_command_flamegraph,
    [GP_COMMAND_EXPLAIN] = gp_command_explain,
    [GP_COMMAND_VIEW] = gp_command_view,
    [GP_COMMAND_MERGE] = gp_command_merge,
    [GP_COMMAND_RECOVER] = gp_command_recover,
    [GP_COMMAND_SHIP] = gp_command_ship,
    [GP_COMMAND_DIFF] = gp_command_diff,
    [GP_COMMAND_TRACE] = gp_command_trace,
    [GP_COMMAND_INFO] = gp_command_info,
    [GP_COMMAND_RUNTIMES] = gp_command_runtimes,
    [GP_COMMAND_HELP] = main_help,
    [GP_COMMAND_COROUTINES] = gp_command_coroutines,
    [GP_COMMAND_ATTACH] = gp_command_attach,
    [GP_COMMAND_DETACH] = gp_command_detach,
    [GP_COMMAND_START] = gp_command_start,
    [GP_COMMAND_STOP] = gp_command_stop,
    [GP_COMMAND_DUMP] = gp_command_dump,
    [GP_COMMAND_STATUS] = gp_command_status,
    [GP_COMMAND_TOP] = gp_command_top,
    [GP_COMMAND_SYMBOLIZE] = gp_command_symbolize,
    [GP_COMMAND_MCP] = gp_command_mcp,
};

// A capture named '-' is standard input.
static void main_name_standard_input(const gp_arguments_t *arguments)
{
    static char name[] = "/dev/stdin";
    for (int i = 0; i < arguments->operand_count; i++)
        if (arguments->command->hint == GP_HINT_CAPTURE && strcmp(arguments->operands[i], "-") == 0)
            arguments->operands[i] = name;
}

static int main_use_symfs(const gp_texts_t *directories)
{
    for (size_t i = 0; i < directories->count; i++) {
        int error = gp_symfs_add(directories->items[i]);
        if (error == -ENOSPC)
            return gp_fail("--symfs", "more than %d", GP_SYMFS_MAX);
        if (error < 0)
            return gp_fail(directories->items[i], "%s", strerror(-error));
    }
    return 0;
}

static int main_run(const gp_command_t *command, int argc, char **argv)
{
    gp_arguments_t arguments;
    int status = gp_options_parse(&arguments, command, argc, argv);
    if (status == 0)
        main_name_standard_input(&arguments);
    if (status == 0 && !arguments.help)
        status = main_use_symfs(&arguments.symfs);
    if (status == 0 && !arguments.help)
        status = gp_output_kind_check(&arguments);
    if (status == 0 && !arguments.help && arguments.output != NULL && command->hint == GP_HINT_CAPTURE)
        status =
            gp_output_check(arguments.output, (const char *const *)arguments.operands, (size_t)arguments.operand_count);
    if (status == 0)
        status = arguments.help ? gp_help_command(command) : runners[command - gp_commands](&arguments);
    gp_progress_end();
    if (status == 0 && gp_memory_shortages() > 0)
        gp_warn(command->name, "memory was short: functions may lack names and lines");
    gp_options_free(&arguments);
    return status;
}

int gp_command_call(int argc, char **argv)
{
    optind = 0; // getopt's, which has read another line
    return main_run(gp_command_find(argv[0]), argc, argv);
}

// A capture, a process or a program in place of the command: its command is meant.
static const char *main_command_for(const char *word)
{
    const char *end = strrchr(word, '.');
    if (word[0] != '\0' && word[strspn(word, "0123456789")] == '\0')
        return "attach";
    if (end != NULL && strcmp(end, ".greenprof") == 0 && access(word, F_OK) == 0)
        return "report";
    struct stat status;
    bool is_program = stat(word, &status) == 0 && S_ISREG(status.st_mode) && access(word, X_OK) == 0;
    return !is_program ? NULL : strchr(word, '/') != NULL ? "run" : "run ./";
}

static int main_unknown_command(const char *word)
{
    const char *command = main_command_for(word), *near = main_nearest_command(word);
    gp_say("greenprof: unknown command '%s'", word);
    if (command != NULL)
        gp_say("; did you mean 'greenprof %s%s%s'?", command, command[strlen(command) - 1] == '/' ? "" : " ", word);
    else if (near != NULL)
        gp_say("; did you mean '%s'?", near);
    fputs("\nTry 'greenprof --help'.\n", stderr);
    return EXIT_USAGE;
}

// Large tables grow and go while a capture is read: what is freed goes back to the system, instead
// of to a heap in which it lies between what stays.
static void main_give_memory_back(void)
{
    enum { LARGE_BYTES = 1 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
}

int main(int argc, char **argv)
{
    main_give_memory_back();
    gp_threads_allow();
    gp_command_line_set(argc, argv);
    if (argc < 2) {
        fputs("usage: greenprof COMMAND [ARGUMENT...]\nTry 'greenprof --help'.\n", stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return gp_help_overview();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("greenprof %d.%d.%d\n", PROF_VERSION_MAJOR, PROF_VERSION_MINOR, PROF_VERSION_PATCH);
        return gp_finish_stdout();
    }
    const gp_command_t *command = gp_command_find(argv[1]);
    if (command != NULL)
        return main_run(command, argc - 1, argv + 1);
    return main_unknown_command(argv[1]);
}
