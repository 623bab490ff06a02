// SPDX-License-Identifier: MIT
// Manual pages in man(7).
#include <greenprof/prof.h>
#include <string.h>

#include "make_docs.h"
#include "model/variables.h"

#define DATE "2026-11-21" // of the manual

// Text for roff: nothing of it is a request or an escape.
static void make_man_put_text(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text != '\0'; text++)
        switch (*text) {
        case '\\':
            fputs("\\e", out);
            break;
        case '-':
            fputs("\\-", out);
            break;
        case '\'':
            fputs("\\(aq", out);
            break;
        default:
            fputc(*text, out);
        }
}

// Sentences begin on lines of their own.
static void make_man_put_sentences(FILE *out, const char *text)
{
    char part[512];
    while (*text != '\0') {
        const char *end = strstr(text, ". ");
        size_t len = end != NULL ? (size_t)(end - text) + 1 : strlen(text);
        snprintf(part, sizeof(part), "%.*s", (int)len, text);
        make_man_put_text(out, part);
        fputc('\n', out);
        text += len;
        text += *text == ' ';
    }
}

static void make_man_put_option(FILE *out, const gp_option_t *option)
{
    const char *value = gp_option_value(option);
    char text[512];
    fputs(".TP\n.B ", out);
    if (option->letter != '\0')
        fprintf(out, "\\-%c, ", option->letter);
    fputs("\\-\\-", out);
    make_man_put_text(out, option->name);
    if (value != NULL) {
        fputs(" \\fI", out);
        make_man_put_text(out, value);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    make_man_put_sentences(out, gp_option_text(option, text, sizeof(text)));
    if (option->hint == GP_HINT_FORMAT || option->hint == GP_HINT_SORT) {
        fputs(".br\n", out);
        gp_docs_words(out, option, ' ');
        fputc('\n', out);
    }
}

static void make_man_put_options(FILE *out, const gp_command_t *command)
{
    fputs(".SH OPTIONS\n", out);
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (command != NULL && gp_option_applies(option, command))
            make_man_put_option(out, option);
}

static void make_man_put_setting(FILE *out, const char *name, const char *value, const char *standard,
                                 const char *sentence)
{
    fprintf(out, ".TP\n.BI %s= ", name);
    fputc('"', out);
    make_man_put_text(out, value);
    fputs("\"\n", out);
    make_man_put_sentences(out, sentence);
    if (standard != NULL)
        fprintf(out, "Default: %s.\n", standard);
}

static void make_man_put_environment(FILE *out)
{
#define PUT(id, value, low, high, standard, sentence)                                                                  \
    make_man_put_setting(out, "GREENPROF_" #id, value, standard, sentence);
    GP_SETTINGS(PUT)
}

static void make_man_put_commands(FILE *out)
{
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++) {
        fputs(".TP\n.B ", out);
        make_man_put_text(out, command->name);
        if (command->synopsis[0] != '\0') {
            fputs(" \\fI", out);
            make_man_put_text(out, command->synopsis);
            fputs("\\fR", out);
        }
        fputc('\n', out);
        make_man_put_text(out, command->what);
        fprintf(out, ".\nSee\n.BR greenprof\\-%s (1).\n", command->name);
    }
}

static void make_man_put_head(FILE *out, const gp_command_t *command)
{
    fprintf(out, ".\\\" Made from the tables of the command; see doc/man.\n.TH GREENPROF");
    for (const char *at = command ? command->name : ""; *at != '\0'; at++)
        fprintf(out, "%s%c", at == command->name ? "\\-" : "", *at - 'a' + 'A');
    fprintf(out, " 1 \"" DATE "\" \"greenprof %d.%d\" \"greenprof manual\"\n.SH NAME\n", PROF_VERSION_MAJOR,
            PROF_VERSION_MINOR);
    fprintf(out, "greenprof%s%s \\- ", command ? "\\-" : "", command ? command->name : "");
    make_man_put_text(out, command ? command->what : "sampling profiler that knows coroutines");
    fputs("\n.SH SYNOPSIS\n.B greenprof ", out);
    make_man_put_text(out, command ? command->name : "COMMAND");
    bool first = command != NULL && command->rest_is_program;
    fprintf(out, "\n%s", first ? ".RI [ OPTION ...]\n" : "");
    if (command == NULL)
        fputs(".RI [ ARGUMENT ...]\n", out);
    else if (command->synopsis[0] != '\0') {
        fputs(".I ", out);
        make_man_put_text(out, command->synopsis);
        fputc('\n', out);
    }
    if (command != NULL && !first)
        fputs(".RI [ OPTION ...]\n", out);
}

static void make_man_put_see_also(FILE *out, const gp_command_t *this)
{
    const gp_command_t *last = NULL;
    fputs(".SH SEE ALSO\n", out);
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        last = command != this ? command : last;
    if (this != NULL)
        fputs(".BR greenprof (1),\n", out);
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        if (command != this)
            fprintf(out, ".BR greenprof\\-%s (1)%s\n", command->name, command != last ? "," : "");
}

void gp_docs_man(FILE *out, const gp_command_t *command, FILE *body)
{
    char line[1024];
    bool has_options = false;
    make_man_put_head(out, command);
    while (body != NULL && fgets(line, sizeof(line), body) != NULL) {
        if (strcmp(line, "@OPTIONS@\n") == 0)
            make_man_put_options(out, command);
        else if (strcmp(line, "@COMMANDS@\n") == 0)
            make_man_put_commands(out);
        else if (strcmp(line, "@ENVIRONMENT@\n") == 0)
            make_man_put_environment(out);
        else
            fputs(line, out);
        has_options |= line[0] == '@';
    }
    if (!has_options)
        make_man_put_options(out, command);
    make_man_put_see_also(out, command);
}
