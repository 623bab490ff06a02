// SPDX-License-Identifier: MIT
// What the library reads from the environment (model/variables.h).
#pragma once

#include "options.h"

// Is all of it valid? The library would have to pass over in silence what is not. Returns 0, or EXIT_FAILED with a
// message.
int gp_environment_check(void);

// What the text of an option must be which stands for the variable GREENPROF_ID: words behind "must be", until the next
// call; NULL where it is so.
const char *gp_environment_wanted(const char *id, const char *text);

// The variables that options stand for (gp_option_t.setting), as the command line has them.
void gp_environment_set(const gp_arguments_t *arguments);

// What there is and what it does: `greenprof help environment`.
int gp_environment_help(void);
