// SPDX-License-Identifier: MIT
// The command line.
#pragma once

#include "service.h"

// Read the command line; says on standard error what is wrong with it, and ends the program then, and for --help.
void options_read(int argc, char **argv, settings_t *settings);
