// SPDX-License-Identifier: MIT
// The subcommands of `greenprof`, and what they share.
#pragma once

#include "options.h"

// Each returns the exit status.
int gp_command_run(const gp_arguments_t *arguments);
int gp_command_report(const gp_arguments_t *arguments);
int gp_command_export(const gp_arguments_t *arguments);
int gp_command_flamegraph(const gp_arguments_t *arguments);
int gp_command_explain(const gp_arguments_t *arguments);
int gp_command_view(const gp_arguments_t *arguments);
int gp_command_merge(const gp_arguments_t *arguments);
int gp_command_recover(const gp_arguments_t *arguments);
int gp_command_diff(const gp_arguments_t *arguments);
int gp_command_trace(const gp_arguments_t *arguments);
int gp_command_coroutines(const gp_arguments_t *arguments);
int gp_command_attach(const gp_arguments_t *arguments);
int gp_command_detach(const gp_arguments_t *arguments);
int gp_command_start(const gp_arguments_t *arguments);
int gp_command_stop(const gp_arguments_t *arguments);
int gp_command_dump(const gp_arguments_t *arguments);
int gp_command_status(const gp_arguments_t *arguments);
int gp_command_top(const gp_arguments_t *arguments);
int gp_command_symbolize(const gp_arguments_t *arguments);
int gp_command_ship(const gp_arguments_t *arguments);
int gp_command_info(const gp_arguments_t *arguments);
int gp_command_runtimes(const gp_arguments_t *arguments);
int gp_command_mcp(const gp_arguments_t *arguments);

// Run a command within another one. Tables are left behind: in a child that ends afterwards.
//   argv: argv[0] is the name of a command.
int gp_command_call(int argc, char **argv);

// Print the help text of a command, made from the tables. Returns 0, or EXIT_FAILED when standard
// output cannot be written.
int gp_help_command(const gp_command_t *command);

// An entry of a help text: its name, and its meaning in a column of its own.
void gp_help_entry(const char *head, const char *text);

// The same for `greenprof` itself.
int gp_help_overview(void);
