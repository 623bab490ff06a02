// SPDX-License-Identifier: MIT
// Whether a name given to -o fits what the command writes.
#pragma once

#include "options.h"

// Refuse a name with the suffix of what only another command writes, such as `run -o profile.svg`, and says which.
// Returns 0 or EXIT_USAGE, with a message.
int gp_output_kind_check(const gp_arguments_t *arguments);
