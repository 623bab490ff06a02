// SPDX-License-Identifier: MIT
// The shell's state: which files, what of them, in which order.
#include "shell.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/formats.h"
#include "message.h"

enum { PROMPT_SIZE = 256 };

typedef struct adding {
    gp_stats_t stats;
    const char *clock;
    bool has_some; // of what was chosen, in one of the files
} adding_t;

// Returns 0, or an exit status with a message.
static int add_report(adding_t *adding, const gp_source_t *source, bool is_last)
{
    const char *notes[GP_PSTATS_NOTES_MAX];
    gp_report_t *report = gp_source_report(source, &source->options);
    int result = report != NULL ? gp_stats_add_report(&adding->stats, report) : -1;
    if (result == 0) {
        size_t count = gp_pstats_notes(report, notes);
        for (size_t i = 0; i < count && result == 0; i++)
            result = gp_stats_add_note(&adding->stats, notes[i]);
    }
    int status = result < 0 ? gp_source_fail(source, report != NULL ? ENOMEM : errno) : 0;
    adding->has_some |= status == 0 && !gp_report_is_empty(report);
    if (status == 0 && is_last && !adding->has_some)
        status = gp_source_check_part(source, report);
    gp_report_free(report);
    return status;
}

// What is added to a table is of the clock of what is in it: that of the first file, unless `clock` says so before.
static int add_file(adding_t *adding, const gp_shell_t *shell, const char *file, bool is_last)
{
    gp_arguments_t one = shell->arguments;
    char *operands[] = {(char *)file, NULL};
    gp_source_t source;
    one.operands = operands;
    one.operand_count = 1;
    one.clock = adding->clock;
    int status = gp_source_open(&source, &one, 0);
    if (status != 0)
        return status;
    adding->clock = source.options.measure == GP_MEASURE_WALL ? "wall" : "cpu";
    status = add_report(adding, &source, is_last);
    if (!shell->loaded) // once is enough
        gp_source_warn_changed(&source);
    gp_source_close(&source);
    return status;
}

bool gp_shell_load(gp_shell_t *shell, const gp_texts_t *files)
{
    adding_t adding = {.clock = shell->arguments.clock};
    int status = 0;
    for (size_t i = 0; i < files->count && status == 0; i++)
        status = add_file(&adding, shell, files->items[i], i + 1 == files->count);
    if (status == 0 && shell->stripped && gp_stats_strip(&adding.stats) < 0)
        status = -1;
    if (status == 0 && shell->sorts.count > 0 && gp_stats_sort(&adding.stats, &shell->sorts, false) < 0)
        status = -1;
    if (status != 0) {
        gp_stats_free(&adding.stats);
        return false;
    }
    if (shell->reversed)
        gp_stats_reverse(&adding.stats);
    gp_stats_free(&shell->stats);
    shell->stats = adding.stats;
    shell->loaded = true;
    return true;
}

// "read", "Read"? Names are as they are written: letters, digits and '_', as Python's cmd has it.
static size_t name_len(const char *line)
{
    size_t len = 0;
    while (isalnum((unsigned char)line[len]) || line[len] == '_')
        len++;
    return len;
}

static char *trimmed(char *text)
{
    text += strspn(text, " \t\r\n");
    for (size_t len = strlen(text); len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL; len--)
        text[len - 1] = '\0';
    return text;
}

// Set an option to the words of `rest`, to all of it where it is a regular expression.
static int set_words(gp_shell_t *shell, const gp_option_t *option, const char *rest)
{
    char *copy = gp_arena_text(&shell->arena, rest, strlen(rest)), *save = NULL;
    int status = 0;
    if (copy == NULL)
        return gp_fail("report", "not enough memory");
    if (*copy == '\0')
        return 0;
    if (option->kind != GP_OPTION_TEXTS)
        return gp_option_set(&shell->arguments, option, copy);
    for (char *word = strtok_r(copy, " \t", &save); word != NULL && status == 0; word = strtok_r(NULL, " \t", &save))
        status = gp_option_set(&shell->arguments, option, word);
    return status;
}

static void set_option(gp_shell_t *shell, const gp_option_t *option, const char *rest)
{
    gp_arguments_t before = shell->arguments;
    gp_texts_t old = gp_option_forget(&shell->arguments, option);
    int status = set_words(shell, option, rest);
    if (status == 0 && (!shell->loaded || gp_shell_load(shell, &shell->files))) {
        free(old.items);
        return;
    }
    free(gp_option_forget(&shell->arguments, option).items);
    shell->arguments = before;
}

const gp_option_t *gp_shell_option(const char *name)
{
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (option->chooses && gp_option_applies(option, &gp_commands[GP_COMMAND_REPORT]) &&
            strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

static const gp_shell_command_t *find_command(const char *name)
{
    for (const gp_shell_command_t *command = gp_shell_commands; command->name != NULL; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

void gp_shell_run(gp_shell_t *shell, char *line)
{
    char name[32];
    line = trimmed(line);
    bool question = line[0] == '?';
    size_t len = question ? 1 : name_len(line);
    snprintf(name, sizeof(name), "%.*s", (int)len, line);
    const gp_shell_command_t *command = find_command(question ? "help" : name);
    const gp_option_t *option = command == NULL ? gp_shell_option(name) : NULL;
    if (len >= sizeof(name) || (command == NULL && option == NULL))
        printf("*** Unknown syntax: %s\n", line);
    else if (command != NULL)
        command->run(shell, trimmed(line + len));
    else
        set_option(shell, option, trimmed(line + len));
}

// An empty line does the last command again.
static void run_line(gp_shell_t *shell, char *line, char **last)
{
    const char *text = trimmed(line);
    if (*text != '\0') {
        free(*last);
        *last = strdup(text);
    }
    char *copy = *last != NULL ? strdup(*last) : NULL;
    if (copy != NULL)
        gp_shell_run(shell, copy);
    free(copy);
}

static void read_lines(gp_shell_t *shell)
{
    char prompt[PROMPT_SIZE], *line, *last = NULL;
    while (!shell->over) {
        snprintf(prompt, sizeof(prompt), "%s%% ", shell->files.count > 0 ? shell->files.items[0] : "");
        line = gp_shell_read_line(prompt);
        if (line == NULL) {
            printf("\n");
            break;
        }
        run_line(shell, line, &last);
        free(line);
    }
    free(last);
}

// The shell changes its options: it has texts of its own.
static int copy_options(gp_arguments_t *copy, const gp_arguments_t *from)
{
    gp_arguments_t original = *from;
    int status = 0;
    *copy = *from;
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        gp_option_forget(copy, option);
    for (const gp_option_t *option = gp_options; option->name != NULL; option++) {
        const gp_texts_t *texts = gp_option_texts(&original, option);
        if (!gp_option_applies(option, from->command))
            continue;
        if (texts == NULL && option->kind == GP_OPTION_TEXT)
            *(const char **)((char *)copy + option->offset) =
                *(const char *const *)((const char *)from + option->offset);
        for (size_t i = 0; texts != NULL && i < texts->count && status == 0; i++)
            status = gp_texts_add(gp_option_texts(copy, option), texts->items[i]);
    }
    return status;
}

static int start(gp_shell_t *shell, const gp_arguments_t *arguments)
{
    int status = copy_options(&shell->arguments, arguments);
    for (int i = 0; i < arguments->operand_count && status == 0; i++)
        status = gp_texts_add(&shell->files, arguments->operands[i]);
    if (status == 0 && shell->files.count > 0 && !gp_shell_load(shell, &shell->files))
        status = EXIT_FAILED;
    return status;
}

int gp_shell(const gp_arguments_t *arguments)
{
    gp_shell_t shell = {0};
    bool terminal = isatty(STDIN_FILENO);
    int status = start(&shell, arguments);
    if (status == 0) {
        if (terminal)
            printf("Welcome to the profile statistics browser.\n");
        read_lines(&shell);
        if (terminal)
            printf("Goodbye.\n");
        status = gp_finish_stdout();
    }
    gp_stats_free(&shell.stats);
    gp_options_free(&shell.arguments);
    free(shell.files.items);
    gp_arena_free(&shell.arena);
    return status;
}
