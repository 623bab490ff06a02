// SPDX-License-Identifier: MIT
#include "capture/closing_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// As a shell takes it back: in quotes where it is not plain.
static const char *quoted(const char *name, char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=:,@%";
    size_t length = 0;
    if (name[strspn(name, plain)] == '\0')
        return name;
    text[length++] = '\'';
    for (; *name != '\0' && length + 6 < size; name++)
        if (*name == '\'')
            length += (size_t)snprintf(text + length, size - length, "'\\''");
        else
            text[length++] = *name;
    text[length++] = '\'';
    text[length] = '\0';
    return text;
}

static size_t cut(int length)
{
    if (length < 0)
        return 0;
    return length < GP_CLOSING_LINE_SIZE ? (size_t)length : GP_CLOSING_LINE_SIZE - 1;
}

size_t gp_closing_line(char line[GP_CLOSING_LINE_SIZE], const char *name, uint64_t samples, uint64_t lost,
                       uint64_t spans_lost, const char *note)
{
    char quotes[GP_CLOSING_NAME_SIZE * 2], losses[64];
    int len = snprintf(losses, sizeof(losses), lost == 0 ? "none lost" : "%" PRIu64 " lost", lost);
    if (spans_lost != 0)
        snprintf(losses + len, sizeof(losses) - (size_t)len, ", %" PRIu64 " spans lost", spans_lost);
    return cut(snprintf(
        line, GP_CLOSING_LINE_SIZE, "greenprof: %s: %" PRIu64 " samples, %s%s%s; next: greenprof report %s\n", name,
        samples, losses, note != NULL ? "; " : "", note != NULL ? note : "", quoted(name, quotes, sizeof(quotes))));
}

size_t gp_closing_line_failed(char line[GP_CLOSING_LINE_SIZE], const char *name, const char *what, const char *why)
{
    return cut(snprintf(line, GP_CLOSING_LINE_SIZE, "greenprof: %s: %s is recorded: %s\n", name, what, why));
}
