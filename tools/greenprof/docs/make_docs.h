// SPDX-License-Identifier: MIT
// Manual pages and shell completions, made from the tables at build time.
#pragma once

#include <stdio.h>

#include "options.h"

void gp_docs_bash(FILE *out);
void gp_docs_zsh(FILE *out);
void gp_docs_fish(FILE *out);

// Write one manual page; `command` NULL = greenprof(1).
//   body: man(7) text from DESCRIPTION on; its line "@OPTIONS@" or "@COMMANDS@" stands for what the
//         tables say. NULL = there is none.
void gp_docs_man(FILE *out, const gp_command_t *command, FILE *body);

// The words that a value can be, each followed by `separator`; nothing where the tables do not say.
void gp_docs_words(FILE *out, const gp_option_t *option, char separator);
