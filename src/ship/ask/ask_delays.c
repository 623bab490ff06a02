// SPDX-License-Identifier: MIT
// Delays by service: coroutines that kept a thread while others were ready.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ship/ask/ask_question.h"

#define DELAYS(C)                                                                                                      \
    C(String, "service", delay.service)                                                                                \
    C(String, "hog", delay.hog)                                                                                        \
    C(String, "coroutine", delay.victim)                                                                               \
    C(String, "endpoint", delay.endpoint)                                                                              \
    C(UInt64, "sum(weight_ns) AS ns", delay.ns)                                                                        \
    C(UInt64, "toUInt64(sum(samples)) AS times", delay.count)

static int ask_delays_read_delays(const gp_ask_bytes_t *answer, const gp_ask_delays_t *ask)
{
    gp_arena_t arena = {0};
    gp_ask_reader_t all = gp_ask_reader(answer, &arena), *reader = &all;
    int result = 0;
    while (result == 0 && gp_ask_more(reader)) {
        gp_ask_delay_t delay;
        DELAYS(GP_ASK_TAKE)
        result = gp_ask_result(reader);
        if (result == 0)
            result = ask->take(ask->context, &delay);
        gp_arena_free(&arena);
    }
    return result;
}

int gp_ask_delays(const char *url, const gp_ask_delays_t *ask, char error[GP_FLEET_ERROR_SIZE])
{
    char rest[128];
    gp_question_t question;
    gp_ask_bytes_t answer = {0};
    int result = gp_question_open(&question, url, GP_TABLE_SAMPLES, ask->filters, ask->filter_count, error);
    if (result == 0)
        result = gp_question_measure(&question, GP_ROW_VICTIM_TIME);
    snprintf(rest, sizeof(rest), " GROUP BY service, hog, coroutine, endpoint ORDER BY ns DESC, service, hog LIMIT %u",
             ask->limit);
    if (result == 0)
        result = gp_question_ask(&question, DELAYS(GP_ASK_SELECT), rest, &answer);
    if (result == 0)
        result = ask_delays_read_delays(&answer, ask);
    free(answer.data);
    return gp_question_close(&question, result);
}
