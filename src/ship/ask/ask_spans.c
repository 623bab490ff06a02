// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ship/ask/ask_question.h"

enum { HEX_DIGITS = 32 };

// Is it the beginning of an id?
static bool is_beginning(const char *digits)
{
    return digits[0] != '\0' && strlen(digits) <= HEX_DIGITS && digits[strspn(digits, "0123456789abcdef")] == '\0';
}

// Process ids are in another table.
static int join_processes(gp_question_t *question)
{
    size_t size;
    FILE *query = open_memstream(&question->join, &size);
    if (query == NULL)
        return -ENOMEM;
    fprintf(query, " GLOBAL ANY LEFT JOIN (SELECT process, any(pid) AS pid FROM %sprocesses WHERE tenant = ",
            question->prefix);
    int result = gp_question_quote(query, question->tenant);
    fputs(" GROUP BY process) USING process", query);
    return fclose(query) == 0 ? result : -ENOMEM;
}

// Keys, then values, as many.
static int read_info(gp_cursor_t *cursor, gp_arena_t *arena, gp_row_span_t *row)
{
    uint64_t count = gp_read_uleb(cursor);
    if (cursor->bad || count > (uint64_t)(cursor->end - cursor->pos))
        return -EBADMSG;
    gp_row_pair_t *info = gp_arena_alloc(arena, (count + 1) * sizeof(*info));
    if (info == NULL)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++)
        info[i].key = gp_ask_keep(arena, gp_ask_read_text(cursor));
    if (gp_read_uleb(cursor) != count)
        return -EBADMSG;
    for (uint64_t i = 0; i < count; i++) {
        info[i].value = gp_ask_keep(arena, gp_ask_read_text(cursor));
        if (info[i].key == NULL || info[i].value == NULL)
            return -ENOMEM;
    }
    row->info = info;
    row->info_count = count;
    return 0;
}

static void read_times(gp_cursor_t *cursor, gp_row_span_t *row)
{
    gp_row_times_t *times = &row->times;
    uint64_t *const numbers[] = {&row->start_ns,    &row->end_ns,       &times->cpu_ns,       &times->ready_ns,
                                 &times->parked_ns, &times->blocked_ns, &times->preempted_ns, &times->waiting_ns};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        *numbers[i] = gp_read_uint(cursor, sizeof(uint64_t));
}

static int read_span(gp_cursor_t *cursor, gp_arena_t *arena, gp_ask_span_t *span)
{
    gp_row_span_t *row = &span->row;
    memcpy(row->trace, gp_ask_read_bytes(cursor, sizeof(row->trace)).bytes, sizeof(row->trace));
    row->id = gp_read_uint(cursor, sizeof(row->id));
    row->parent = gp_read_uint(cursor, sizeof(row->parent));
    row->kind = (uint32_t)gp_read_uint(cursor, 1);
    uint64_t flags = gp_read_uint(cursor, 1);
    row->is_open = flags & GP_STORED_OPEN;
    row->has_times = !(flags & GP_STORED_NO_TIMES);
    row->has_failed = flags & GP_STORED_FAILED;
    row->has_rest = flags & GP_STORED_RESTED;
    row->has_remote_parent = flags & GP_STORED_REMOTE_PARENT;
    row->name = gp_ask_keep(arena, gp_ask_read_text(cursor));
    span->service = gp_ask_keep(arena, gp_ask_read_text(cursor));
    span->host = gp_ask_keep(arena, gp_ask_read_text(cursor));
    span->pid = (uint32_t)gp_read_uint(cursor, sizeof(span->pid));
    read_times(cursor, row);
    if (row->name == NULL || span->service == NULL || span->host == NULL)
        return -ENOMEM;
    int result = read_info(cursor, arena, row);
    return cursor->bad ? -EBADMSG : result;
}

static int read_all(const gp_ask_bytes_t *answer, int (*take)(void *context, const gp_ask_span_t *span), void *context)
{
    gp_cursor_t cursor = gp_cursor_over(answer->data, answer->data + answer->len);
    int result = 0;
    while (result == 0 && gp_cursor_more(&cursor)) {
        gp_arena_t arena = {0};
        gp_ask_span_t span = {0};
        result = read_span(&cursor, &arena, &span);
        if (result == 0)
            result = take(context, &span);
        gp_arena_free(&arena);
    }
    return result;
}

static int ask_of_traces(const gp_question_t *question, const char *trace, gp_ask_bytes_t *answer)
{
    char like[HEX_DIGITS + 64] = "";
    if (trace != NULL)
        snprintf(like, sizeof(like), " AND lower(hex(trace)) LIKE '%s%%'", trace);
    return gp_question_ask(question,
                           "SELECT trace, span, parent, kind, flags, name, service, host, toUInt32(pid), start_ns, "
                           "end_ns, cpu_ns, ready_ns, parked_ns, blocked_ns, preempted_ns, waiting_ns, info.key, "
                           "info.value",
                           like, answer);
}

static int ask_url(const gp_fleet_url_t *url, const char *trace, int (*take)(void *context, const gp_ask_span_t *span),
                   void *context, char *error)
{
    gp_ask_bytes_t answer = {0};
    gp_question_t question;
    int result = gp_question_open(&question, url, "spans", NULL, 0, error);
    if (result == 0 && (result = join_processes(&question)) < 0)
        gp_question_fail(&question, result, strerror(-result), "");
    if (result == 0)
        result = ask_of_traces(&question, trace, &answer);
    if (result == 0) {
        result = read_all(&answer, take, context);
        if (result < 0)
            gp_question_fail(&question, result, result == -EBADMSG ? "the answer is not whole" : strerror(-result), "");
    }
    gp_question_close(&question);
    free(answer.data);
    return result;
}

int gp_ask_spans(const char *text, const char *trace, int (*take)(void *context, const gp_ask_span_t *span),
                 void *context, char error[GP_FLEET_ERROR_SIZE])
{
    gp_fleet_url_t url = {0};
    if (trace != NULL && !is_beginning(trace)) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "trace: '%.100s' has no meaning", trace);
        return -EINVAL;
    }
    int result = gp_fleet_url_parse(&url, text, error);
    if (result == 0)
        result = ask_url(&url, trace, take, context, error);
    gp_fleet_url_free(&url);
    return result;
}
