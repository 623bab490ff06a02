// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/stream.h"
#include "ship/ask/ask_question.h"

enum { HEX_DIGITS = 32 };

// Is it the beginning of an id?
static bool ask_spans_is_beginning(const char *digits)
{
    return digits[0] != '\0' && strlen(digits) <= HEX_DIGITS && digits[strspn(digits, "0123456789abcdef")] == '\0';
}

// Process ids are in another table.
static int ask_spans_join_processes(gp_question_t *question)
{
    size_t size;
    FILE *query = open_memstream(&question->join, &size);
    if (query == NULL)
        return -ENOMEM;
    fprintf(query, " GLOBAL ANY LEFT JOIN (SELECT process, any(pid) AS pid FROM %sprocesses WHERE tenant = ",
            question->prefix);
    int result = gp_question_quote(query, question->tenant);
    fputs(" GROUP BY process) USING process", query);
    return gp_stream_close(query) ? result : -ENOMEM;
}

static int ask_spans_read_span(gp_ask_reader_t *reader, gp_ask_span_t *span)
{
    gp_row_span_t *row = &span->row;
    gp_row_process_t *process = &span->process;
    GP_SPANS_COLUMNS(GP_ASK_FIELD, GP_ASK_VALUE, GP_ASK_LIST)
    GP_ASK_READ_UInt32(process->pid);
    return gp_ask_result(reader);
}

static int ask_spans_read_all(const gp_ask_bytes_t *answer, int (*take)(void *context, const gp_ask_span_t *span),
                              void *context)
{
    gp_arena_t arena = {0};
    gp_ask_reader_t reader = gp_ask_reader(answer, &arena);
    int result = 0;
    while (result == 0 && gp_ask_more(&reader)) {
        gp_ask_span_t span = {.process.service = ""};
        result = ask_spans_read_span(&reader, &span);
        if (result == 0)
            result = take(context, &span);
        gp_arena_free(&arena);
    }
    return result;
}

static int ask_spans_of_traces(const gp_question_t *question, const char *trace, gp_ask_bytes_t *answer)
{
    char like[HEX_DIGITS + 64] = "";
    if (trace != NULL)
        snprintf(like, sizeof(like), " AND lower(hex(trace)) LIKE '%s%%'", trace);
    return gp_question_ask_rows(question, ", toUInt32(pid)", like, answer);
}

int gp_ask_spans(const char *url, const char *trace, int (*take)(void *context, const gp_ask_span_t *span),
                 void *context, char error[GP_FLEET_ERROR_SIZE])
{
    gp_ask_bytes_t answer = {0};
    gp_question_t question;
    if (trace != NULL && !ask_spans_is_beginning(trace)) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "trace: '%.100s' has no meaning", trace);
        return -EINVAL;
    }
    int result = gp_question_open(&question, url, GP_TABLE_SPANS, NULL, 0, error);
    if (result == 0)
        result = ask_spans_join_processes(&question);
    if (result == 0)
        result = ask_spans_of_traces(&question, trace, &answer);
    if (result == 0)
        result = ask_spans_read_all(&answer, take, context);
    free(answer.data);
    return gp_question_close(&question, result);
}
