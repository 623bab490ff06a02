// SPDX-License-Identifier: MIT
#include "row_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

static bool row_limit_read_count(const char *text, int64_t *count)
{
    char *end;
    errno = 0;
    *count = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static bool row_limit_read_fraction(const char *text, double *fraction)
{
    char *end;
    *fraction = strtod(text, &end);
    return end != text && *end == '\0' && strpbrk(text, "xX") == NULL; // as Python's float()
}

void gp_row_limit_parse(gp_row_limit_t *restriction, const char *text)
{
    *restriction = (gp_row_limit_t){.text = text};
    if (row_limit_read_count(text, &restriction->count)) {
        restriction->kind = GP_RESTRICT_COUNT;
    } else if (row_limit_read_fraction(text, &restriction->fraction)) {
        bool good = !(restriction->fraction > 1 || restriction->fraction < 0);
        restriction->kind = good ? GP_RESTRICT_FRACTION : GP_RESTRICT_BAD_FRACTION;
    } else {
        restriction->error = regcomp(&restriction->regex, text, REG_EXTENDED | REG_NOSUB);
        restriction->kind = restriction->error == 0 ? GP_RESTRICT_REGEX : GP_RESTRICT_BAD_REGEX;
    }
}

void gp_row_limit_count(gp_row_limit_t *restriction, int64_t count)
{
    *restriction = (gp_row_limit_t){.kind = GP_RESTRICT_COUNT, .count = count};
}

void gp_row_limit_free(gp_row_limit_t *restriction)
{
    if (restriction->kind == GP_RESTRICT_REGEX)
        regfree(&restriction->regex);
    restriction->kind = GP_RESTRICT_BAD_FRACTION;
}

// As Python's repr() writes a text: quoted, backslashes doubled.
static void row_limit_print_quoted(const char *text)
{
    char quote = strchr(text, '\'') != NULL && strchr(text, '"') == NULL ? '"' : '\'';
    char part[2] = "";
    putchar(quote);
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == quote)
            putchar('\\');
        part[0] = *text;
        if ((unsigned char)*text < 0x80)
            gp_print_text(part);
        else
            putchar(*text); // a part of a character
    }
    putchar(quote);
}

// As Python's repr() writes a number: the shortest text that reads back as the same.
static void row_limit_print_fraction(double fraction)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, fraction);
        if (strtod(text, NULL) == fraction)
            break;
    }
    printf("%s%s", text, strpbrk(text, ".en") == NULL ? ".0" : "");
}

static const char *none_left;

const char *gp_row_limit_left_none(void)
{
    return none_left;
}

void gp_row_limit_print(const gp_row_limit_t *restriction, size_t before, size_t after)
{
    if (restriction->kind == GP_RESTRICT_BAD_REGEX) {
        printf("   <Invalid regular expression ");
        row_limit_print_quoted(restriction->text);
        printf(">\n");
        return;
    }
    if (before == after)
        return;
    printf("   List reduced from %zu to %zu due to restriction <", before, after);
    if (restriction->kind == GP_RESTRICT_COUNT)
        printf("%" PRId64, restriction->count);
    else if (restriction->kind == GP_RESTRICT_FRACTION)
        row_limit_print_fraction(restriction->fraction);
    else
        row_limit_print_quoted(restriction->text);
    printf(">\n");
}

size_t gp_row_limit_apply(const gp_row_limit_t *restriction, uint32_t *rows, size_t count, gp_row_limit_name_t name,
                          const void *context)
{
    size_t kept = 0;
    switch (restriction->kind) {
    case GP_RESTRICT_COUNT:
        if (restriction->count >= 0 && (uint64_t)restriction->count < count)
            return (size_t)restriction->count;
        return count;
    case GP_RESTRICT_FRACTION:
        if (restriction->fraction < 1) // not where it is no number
            return (size_t)((double)count * restriction->fraction + .5);
        return count;
    case GP_RESTRICT_REGEX:
        for (size_t i = 0; i < count; i++)
            if (regexec(&restriction->regex, name(context, rows[i]), 0, NULL, 0) == 0)
                rows[kept++] = rows[i];
        if (count > 0 && kept == 0)
            none_left = restriction->text;
        return kept;
    case GP_RESTRICT_BAD_REGEX:
    case GP_RESTRICT_BAD_FRACTION:
        break;
    }
    return count;
}

size_t gp_restrictions_apply(gp_row_limits_t restrictions, uint32_t *rows, size_t count, gp_row_limit_name_t name,
                             const void *context)
{
    for (size_t i = 0; i < restrictions.count; i++) {
        size_t before = count;
        count = gp_row_limit_apply(&restrictions.items[i], rows, count, name, context);
        gp_row_limit_print(&restrictions.items[i], before, count);
    }
    return count;
}
