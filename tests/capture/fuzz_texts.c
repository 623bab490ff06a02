// SPDX-License-Identifier: MIT
// Fuzz target: untrusted texts: trace ids out of request headers, what is said on the command line, names out of
// captures.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/write/text.h"
#include "fuzz.h"
#include "greenprof/trace.h"
#include "report/row_limit.h"
#include "report/tables.h"
#include "report/time_text.h"

// A text once read can be written, and is then read the same.
static void check_trace(const char *text)
{
    prof_trace_id_t id = {0}, again = {0};
    char hex[PROF_TRACE_HEX_SIZE];
    if (prof_trace_parse(text, &id) < 0)
        return;
    prof_trace_to_hex(&id, hex);
    if (prof_trace_parse(hex, &again) < 0 || memcmp(&id, &again, sizeof(id)) != 0)
        abort();
}

void gp_print_text(const char *text)
{
    (void)text; // nothing is printed here
}

static void check_moment(const char *text)
{
    gp_moment_t moment;
    if (gp_moment_parse(text, &moment))
        gp_moment_resolve(&moment, 1790000000000000000u, 5000000000u);
}

static const char *name_of(const void *context, uint32_t row)
{
    return row % 2 ? context : "main";
}

enum { REPETITIONS_MAX = 6 };

// glibc's regular expressions take time and memory that double with each of them.
static int repetitions(const char *text)
{
    int count = 0;
    while ((text = strpbrk(text, "+*?{")) != NULL)
        text++, count++;
    return count;
}

static void check_restriction(const char *text)
{
    uint32_t rows[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    gp_row_limit_t restriction;
    if (strlen(text) > 64 || repetitions(text) > REPETITIONS_MAX)
        return;
    gp_row_limit_parse(&restriction, text);
    if (gp_row_limit_apply(&restriction, rows, 8, name_of, text) > 8)
        abort();
    gp_row_limit_free(&restriction);
}

// A repaired text is UTF-8, and not longer than was said.
static void check_repair(const char *text)
{
    size_t len = strlen(text);
    char *repaired = malloc(GP_TEXT_GROWTH * len + 1);
    size_t made = gp_text_repair(repaired, text);
    if (made > GP_TEXT_GROWTH * len)
        abort();
    repaired[made] = '\0';
    for (const char *at = repaired; at < repaired + made;) {
        size_t step = gp_text_utf8_len(at);
        if (step == 0 || step > (size_t)(repaired + made - at))
            abort();
        at += step;
    }
    free(repaired);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_trace(text);
    check_moment(text);
    check_restriction(text);
    check_repair(text);
    free(text);
    return 0;
}
