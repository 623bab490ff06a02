// SPDX-License-Identifier: MIT
// Fuzz target: a command line. The first byte chooses the subcommand; the rest is its arguments, one a line.
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "fuzz.h"
#include "message.h"
#include "options.h"

enum { WORDS_MAX = 64, REPETITIONS_MAX = 6, PATTERN_MAX = 64 };

int gp_fail(const char *subject, const char *format, ...)
{
    (void)subject;
    (void)format; // nothing is printed here
    return 1;
}

int gp_usage_error(const char *command, const char *format, ...)
{
    (void)command;
    (void)format;
    return 2;
}

void gp_help_entry(const char *head, const char *text)
{
    (void)head;
    (void)text;
}

int gp_finish_stdout(void)
{
    return 0;
}

// glibc's regular expressions take time and memory that double with each repetition.
static bool is_costly(const char *word)
{
    int count = 0;
    for (const char *at = word; (at = strpbrk(at, "+*?{")) != NULL; at++)
        count++;
    return count > REPETITIONS_MAX || (count > 0 && strlen(word) > PATTERN_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gp_arguments_t arguments;
    char *words[WORDS_MAX + 2] = {(char *)"greenprof"}, *text = malloc(size + 1), *rest = text;
    int count = 1;
    bool costly = false;
    if (text == NULL || size == 0) {
        free(text);
        return 0;
    }
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    for (char *word; count <= WORDS_MAX && (word = strsep(&rest, "\n")) != NULL; count++) {
        words[count] = word;
        costly |= is_costly(word);
    }
    opterr = 0;
    optind = 0; // begins anew
    if (!costly) {
        gp_options_parse(&arguments, &gp_commands[data[0] % GP_COMMAND_COUNT], count, words);
        gp_options_free(&arguments);
    }
    free(text);
    return 0;
}
