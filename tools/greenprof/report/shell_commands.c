// SPDX-License-Identifier: MIT
// The shell's commands: those of Python's pstats browser, with its words, then greenprof's own.
// Source: ProfileBrowser in Lib/pstats.py of CPython 3.11.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "export_output.h"
#include "message.h"
#include "output_guard.h"
#include "print.h"
#include "shell.h"

#define ABOUT_ARGUMENTS                                                                                                \
    "Arguments may be:\n"                                                                                              \
    "* An integer maximum number of entries to print.\n"                                                               \
    "* A decimal fractional number between 0 and 1, controlling\n"                                                     \
    "  what fraction of selected entries to print.\n"                                                                  \
    "* A regular expression; only entries with function names\n"                                                       \
    "  that match it are printed.\n"

static bool is_loaded(const gp_shell_t *shell)
{
    if (!shell->loaded)
        printf("No statistics object is loaded.\n");
    return shell->loaded;
}

typedef struct words {
    gp_restriction_t *items;
    size_t count;
} words_t;

static words_t read_words(char *rest)
{
    words_t words = {.items = calloc(strlen(rest) / 2 + 2, sizeof(*words.items))};
    char *save = NULL;
    for (char *word = words.items != NULL ? strtok_r(rest, " \t", &save) : NULL; word != NULL;
         word = strtok_r(NULL, " \t", &save)) {
        gp_restriction_parse(&words.items[words.count], word);
        if (words.items[words.count].kind == GP_RESTRICT_BAD_FRACTION)
            printf("Fraction argument must be in [0, 1]\n");
        else
            words.count++;
    }
    return words;
}

static void free_words(words_t *words)
{
    for (size_t i = 0; i < words->count; i++)
        gp_restriction_free(&words->items[i]);
    free(words->items);
}

static void print_files(const gp_shell_t *shell)
{
    struct stat status;
    char when[32];
    for (size_t i = 0; i < shell->files.count; i++) {
        if (stat(shell->files.items[i], &status) == 0 && ctime_r(&status.st_mtime, when) != NULL) {
            when[strcspn(when, "\n")] = '\0';
            printf("%s    ", when);
        }
        gp_print_text(shell->files.items[i]);
        printf("\n");
    }
    printf("\n");
}

static int print_stats(const gp_stats_t *stats, gp_restrictions_t restrictions)
{
    printf("         %" PRIu64 " function calls ", stats->calls);
    if (stats->calls != stats->primitive_calls)
        printf("(%" PRIu64 " primitive calls) ", stats->primitive_calls);
    printf("in %.3f seconds\n\n", stats->total_s);
    return gp_stats_print(stats, restrictions);
}

static void print_with(gp_shell_t *shell, char *rest, int (*print)(const gp_stats_t *, gp_restrictions_t))
{
    words_t words = read_words(rest);
    if (shell->loaded && print == print_stats)
        print_files(shell);
    if (is_loaded(shell) &&
        (words.items == NULL || print(&shell->stats, (gp_restrictions_t){words.items, words.count}) < 0))
        gp_fail("report", "%s", strerror(ENOMEM));
    free_words(&words);
}

static void run_stats(gp_shell_t *shell, char *rest)
{
    print_with(shell, rest, print_stats);
}

static void run_callers(gp_shell_t *shell, char *rest)
{
    print_with(shell, rest, gp_stats_print_callers);
}

static void run_callees(gp_shell_t *shell, char *rest)
{
    print_with(shell, rest, gp_stats_print_callees);
}

// Make `files` the shell's, if they can be read.
static void take_files(gp_shell_t *shell, gp_texts_t files)
{
    if (!gp_shell_load(shell, &files)) {
        free(files.items);
        return;
    }
    free(shell->files.items);
    shell->files = files;
}

static void forget_order(gp_shell_t *shell)
{
    shell->sorts.count = 0;
    shell->reversed = shell->stripped = false;
}

static void run_read(gp_shell_t *shell, char *rest)
{
    gp_texts_t files = {0};
    gp_shell_t before = *shell;
    if (*rest == '\0' && shell->files.count == 0) {
        printf("No statistics object is current -- cannot reload.\n");
        return;
    }
    const char *name = *rest != '\0' ? gp_arena_text(&shell->arena, rest, strlen(rest)) : shell->files.items[0];
    forget_order(shell);
    if (name == NULL || gp_texts_add(&files, name) != 0)
        return;
    take_files(shell, files);
    if (shell->files.items == before.files.items) { // it could not be read
        shell->sorts = before.sorts;
        shell->reversed = before.reversed;
        shell->stripped = before.stripped;
    }
}

static void run_add(gp_shell_t *shell, char *rest)
{
    gp_texts_t files = {0};
    const char *name = gp_arena_text(&shell->arena, rest, strlen(rest));
    if (!is_loaded(shell) || name == NULL)
        return;
    for (size_t i = 0; i < shell->files.count; i++)
        gp_texts_add(&files, shell->files.items[i]);
    gp_texts_add(&files, name);
    shell->sorts.count = 0; // as in pstats, what is added is in no order
    shell->reversed = false;
    take_files(shell, files);
}

static void print_sort_keys(void)
{
    printf("Valid sort keys (unique prefixes are accepted):\n");
    for (const gp_sort_key_t *key = gp_sort_keys; key->name != NULL; key++)
        printf("%s -- %s\n", key->name, key->what);
}

static void run_sort(gp_shell_t *shell, char *rest)
{
    gp_sorts_t sorts = {0};
    char *save = NULL;
    bool good = *rest != '\0';
    if (!is_loaded(shell))
        return;
    for (char *word = strtok_r(rest, " \t", &save); word != NULL && good; word = strtok_r(NULL, " \t", &save)) {
        const gp_sort_key_t *key = gp_sort_key_find(word);
        good = key != NULL && sorts.count < GP_SORTS_MAX;
        if (good)
            sorts.keys[sorts.count++] = key;
    }
    if (!good) {
        print_sort_keys();
        return;
    }
    if (gp_stats_sort(&shell->stats, &sorts, false) < 0) {
        gp_fail("report", "%s", strerror(ENOMEM));
        return;
    }
    shell->sorts = sorts;
    shell->reversed = false;
}

static void run_reverse(gp_shell_t *shell, char *rest)
{
    (void)rest;
    if (!is_loaded(shell))
        return;
    gp_stats_reverse(&shell->stats);
    shell->reversed = !shell->reversed;
}

static void run_strip(gp_shell_t *shell, char *rest)
{
    (void)rest;
    if (!is_loaded(shell))
        return;
    if (gp_stats_strip(&shell->stats) < 0) {
        gp_fail("report", "%s", strerror(ENOMEM));
        return;
    }
    shell->stripped = true;
    shell->sorts.count = 0;
    shell->reversed = false;
}

static void run_quit(gp_shell_t *shell, char *rest)
{
    (void)rest;
    shell->over = true;
}

static void run_end(gp_shell_t *shell, char *rest)
{
    (void)rest;
    printf("\n");
    shell->over = true;
}

// greenprof's own: what is not a table of functions is taken from the captures themselves.
static void each_capture(gp_shell_t *shell, unsigned wants, unsigned by, void *context,
                         int (*act)(const gp_source_t *source, void *context))
{
    for (size_t i = 0; i < shell->files.count; i++) {
        gp_arguments_t arguments = shell->arguments;
        char *operands[] = {(char *)shell->files.items[i], NULL};
        gp_source_t source;
        arguments.operands = operands;
        arguments.operand_count = 1;
        arguments.by = by == GP_BY_TRACE ? "trace" : by == GP_BY_COROUTINE ? "coroutine" : NULL;
        if (gp_source_open(&source, &arguments, wants) != 0)
            return;
        if (act(&source, context) < 0)
            gp_fail(source.path, "%s", strerror(ENOMEM));
        gp_source_close(&source);
    }
}

typedef struct table_request {
    words_t words;
    bool header, groups;
} table_request_t;

static int print_groups(const gp_source_t *source, void *context)
{
    const table_request_t *request = context;
    gp_group_sums_t sums;
    gp_table_options_t table = {.restrictions = {request->words.items, request->words.count}};
    gp_report_t *report = gp_source_report_sums(source, &sums);
    int result = report != NULL ? 0 : -ENOMEM;
    table.sorts.keys[table.sorts.count++] = gp_sort_key_find("time");
    if (report != NULL && request->header)
        gp_report_print_header(source, report);
    if (report != NULL && request->groups)
        result = source->options.by == GP_BY_TRACE ? gp_report_print_traces(source, sums.items, &table)
                                                   : gp_report_print_coroutines(source, sums.items, &table);
    gp_report_free(report);
    free(sums.items);
    return result;
}

static void run_coroutines(gp_shell_t *shell, char *rest)
{
    table_request_t request = {.words = read_words(rest), .groups = true};
    if (is_loaded(shell) && request.words.items != NULL)
        each_capture(shell, 0, GP_BY_COROUTINE, &request, print_groups);
    free_words(&request.words);
}

static void run_traces(gp_shell_t *shell, char *rest)
{
    table_request_t request = {.words = read_words(rest), .groups = true};
    if (is_loaded(shell) && request.words.items != NULL)
        each_capture(shell, 0, GP_BY_TRACE, &request, print_groups);
    free_words(&request.words);
}

static void run_header(gp_shell_t *shell, char *rest)
{
    table_request_t request = {.header = true};
    (void)rest;
    if (is_loaded(shell))
        each_capture(shell, 0, GP_BY_NONE, &request, print_groups);
}

static void print_filter(const gp_shell_t *shell, const gp_option_t *option)
{
    const void *field = (const char *)&shell->arguments + option->offset;
    const gp_texts_t *texts = field;
    if (option->kind == GP_OPTION_TEXT && *(const char *const *)field != NULL)
        printf("%s %s\n", option->name, *(const char *const *)field);
    if ((option->kind == GP_OPTION_TEXTS || option->kind == GP_OPTION_REGEX) && texts->count > 0) {
        printf("%s", option->name);
        for (size_t i = 0; i < texts->count; i++)
            printf(" %s", texts->items[i]);
        printf("\n");
    }
}

static void run_filters(gp_shell_t *shell, char *rest)
{
    bool forget = strcmp(rest, "none") == 0;
    for (const gp_option_t *option = gp_options; option->name != NULL; option++) {
        if (gp_shell_option(option->name) != option)
            continue;
        if (forget)
            free(gp_option_forget(&shell->arguments, option).items);
        else
            print_filter(shell, option);
    }
    if (forget && shell->loaded)
        gp_shell_load(shell, &shell->files);
}

typedef struct export_request {
    const gp_exporter_t *exporter;
    const char *path;
} export_request_t;

static int export_one(const gp_source_t *source, void *context)
{
    const export_request_t *request = context;
    gp_export_source(source, request->exporter, request->path); // says what is wrong
    return 0;
}

static void run_export(gp_shell_t *shell, char *rest)
{
    char *save = NULL;
    const char *format = strtok_r(rest, " \t", &save), *path = strtok_r(NULL, "", &save);
    export_request_t request = {.exporter = format ? gp_exporter_find(format) : NULL};
    if (!is_loaded(shell))
        return;
    if (request.exporter == NULL || path == NULL) {
        printf("usage: export FORMAT FILE; formats:");
        for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++)
            printf(" %s", exporter->name);
        printf("\n");
        return;
    }
    if (shell->files.count > 1) {
        printf("Several captures are loaded; 'greenprof merge' makes one of them.\n");
        return;
    }
    request.path = path + strspn(path, " \t");
    if (gp_output_check(request.path, shell->files.items, shell->files.count) != 0)
        return;
    each_capture(shell, request.exporter->wants, GP_BY_NONE, &request, export_one);
}

static void run_stitch(gp_shell_t *shell, char *rest)
{
    bool *stitch = &shell->arguments.stitch;
    (void)rest;
    *stitch = !*stitch;
    if (shell->loaded && !gp_shell_load(shell, &shell->files))
        *stitch = !*stitch;
    printf("Stacks of creation are %s.\n", *stitch ? "shown" : "not shown");
}

static void run_help(gp_shell_t *shell, char *rest);

const gp_shell_command_t gp_shell_commands[] = {
    {"EOF", run_end, "Leave the profile browser.\n"},
    {"add", run_add, "Add profile info from given file to current statistics object.\n"},
    {"callees", run_callees, "Print callees statistics from the current stat object.\n" ABOUT_ARGUMENTS},
    {"callers", run_callers, "Print callers statistics from the current stat object.\n" ABOUT_ARGUMENTS},
    {"help", run_help, "Show help for a given command.\n"},
    {"quit", run_quit, "Leave the profile browser.\n"},
    {"read", run_read,
     "Read in profile data from a specified file.\n"
     "Without argument, reload the current file.\n"},
    {"reverse", run_reverse, "Reverse the sort order of the profiling report.\n"},
    {"sort", run_sort,
     "Sort profile data according to specified keys.\n"
     "(Typing `sort' without arguments lists valid keys.)\n"},
    {"stats", run_stats, "Print statistics from the current stat object.\n" ABOUT_ARGUMENTS},
    {"strip", run_strip, "Strip leading path information from filenames in the report.\n"},
    {"coroutines", run_coroutines, "Print the coroutines.\n" ABOUT_ARGUMENTS},
    {"export", run_export, "Write what is chosen to a file: export FORMAT FILE.\n"},
    {"filters", run_filters, "Show what chooses a part of the capture; 'filters none' chooses all of it again.\n"},
    {"header", run_header, "Show what the capture is, and what is missing in it.\n"},
    {"stitch", run_stitch, "Show stacks of creation above those of coroutines, or not any more: as --stitch.\n"},
    {"traces", run_traces, "Print the traces.\n" ABOUT_ARGUMENTS},
    {NULL, NULL, NULL},
};

static void print_first_line(const char *name, const char *text)
{
    printf("  %-12s%.*s\n", name, (int)strcspn(text, "\n"), text);
}

static void list_commands(void)
{
    printf("\nDocumented commands (type help <topic>):\n\n");
    for (const gp_shell_command_t *command = gp_shell_commands; command->name; command++)
        print_first_line(command->name, command->help);
    printf("\nThese choose a part of the capture; without an argument, all of it again:\n\n");
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (gp_shell_option(option->name) == option)
            printf("  %-12s%s\n", option->name, gp_option_value(option));
    printf("\n");
}

static void run_help(gp_shell_t *shell, char *rest)
{
    const gp_option_t *option = gp_shell_option(rest);
    (void)shell;
    if (*rest == '\0') {
        list_commands();
        return;
    }
    for (const gp_shell_command_t *command = gp_shell_commands; command->name; command++)
        if (strcmp(command->name, rest) == 0) {
            fputs(command->help, stdout);
            return;
        }
    if (option != NULL)
        printf("%s %s\n%s\n", option->name, gp_option_value(option), option->what);
    else
        printf("*** No help on %s\n", rest);
}
