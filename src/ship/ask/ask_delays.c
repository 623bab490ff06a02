// SPDX-License-Identifier: MIT
// Which coroutines kept a thread while which others were ready, by service.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ship/ask/ask_question.h"
#include "ship/send/clickhouse_schema.h"

static int read_delays(const gp_ask_bytes_t *answer, const gp_ask_delays_t *ask)
{
    gp_cursor_t cursor = gp_cursor_over(answer->data, answer->data + answer->len);
    int result = 0;
    while (result == 0 && gp_cursor_more(&cursor)) {
        gp_arena_t arena = {0};
        gp_ask_delay_t delay = {.service = gp_ask_keep(&arena, gp_ask_read_text(&cursor)),
                                .hog = gp_ask_keep(&arena, gp_ask_read_text(&cursor)),
                                .victim = gp_ask_keep(&arena, gp_ask_read_text(&cursor)),
                                .endpoint = gp_ask_keep(&arena, gp_ask_read_text(&cursor))};
        delay.ns = gp_read_uint(&cursor, 8);
        delay.count = gp_read_uint(&cursor, 8);
        if (cursor.bad)
            result = -EBADMSG;
        else if (delay.service == NULL || delay.hog == NULL || delay.victim == NULL || delay.endpoint == NULL)
            result = -ENOMEM;
        else
            result = ask->take(ask->context, &delay);
        gp_arena_free(&arena);
    }
    return result;
}

int gp_ask_delays(const char *text, const gp_ask_delays_t *ask, char error[GP_FLEET_ERROR_SIZE])
{
    char rest[128];
    gp_fleet_url_t url = {0};
    gp_question_t question = {.error = error};
    gp_ask_bytes_t answer = {0};
    error[0] = '\0';
    int result = gp_fleet_url_parse(&url, text, error);
    if (result == 0) {
        result = gp_question_open(&question, &url, "samples", ask->filters, ask->filter_count, error);
        if (result == 0)
            result = gp_question_measure(&question, GP_ROW_VICTIM_TIME);
        if (result == 0)
            result = gp_schema_version(question.clickhouse, &question.version, error);
        if (result == 0 && question.version < 2)
            result = gp_question_fail(&question, -ENODATA,
                                      "the store has no delays: they come with a shipper of this version", "");
        snprintf(rest, sizeof(rest),
                 " GROUP BY service, hog, coroutine, endpoint ORDER BY ns DESC, service, hog LIMIT %u", ask->limit);
        if (result == 0)
            result = gp_question_ask(
                &question,
                "SELECT service, hog, coroutine, endpoint, sum(weight_ns) AS ns, toUInt64(sum(samples)) AS times", rest,
                &answer);
        if (result == 0)
            result = read_delays(&answer, ask);
        if (result < 0 && error[0] == '\0')
            gp_question_fail(&question, result, result == -EBADMSG ? "the answer is not whole" : strerror(-result), "");
        gp_question_close(&question);
    }
    free(answer.data);
    gp_fleet_url_free(&url);
    return result;
}
