// The subcommands of `greenprof`, and what they share.
#ifndef GP_TOOLS_COMMAND_H
#define GP_TOOLS_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

typedef struct gp_command {
    const char *name;
    const char *what; // one line for `greenprof --help`
    // argv[0] is the subcommand's name. Returns the exit status.
    int (*run)(int argc, char **argv);
} gp_command_t;

// Ended by an entry without a name.
extern const gp_command_t gp_commands[];

int gp_command_run(int argc, char **argv);
int gp_command_report(int argc, char **argv);
int gp_command_export(int argc, char **argv);
int gp_command_flamegraph(int argc, char **argv);

// Say "greenprof: SUBJECT: what is wrong" on standard error. Returns EXIT_FAILED.
int gp_fail(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same without consequences.
void gp_warn(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Say "greenprof COMMAND: what is wrong" and where help is. Returns EXIT_USAGE.
int gp_usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Print a help text. Returns 0, or EXIT_FAILED when standard output cannot be written.
int gp_help(const char *text);

// After the last output: whether all of it arrived. Returns 0 or EXIT_FAILED, with a message.
int gp_finish_stdout(void);

// Read a whole number in [lo, hi]. Returns whether `text` is one.
bool gp_parse_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *number);

#endif
