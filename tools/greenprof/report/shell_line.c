// SPDX-License-Identifier: MIT
// Reading the shell's command lines. On a terminal libedit does it.
#include <editline/readline.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell.h"
#include "sort_key.h"

typedef struct names { // an enumeration of everything that can be completed
    size_t at;
    int kind;
} names_t;

static const char *next_command(names_t *names)
{
    if (names->kind == 0) {
        const char *name = gp_shell_commands[names->at++].name;
        if (name != NULL)
            return name;
        *names = (names_t){.kind = 1};
    }
    while (gp_options[names->at].name != NULL) {
        const char *name = gp_options[names->at++].name;
        if (gp_shell_option(name) == &gp_options[names->at - 1])
            return name;
    }
    return NULL;
}

static char *complete_command(const char *text, int state)
{
    static names_t names;
    const char *name;
    if (state == 0)
        names = (names_t){0};
    while ((name = next_command(&names)) != NULL)
        if (strncmp(name, text, strlen(text)) == 0)
            return strdup(name);
    return NULL;
}

static char *complete_sort(const char *text, int state)
{
    static const gp_sort_key_t *key;
    if (state == 0)
        key = gp_sort_keys;
    for (; key->name != NULL; key++)
        if (strncmp(key->name, text, strlen(text)) == 0)
            return strdup((key++)->name);
    return NULL;
}

static char **complete(const char *text, int start, int end)
{
    (void)end;
    if (start == 0)
        return rl_completion_matches(text, complete_command);
    if (strncmp(rl_line_buffer, "sort ", 5) == 0)
        return rl_completion_matches(text, complete_sort);
    if (strncmp(rl_line_buffer, "help ", 5) == 0)
        return rl_completion_matches(text, complete_command);
    return NULL; // files
}

static char *read_plain(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len = getline(&line, &size, stdin);
    if (len < 0) {
        free(line);
        return NULL;
    }
    if (len > 0 && line[len - 1] == '\n')
        line[len - 1] = '\0';
    return line;
}

char *gp_shell_read_line(const char *prompt)
{
    static bool prepared;
    fflush(stdout);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return read_plain();
    if (!prepared) {
        setlocale(LC_CTYPE, ""); // libedit counts characters; numbers stay as they are
        rl_readline_name = "greenprof";
        rl_attempted_completion_function = complete;
        prepared = true;
    }
    char *line = readline(prompt);
    if (line != NULL && line[strspn(line, " \t")] != '\0')
        add_history(line);
    return line;
}
