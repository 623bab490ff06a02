// SPDX-License-Identifier: MIT
// The live coroutines of a capture or census, as `greenprof coroutines` prints them.
#pragma once

#include "options.h"

// Print what the options choose.
//   path:    of the file.
//   subject: for messages.
// Returns 0 or an exit status, with a message.
int gp_coroutines_show(const gp_arguments_t *arguments, char *path, const char *subject);
