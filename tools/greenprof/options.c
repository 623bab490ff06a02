// SPDX-License-Identifier: MIT
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "nearest.h"
#include "run/environment.h"

enum { OPTIONS_MAX = 64, FIRST_VALUE = 256, TITLE_SIZE = 64, CHOICES_SIZE = 128 };

// The options of a command, as getopt_long() takes them.
typedef struct getopt_table {
    struct option options[OPTIONS_MAX + 1]; // val = FIRST_VALUE + number in gp_options
    char letters[2 * OPTIONS_MAX + 3];
} getopt_table_t;

static void options_make_getopt_table(getopt_table_t *table, const gp_command_t *command)
{
    size_t count = 0, len = 0;
    memset(table, 0, sizeof(*table));
    if (command->rest_is_program)
        table->letters[len++] = '+';
    for (int i = 0; gp_options[i].name != NULL && count < OPTIONS_MAX; i++) {
        const gp_option_t *option = &gp_options[i];
        bool flag = option->kind == GP_OPTION_FLAG;
        if (!gp_option_applies(option, command))
            continue;
        table->options[count++] =
            (struct option){option->name, flag ? no_argument : required_argument, NULL, FIRST_VALUE + i};
        if (option->letter == '\0')
            continue;
        table->letters[len++] = option->letter;
        if (!flag)
            table->letters[len++] = ':';
    }
}

static const gp_option_t *options_option_of(const gp_command_t *command, int value)
{
    if (value >= FIRST_VALUE)
        return &gp_options[value - FIRST_VALUE];
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (option->letter == value && gp_option_applies(option, command))
            return option;
    return NULL; // '?': getopt has said what is wrong
}

// "-n" or "--trace", for messages.
static const char *options_spelling(const gp_option_t *option)
{
    static char text[TITLE_SIZE];
    if (option->letter != '\0')
        snprintf(text, sizeof(text), "-%c", option->letter);
    else
        snprintf(text, sizeof(text), "--%s", option->name);
    return text;
}

bool gp_option_is_choice(const char *choices, const char *value)
{
    size_t len = strlen(value);
    for (const char *at = choices; len > 0; at++) {
        size_t word = strcspn(at, "|");
        if (word == len && strncmp(at, value, len) == 0)
            return true;
        at += word;
        if (*at == '\0')
            break;
    }
    return false;
}

const char *gp_option_choices(const char *choices)
{
    static char text[CHOICES_SIZE];
    const char *last = strrchr(choices, '|');
    size_t len = 0;
    for (const char *at = choices; *at != '\0' && len + 5 < sizeof(text); at++)
        if (*at != '|')
            text[len++] = *at;
        else
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", at == last ? " or " : ", ");
    text[len] = '\0';
    return text;
}

static int options_add_text(gp_texts_t *texts, const char *value)
{
    const char **items = realloc(texts->items, (texts->count + 1) * sizeof(*items));
    if (items == NULL)
        return gp_fail("command line", "%s", strerror(ENOMEM));
    texts->items = items;
    // -Wanalyzer-malloc-leak: the arguments keep it.
    texts->items[texts->count++] = value;
    return 0;
}

static int options_check_regex(const gp_option_t *option, const gp_command_t *command, const char *value)
{
    regex_t regex;
    char error[128];
    int result = regcomp(&regex, value, REG_EXTENDED | REG_NOSUB);
    if (result != 0) {
        regerror(result, &regex, error, sizeof(error));
        return gp_usage_error(command->name, "%s '%s': %s", options_spelling(option), value, error);
    }
    regfree(&regex);
    return 0;
}

static int options_set_number(const gp_option_t *option, const gp_command_t *command, uint64_t *field,
                              const char *value)
{
    if (gp_parse_number(value, option->lo, option->hi, field))
        return 0;
    return gp_usage_error(command->name, "%s %s: must be a whole number from %" PRIu64 " to %" PRIu64,
                          options_spelling(option), value, option->lo, option->hi);
}

static int options_set(gp_arguments_t *arguments, const gp_option_t *option, const char *value)
{
    const gp_command_t *command = arguments->command;
    void *field = (char *)arguments + option->offset;
    int status;
    if (option->choices != NULL && !gp_option_is_choice(option->choices, value))
        return gp_usage_error(command->name, "%s %s: must be %s", options_spelling(option), value,
                              gp_option_choices(option->choices));
    const char *words = option->setting != NULL && option->kind == GP_OPTION_TEXT
                            ? gp_environment_wanted(option->setting, value)
                            : NULL;
    if (words != NULL)
        return gp_usage_error(command->name, "%s %s: must be %s", options_spelling(option), value, words);
    switch (option->kind) {
    case GP_OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case GP_OPTION_TEXT:
        *(const char **)field = value;
        return 0;
    case GP_OPTION_TEXTS:
        return options_add_text(field, value);
    case GP_OPTION_REGEX:
        status = options_check_regex(option, command, value);
        return status != 0 ? status : options_add_text(field, value);
    case GP_OPTION_NUMBER:
        return options_set_number(option, command, field, value);
    }
    return 0;
}

static void options_set_standards(gp_arguments_t *arguments)
{
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (option->kind == GP_OPTION_NUMBER && gp_option_applies(option, arguments->command))
            *(uint64_t *)((char *)arguments + option->offset) = option->standard;
}

static int options_check_operands(gp_arguments_t *arguments)
{
    static char *pid[2];
    const gp_command_t *command = arguments->command;
    if (arguments->pid != NULL && arguments->operand_count > 0)
        return gp_usage_error(command->name, "-p %s and '%s': one of them is enough", arguments->pid,
                              arguments->operands[0]);
    if (arguments->pid != NULL) {
        pid[0] = (char *)(uintptr_t)arguments->pid;
        arguments->operands = pid;
        arguments->operand_count = 1;
    }
    if (arguments->operand_count < command->operands_min)
        return gp_usage_error(command->name, "%s", command->missing);
    if (arguments->operand_count > command->operands_max)
        return gp_usage_error(command->name, "unexpected argument '%s'", arguments->operands[command->operands_max]);
    return 0;
}

// Suggest the nearest option, behind getopt's message about an unknown one.
static void options_suggest_option(const gp_command_t *command, const char *argument)
{
    char word[TITLE_SIZE];
    bool is_long = strncmp(argument, "--", 2) == 0;
    if (is_long && optopt != 0)
        return;
    if (is_long)
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    else
        snprintf(word, sizeof(word), "%c", optopt);
    const char *meaning = gp_nearest_meaning(command->name, word);
    if (meaning != NULL)
        fprintf(stderr, "Did you mean '%s'?\n", meaning);
    if (meaning != NULL || !is_long)
        return;
    gp_nearest_t nearest = {.word = word, .of = "*"};
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (gp_option_applies(option, command))
            gp_nearest_try(&nearest, option->name);
    if (nearest.name != NULL)
        fprintf(stderr, "Did you mean '--%s'?\n", nearest.name);
}

// A whole word of another profiler's, as "-http", which getopt reads as letters, or the beginning of another option.
static int options_check_words(const gp_command_t *command, int argc, char **argv)
{
    char word[TITLE_SIZE];
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (command->rest_is_program && argv[i][0] != '-')
            break;
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(argv[i], "="), argv[i]);
        const char *meaning = word[0] == '-' ? gp_nearest_meaning(command->name, word) : NULL;
        if (meaning != NULL)
            return gp_usage_error(command->name, "%s: did you mean '%s'?", word, meaning);
    }
    return 0;
}

int gp_options_parse(gp_arguments_t *arguments, const gp_command_t *command, int argc, char **argv)
{
    static char title[TITLE_SIZE];
    getopt_table_t table;
    int value;
    memset(arguments, 0, sizeof(*arguments));
    arguments->command = command;
    options_set_standards(arguments);
    options_make_getopt_table(&table, command);
    int unknown = options_check_words(command, argc, argv);
    if (unknown != 0)
        return unknown;
    snprintf(title, sizeof(title), "greenprof %s", command->name);
    argv[0] = title; // getopt's messages begin with it
    while ((value = getopt_long(argc, argv, table.letters, table.options, NULL)) != -1) {
        const gp_option_t *option = options_option_of(command, value);
        if (option == NULL) {
            options_suggest_option(command, argv[optind - 1]);
            fprintf(stderr, "Try '%s --help'.\n", title);
            return EXIT_USAGE;
        }
        int status = options_set(arguments, option, optarg);
        if (status != 0 || arguments->help)
            return status;
    }
    arguments->operands = argv + optind;
    arguments->operand_count = argc - optind;
    return options_check_operands(arguments);
}

void gp_options_free(gp_arguments_t *arguments)
{
    for (const gp_option_t *option = gp_options; option->name != NULL; option++)
        if (option->kind == GP_OPTION_TEXTS || option->kind == GP_OPTION_REGEX) {
            gp_texts_t *texts = (gp_texts_t *)((char *)arguments + option->offset);
            free(texts->items);
            *texts = (gp_texts_t){0};
        }
}

bool gp_parse_number(const char *text, uint64_t lo, uint64_t hi, uint64_t *number)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') // strtoull() takes signs and spaces
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value < lo || value > hi)
        return false;
    *number = value;
    return true;
}
