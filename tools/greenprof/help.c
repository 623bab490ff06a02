// SPDX-License-Identifier: MIT
// Help texts, made from the tables.
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "message.h"
#include "report/report.h"
#include "report/sort_key.h"

enum { TEXT_COLUMN = 29, WIDTH = 92 };

// Print words from column TEXT_COLUMN on, where the cursor is, and further lines below.
static void help_print_wrapped(const char *text)
{
    size_t column = TEXT_COLUMN;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column > TEXT_COLUMN && column + 1 + len > WIDTH) {
            printf("\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
        } else if (column > TEXT_COLUMN) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)len, text);
        column += len;
        text += len + (text[len] == ' ');
    }
    putchar('\n');
}

void gp_help_entry(const char *head, const char *text)
{
    int len = printf("%s", head);
    if (len + 2 > TEXT_COLUMN)
        printf("\n%*s", TEXT_COLUMN, "");
    else
        printf("%*s", TEXT_COLUMN - len, "");
    help_print_wrapped(text);
}

// Possible values of an option, where another table knows them.
static void help_print_known(gp_hint_t hint)
{
    char keys[256] = "";
    size_t len = 0;
    if (hint == GP_HINT_FORMAT)
        for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++)
            printf("%*s  %-12s%s\n", TEXT_COLUMN, "", exporter->name, exporter->what);
    if (hint != GP_HINT_SORT)
        return;
    for (const gp_sort_key_t *key = gp_sort_keys; key->name != NULL; key++)
        len += (size_t)snprintf(keys + len, sizeof(keys) - len, "%s%s", len ? ", " : "", key->name);
    printf("%*s", TEXT_COLUMN, "");
    help_print_wrapped(keys);
}

static void help_print_option(const gp_option_t *option)
{
    const char *value = gp_option_value(option);
    char letter[8] = "    ", head[128], text[512];
    if (option->letter != '\0')
        snprintf(letter, sizeof(letter), "-%c, ", option->letter);
    snprintf(head, sizeof(head), "  %s--%s%s%s", letter, option->name, value ? " " : "", value ? value : "");
    gp_help_entry(head, gp_option_text(option, text, sizeof(text)));
    help_print_known(option->hint);
}

int gp_help_command(const gp_command_t *command)
{
    bool first = command->rest_is_program;
    printf("usage: greenprof %s %s%s%s\n\n", command->name, first ? "[OPTION...] " : "", command->synopsis,
           first ? "" : " [OPTION...]");
    printf("%c%s.\n\n", command->what[0] - 'a' + 'A', command->what + 1);
    if (command->also != NULL)
        printf("'greenprof %s' is the same.\n\n", command->also);
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (gp_option_applies(option, command))
            help_print_option(option);
    return gp_finish_stdout();
}

int gp_help_overview(void)
{
    printf("usage: greenprof COMMAND [ARGUMENT...]\n\n"
           "A sampling profiler that knows coroutines.\n\n");
    for (const gp_command_t *command = gp_commands; command->name != NULL; command++)
        printf("  %-12s%s\n", command->name, command->what);
    printf("\n'greenprof help COMMAND' says more about one, 'greenprof help environment' what can be set\n"
           "without a command, 'greenprof --version' which greenprof this is.\n");
    return gp_finish_stdout();
}
