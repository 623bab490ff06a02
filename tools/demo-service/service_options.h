// SPDX-License-Identifier: MIT
// The command line.
#ifndef DEMO_SERVICE_OPTIONS_H
#define DEMO_SERVICE_OPTIONS_H

#include "service.h"

// Read the command line; says on standard error what is wrong with it, and ends the program then,
// and for --help.
void options_read(int argc, char **argv, settings_t *settings);

#endif
