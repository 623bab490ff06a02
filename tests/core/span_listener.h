// SPDX-License-Identifier: MIT
// The common part of tests of spans: a listener that keeps all it is told, and the beginning of each test. Included by
// one source a program.
#pragma once

#include "cmocka_all.h"

#include <string.h>

#include "collect/collector.h"
#include "collect/sink.h"
#include "greenprof/prof.h"
#include "greenprof/trace.h"
#include "model/span_kind.h"
#include "trace/span.h"

enum { HEARD_MAX = 4096 };

typedef struct heard {
    gp_span_mark_t mark;
    char text[GP_SPAN_TEXT_MAX];
} heard_t;

static heard_t heard[HEARD_MAX];
static size_t heard_count;

static void hear(const gp_span_mark_t *mark)
{
    if (heard_count == HEARD_MAX)
        return;
    heard[heard_count].mark = *mark;
    memcpy(heard[heard_count].text, mark->text, (size_t)mark->span.name_len + mark->fields_len);
    heard_count++;
}

static const gp_sink_t sink = {.span = hear};
static prof_t *profile;

static size_t listen(void)
{
    gp_collector_sync();
    return heard_count;
}

static const heard_t *find(const char *name)
{
    size_t count = listen();
    for (size_t i = count; i > 0; i--)
        if (heard[i - 1].mark.span.name_len == strlen(name) &&
            memcmp(heard[i - 1].text, name, heard[i - 1].mark.span.name_len) == 0)
            return &heard[i - 1];
    fail_msg("no span %s was heard", name);
    return NULL;
}

static int set_up(void **state)
{
    (void)state;
    gp_collector_sync();
    heard_count = 0;
    gp_span_policy = NULL;
    gp_spans_want(GP_SPANS_HEARD, true);
    return 0;
}

static int start(void **state)
{
    (void)state;
    profile = prof_start(NULL);
    assert_non_null(profile);
    gp_sink_add(&sink);
    return 0;
}

static int stop_it(void **state)
{
    (void)state;
    prof_stop(profile);
    prof_free(profile);
    return 0;
}
