// SPDX-License-Identifier: MIT
// A store's URL where a FILE may stand: what it has is asked for, and read as a capture.
#pragma once

#include "options.h"

bool gp_store_is_url(const char *operand);

// Whether the options that are about stores have one, and the others are what a store can answer.
// Returns 0 or EXIT_USAGE, with a message.
int gp_store_check(const gp_arguments_t *arguments);

// Ask. The operand has no password from then on. Returns a descriptor of the capture, or -1 with a message.
int gp_store_open(const gp_arguments_t *arguments, int operand);
