// SPDX-License-Identifier: MIT
// A question to a store: what is chosen, as a WHERE, and the answer's bytes. Private to src/ship/ask/ask*.c.
//
// Order of calls: open -> ask... -> close, also after a failure.
#pragma once

#include <stdio.h>

#include "ship/ask/ask.h"
#include "ship/ask/ask_read.h"
#include "ship/send/clickhouse/schema.h"

typedef struct gp_question {
    gp_fleet_url_t url;
    gp_clickhouse_t *clickhouse;
    const char *prefix, *tenant;
    enum gp_schema_table table;
    gp_row_pair_t *filters; // [filter_count]: the URL's and the others
    size_t filter_count;
    char *join;            // between table and WHERE; NULL = nothing. Freed by close
    char *where;           // " WHERE tenant = ..."
    uint64_t from_s, to_s; // the chosen time, since 1970; 0 = not chosen
    unsigned version;      // of the schema
    char *error;
} gp_question_t;

// Returns 0 or a negative errno value and what is wrong.
int gp_question_open(gp_question_t *question, const char *url, enum gp_schema_table table, const gp_row_pair_t *filters,
                     size_t filter_count, char error[GP_FLEET_ERROR_SIZE]);

// Choose rows of one measure of the samples.
int gp_question_measure(gp_question_t *question, enum gp_row_measure measure);

// Ask: SELECT `asked` FROM the table, joined, WHERE, `rest`, as RowBinary; what comes is added to `answer`.
//   asked: ", expression, expression..."
int gp_question_ask(const gp_question_t *question, const char *asked, const char *rest, gp_ask_bytes_t *answer);

// Ask for rows as they are: what is read of the table, in the order of ship/rows/row.h, then `more`.
int gp_question_ask_rows(const gp_question_t *question, const char *more, const char *rest, gp_ask_bytes_t *answer);

// Say what is wrong. Returns `result`.
int gp_question_fail(const gp_question_t *question, int result, const char *what, const char *detail);

// A text between quotes. Returns 0 or -EINVAL: it is too long.
int gp_question_quote(FILE *query, const char *text);

// Say what is wrong where nothing else has. Returns `result`.
int gp_question_close(gp_question_t *question, int result);
