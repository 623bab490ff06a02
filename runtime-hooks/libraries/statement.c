// SPDX-License-Identifier: MIT
#include "libraries/call_span.h"

#include <ctype.h>

// Skip a text in quotes; a doubled quote is part of it.
static const char *statement_skip_quoted(const char *at)
{
    char quote = *at++;
    while (*at != '\0' && (*at != quote || at[1] == quote))
        at += *at == quote ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

static bool statement_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || ((unsigned char)c & 0x80);
}

static const char *statement_skip_number(const char *at)
{
    while (statement_is_word(*at) || *at == '.')
        at++;
    return at;
}

void gp_call_statement(const char *sql, char *plain, size_t size)
{
    size_t len = 0;
    char before = ' ';
    for (const char *at = sql; *at != '\0' && len + 1 < size;) {
        char c = *at;
        if (c == '\'') { // names in double quotes stay
            at = statement_skip_quoted(at);
            c = '?';
        } else if (isdigit((unsigned char)c) && !statement_is_word(before) && before != '?' && before != ':' &&
                   before != '@') {
            at = statement_skip_number(at);
            c = '?';
        } else {
            at++;
            c = isspace((unsigned char)c) ? ' ' : c;
        }
        if (c != ' ' || before != ' ')
            plain[len++] = c;
        before = c;
    }
    plain[len] = '\0';
}
