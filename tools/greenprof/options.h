// SPDX-License-Identifier: MIT
// The commands and their options, as tables: command lines are parsed by them, and help texts,
// manual pages and shell completions are made from them.
//
// Model: an option is a row of gp_options (option_table.c), and the row's kind and field, TEXT(output), are a field of
// gp_arguments_t as well. Commands that take an option of the same name and meaning share its row; where the meaning
// differs there is a row for each. An option that stands for a variable of the library (model/variables.h) names it in
// its row, is checked as it is, and is handed on by run.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gp_command_id {
    GP_COMMAND_RUN,
    GP_COMMAND_REPORT,
    GP_COMMAND_EXPORT,
    GP_COMMAND_FLAMEGRAPH,
    GP_COMMAND_MERGE,
    GP_COMMAND_RECOVER,
    GP_COMMAND_DIFF,
    GP_COMMAND_TRACE,
    GP_COMMAND_INFO,
    GP_COMMAND_RUNTIMES,
    GP_COMMAND_COROUTINES,
    GP_COMMAND_ATTACH,
    GP_COMMAND_DETACH,
    GP_COMMAND_START,
    GP_COMMAND_STOP,
    GP_COMMAND_DUMP,
    GP_COMMAND_STATUS,
    GP_COMMAND_TOP,
    GP_COMMAND_SYMBOLIZE,
    GP_COMMAND_SHIP,
    GP_COMMAND_VIEW,
    GP_COMMAND_EXPLAIN,
    GP_COMMAND_MCP,
    GP_COMMAND_HELP,
    GP_COMMAND_COUNT,
} gp_command_id_t;

// The kind of a value or an operand, for completion.
typedef enum gp_hint {
    GP_HINT_NONE,
    GP_HINT_FILE,    // any file
    GP_HINT_CAPTURE, // a capture file
    GP_HINT_PROGRAM, // a command to run
    GP_HINT_FORMAT,  // a name of the exporter table
    GP_HINT_SORT,    // sort keys
    GP_HINT_COMMAND, // a name of gp_commands
} gp_hint_t;

typedef struct gp_command {
    const char *name;
    const char *also;               // what other profilers call it, which does as well; NULL = nothing
    const char *synopsis;           // behind the name, without options: "FILE"
    const char *what;               // a line, begins with a small letter, without full stop
    const char *missing;            // the message where operands are missing: "missing FILE"
    int operands_min, operands_max; // of operands; INT32_MAX = any number
    gp_hint_t hint;                 // kind of the operands
    bool rest_is_program;           // options end at the first operand
} gp_command_t;

// By gp_command_id_t; the entry GP_COMMAND_COUNT has no name.
extern const gp_command_t gp_commands[GP_COMMAND_COUNT + 1];

// Find a command by its name, or by the other one. NULL when there is none.
const gp_command_t *gp_command_find(const char *name);

typedef struct gp_texts { // the values of an option that may come several times
    const char **items;
    size_t count;
} gp_texts_t;

typedef struct gp_choice { // which part of a capture; what is not given chooses all
    gp_texts_t traces, coroutines, threads, names;
    const char *from, *to;
} gp_choice_t;

// Values are those of the command line, not copies. Missing ones are NULL, 0 or false, or the default of the option's
// row.
typedef struct gp_arguments {
    const gp_command_t *command;
    char **operands; // ended by NULL
    int operand_count;
    gp_choice_t choice, base_choice;
#define FLAG(field)   bool field;
#define TEXT(field)   const char *field;
#define TEXTS(field)  gp_texts_t field;
#define REGEX(field)  gp_texts_t field;
#define NUMBER(field) uint64_t field;
#include "option_fields.h" // made of the rows
#undef FLAG
#undef TEXT
#undef TEXTS
#undef REGEX
#undef NUMBER
} gp_arguments_t;

typedef enum gp_option_kind {
    GP_OPTION_FLAG,   // bool
    GP_OPTION_TEXT,   // const char *: the last one counts
    GP_OPTION_TEXTS,  // gp_texts_t: each counts
    GP_OPTION_REGEX,  // gp_texts_t of POSIX extended regular expressions: each counts
    GP_OPTION_NUMBER, // uint64_t in [lo, hi]
} gp_option_kind_t;

typedef struct gp_option {
    unsigned commands; // GP_OPTION_OF() bits
    char letter;       // '\0' = none
    const char *name;
    const char *value; // its name in help texts; NULL where the choices are, or where there is none
    gp_option_kind_t kind;
    size_t offset;             // of the field in gp_arguments_t
    const char *what;          // for help texts: one or more sentences
    const char *choices;       // the words that a text can be, '|' between them; NULL = anything
    uint64_t lo, hi, standard; // of a number
    gp_hint_t hint;
    const char *setting; // the variable that run sets, without GREENPROF_; a text must be as it demands
    const char *set_to;  // of a flag: the variable's value
    bool chooses;        // chooses a part of what is read
} gp_option_t;

#define GP_OPTION_OF(command) (1u << (command))

// Ended by an entry without a name.
extern const gp_option_t gp_options[];

// Whether a command takes an option.
bool gp_option_applies(const gp_option_t *option, const gp_command_t *command);

// How an option's value is called in help texts; NULL when it has none.
const char *gp_option_value(const gp_option_t *option);

// Make what help texts say of an option: `what`, a number's range and default. Returns `text`.
const char *gp_option_text(const gp_option_t *option, char *text, size_t size);

// Parse a command line.
//   argv: argv[0] is the command's name; getopt may reorder the rest.
// Returns 0 or EXIT_USAGE, with a message. With `help` set nothing else is checked. Free the arguments in both cases.
int gp_options_parse(gp_arguments_t *arguments, const gp_command_t *command, int argc, char **argv);
void gp_options_free(gp_arguments_t *arguments);

// Read a whole number in [lo, hi]. Returns whether `text` is one.
bool gp_parse_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *number);

// For choices "a|b|c": is `value` one of them; and "a, b or c", valid until the next call.
bool gp_option_is_choice(const char *choices, const char *value);
const char *gp_option_choices(const char *choices);
