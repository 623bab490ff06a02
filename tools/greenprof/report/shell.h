// SPDX-License-Identifier: MIT
// The interactive shell: `greenprof report -i`.
#pragma once

#include "tables.h"

typedef struct gp_shell {
    gp_arguments_t arguments; // the options that choose, as the shell's commands have set them
    gp_arena_t arena;         // of their texts, and of the files' names
    gp_texts_t files;
    bool loaded;
    gp_stats_t stats;
    gp_sorts_t sorts; // what was asked for last; count 0 = nothing
    bool reversed, stripped;
    bool over;
} gp_shell_t;

typedef struct gp_shell_command {
    const char *name;
    void (*run)(gp_shell_t *shell,
                char *rest); // rest: what follows the name, without blanks around
    const char *help;        // lines
} gp_shell_command_t;

// Ended by an entry without a name.
extern const gp_shell_command_t gp_shell_commands[];

// Read the files anew, as the options choose, and order the functions as they were ordered. When
// that fails, with a message, all stays as it is. Returns whether it worked.
bool gp_shell_load(gp_shell_t *shell, const gp_texts_t *files);

// The option that a shell command of this name sets; NULL when there is none.
const gp_option_t *gp_shell_option(const char *name);

// Run one command line.
void gp_shell_run(gp_shell_t *shell, char *line);

// Read a line from standard input: with editing and history on a terminal, else without a prompt.
// Returns malloc()ed text without the line's end; NULL at the end.
char *gp_shell_read_line(const char *prompt);
