// SPDX-License-Identifier: MIT
// The command as it was given. Threads: one. Signals: not safe.
#pragma once

// Remember the command line, before parsing puts the options in another order.
void gp_command_line_set(int argc, char **argv);

// As a shell reads it: "greenprof export 'a b' ..."; NULL when memory is short.
const char *gp_command_line(void);
