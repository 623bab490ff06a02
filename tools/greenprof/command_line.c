// SPDX-License-Identifier: MIT
#include "command_line.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "base/stream.h"

static char *line; // freed when the command ends

static bool command_line_is_plain(const char *text)
{
    for (const char *at = text; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("_-./:=,+@%", *at) == NULL)
            return false;
    return text[0] != '\0';
}

static void command_line_put_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    fputc('\'', out);
}

void gp_command_line_set(int argc, char **argv)
{
    size_t size;
    FILE *out = open_memstream(&line, &size);
    if (out == NULL)
        return;
    fputs("greenprof", out);
    for (int i = 1; i < argc; i++) {
        char *shown = gp_secret_masked(argv[i], ""); // no password in a page
        const char *text = shown != NULL ? shown : "...";
        fputc(' ', out);
        if (command_line_is_plain(text))
            fputs(text, out);
        else
            command_line_put_quoted(out, text);
        free(shown);
    }
    if (gp_stream_close(out))
        return;
    free(line);
    line = NULL;
}

const char *gp_command_line(void)
{
    return line;
}
