// The subcommands of `greenprof`, and what they share.
#ifndef GP_TOOLS_COMMAND_H
#define GP_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

// Each returns the exit status.
int gp_command_run(const gp_arguments_t *arguments);
int gp_command_report(const gp_arguments_t *arguments);
int gp_command_export(const gp_arguments_t *arguments);
int gp_command_flamegraph(const gp_arguments_t *arguments);
int gp_command_merge(const gp_arguments_t *arguments);
int gp_command_diff(const gp_arguments_t *arguments);
int gp_command_coroutines(const gp_arguments_t *arguments);
int gp_command_info(const gp_arguments_t *arguments);
int gp_command_runtimes(const gp_arguments_t *arguments);

// Say "greenprof: SUBJECT: what is wrong" on standard error. Returns EXIT_FAILED.
int gp_fail(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same without consequences.
void gp_warn(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Say "greenprof COMMAND: what is wrong" and where help is. Returns EXIT_USAGE.
int gp_usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Print the help text of a command, made from the tables. Returns 0, or EXIT_FAILED when standard
// output cannot be written.
int gp_help_command(const gp_command_t *command);

// The same for `greenprof` itself.
int gp_help_overview(void);

// After the last output: whether all of it arrived. Returns 0 or EXIT_FAILED, with a message.
int gp_finish_stdout(void);

#endif
