// SPDX-License-Identifier: MIT
#include "record/span_listen.h"

#include <errno.h>
#include <string.h>

#include "collect/collector.h"
#include "collect/sampler.h"
#include "record/span_stack.h"
#include "signal/ledger_edges.h"
#include "signal/ticks.h"
#include "trace/span.h"

enum {
    LISTENING_HZ = 100, // samples are not heard of; by them CPU time and preemption within a slice are told apart
    STEP_NS = 1000000,  // the wall clock was set, or has drifted as far
};

static gp_span_listener_t *heard_by; // under the drain lock, as all that follows
static void *heard_context;
static uint64_t anchor_ticks, anchor_unix_ns; // the same moment by both clocks

static uint64_t span_listen_to_unix_ns(uint64_t ticks)
{
    return ticks >= anchor_ticks ? anchor_unix_ns + gp_ticks_to_ns(ticks - anchor_ticks)
                                 : anchor_unix_ns - gp_ticks_to_ns(anchor_ticks - ticks);
}

// An anchor is kept as long as it holds: spans that lie within each other must do so by the other clock.
static void span_listen_drop_anchor(bool modules_changed)
{
    (void)modules_changed;
    uint64_t ticks = gp_ticks(), unix_ns = gp_clock_ns(CLOCK_REALTIME), expected = span_listen_to_unix_ns(ticks);
    if (heard_by == NULL || (unix_ns < expected + STEP_NS && expected < unix_ns + STEP_NS))
        return;
    anchor_ticks = ticks;
    anchor_unix_ns = unix_ns;
}

static size_t span_listen_list_fields(const gp_span_mark_t *mark, prof_field_t fields[GP_SPAN_FIELDS_MAX])
{
    const char *at = mark->text + mark->span.name_len, *end = at + mark->fields_len;
    size_t count = 0;
    for (; count < mark->field_count && count < GP_SPAN_FIELDS_MAX && at < end; count++) {
        fields[count].key = at;
        fields[count].value = at += strlen(at) + 1;
        at += strlen(at) + 1;
    }
    return count;
}

static void span_listen_hear(const gp_span_mark_t *mark)
{
    const gp_span_t *span = &mark->span;
    prof_field_t fields[GP_SPAN_FIELDS_MAX];
    prof_span_record_t record;
    char name[GP_SPAN_NAME_MAX + 1], stack[GP_SPAN_STACK_TEXT];
    if (heard_by == NULL || !span->is_chosen)
        return;
    memcpy(name, mark->text, span->name_len);
    name[span->name_len] = '\0';
    gp_span_publish(span, span_listen_to_unix_ns(span->start), span_listen_to_unix_ns(span->end), &record);
    record.name = name;
    record.fields = fields;
    record.field_count = span_listen_list_fields(mark, fields);
    record.stack = gp_span_stack_text(span->site, stack);
    heard_by(heard_context, &record);
}

static void span_listen_tell(const gp_span_mark_t *mark)
{
    GP_SINKS_CALL(span, mark);
}

// When it stopped: one that was over, or idle, when it was switched away from has done nothing since.
static uint64_t span_listen_last_ticks(prof_coro_t *coro)
{
    uint64_t since = gp_ledger_edge_load(&coro->since), retired = gp_ledger_edge_load(&coro->final_ticks);
    return gp_ledger_edge_is_over(coro) && since < retired ? since : retired;
}

void gp_span_tell_coro_over(prof_coro_t *coro)
{
    gp_span_coro_over(coro, gp_ledger_edge_load(&coro->final_id), span_listen_last_ticks(coro), span_listen_tell);
}

static const gp_sink_t listening_sink = {
    .refresh = span_listen_drop_anchor,
    .span = span_listen_hear,
    .coro_over = gp_span_tell_coro_over,
};

static void span_listen_set(gp_span_listener_t *listener, void *context)
{
    gp_drain_enter();
    heard_by = listener;
    heard_context = context;
    span_listen_drop_anchor(false);
    gp_drain_leave();
    gp_spans_want(GP_SPANS_HEARD, listener != NULL);
}

int gp_span_listen(gp_span_listener_t *listener, void *context)
{
    static bool is_added;
    if (listener == NULL) {
        span_listen_set(NULL, NULL);
        gp_sampler_release_patiently(LISTENING_HZ);
        return 0;
    }
    if (heard_by != NULL)
        return -EBUSY;
    int error = gp_sampler_acquire_patiently(LISTENING_HZ);
    if (error != 0)
        return error;
    span_listen_set(listener, context);
    if (!is_added)
        gp_sink_add(&listening_sink);
    is_added = true;
    return 0;
}
