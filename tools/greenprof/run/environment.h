// SPDX-License-Identifier: MIT
// The library's variables in the environment (model/variables.h).
#pragma once

#include "options.h"

// Is all of it valid? The library would have to pass over in silence what is not. Returns 0, or EXIT_FAILED with a
// message.
int gp_environment_check(void);

// The words behind "must be" for an option's text, by the rules of the variable GREENPROF_ID; valid until the next
// call. NULL where the text is so.
const char *gp_environment_wanted(const char *id, const char *text);

// The variables that options stand for (gp_option_t.setting), as the command line has them.
void gp_environment_set(const gp_arguments_t *arguments);

// Print the variables and their meanings: `greenprof help environment`.
int gp_environment_help(void);
