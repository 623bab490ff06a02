// SPDX-License-Identifier: MIT
// Restrictions of a table, as in pstats' `stats 10`, `stats .1`, `stats name`: a number of rows, a fraction of them, or
// a regular expression (POSIX extended) that the rows' names must match.
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gp_row_limit_kind {
    GP_RESTRICT_COUNT,
    GP_RESTRICT_FRACTION,
    GP_RESTRICT_REGEX,
    GP_RESTRICT_BAD_REGEX,    // restricts nothing; is reported with the table
    GP_RESTRICT_BAD_FRACTION, // beyond [0, 1]: restricts nothing
} gp_row_limit_kind_t;

typedef struct gp_row_limit {
    gp_row_limit_kind_t kind;
    const char *text; // not a copy
    int64_t count;    // a negative one restricts nothing
    double fraction;
    regex_t regex;
    int error; // regcomp()'s, of a bad one
} gp_row_limit_t;

typedef struct gp_restrictions {
    const gp_row_limit_t *items; // applied in this order
    size_t count;
} gp_row_limits_t;

// Read a restriction. Free it in any case.
void gp_row_limit_parse(gp_row_limit_t *restriction, const char *text);
void gp_row_limit_count(gp_row_limit_t *restriction, int64_t count);
void gp_row_limit_free(gp_row_limit_t *restriction);

// The name of a row for a regular expression.
typedef const char *(*gp_row_limit_name_t)(const void *context, uint32_t row);

// Reduce a list of rows.
// Returns how many rows are left: the first ones of `rows`.
size_t gp_row_limit_apply(const gp_row_limit_t *restriction, uint32_t *rows, size_t count, gp_row_limit_name_t name,
                          const void *context);

// Apply all of them, and say on standard output what each has reduced.
size_t gp_restrictions_apply(gp_row_limits_t restrictions, uint32_t *rows, size_t count, gp_row_limit_name_t name,
                             const void *context);

// The latest regular expression that has left none of the rows before it; NULL = none has. Lives as long as the
// restriction.
const char *gp_row_limit_left_none(void);

// Say in the words of pstats that a list was reduced from `before` to `after`.
void gp_row_limit_print(const gp_row_limit_t *restriction, size_t before, size_t after);
