// SPDX-License-Identifier: MIT
#include "trace_store.h"

#include <errno.h>
#include <string.h>

#include "message.h"
#include "model/span_kind.h"
#include "progress.h"
#include "ship/ask/ask.h"

static uint64_t trace_store_be64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static uint32_t trace_store_flags_of(const gp_row_span_t *row)
{
    return (row->flags & GP_STORED_OPEN ? GP_SPAN_OPEN : 0u) |
           (row->flags & GP_STORED_NO_TIMES ? GP_SPAN_NO_TIMES : 0u) |
           (row->flags & GP_STORED_RESTED ? GP_SPAN_RESTED : 0u) |
           (row->flags & GP_STORED_FAILED ? GP_SPAN_FAILED : 0u) |
           (row->flags & GP_STORED_REMOTE_PARENT ? GP_SPAN_REMOTE_PARENT : 0u);
}

static const prof_field_t *trace_store_copy_info(gp_spans_t *set, const gp_row_span_t *row)
{
    prof_field_t *fields = gp_arena_alloc(&set->arena, (row->info_count + 1) * sizeof(*fields));
    for (size_t i = 0; i < row->info_count && fields != NULL; i++) {
        fields[i] = (prof_field_t){gp_spans_text(set, row->info[i].key), gp_spans_text(set, row->info[i].value)};
        if (fields[i].key == NULL || fields[i].value == NULL)
            return NULL;
    }
    return fields;
}

static int trace_store_take(void *context, const gp_ask_span_t *span)
{
    gp_spans_t *set = context;
    const gp_row_span_t *row = &span->row;
    gp_tree_span_t item = {
        .id = {0, row->id},
        .parent_id = {0, row->parent},
        .trace =
            gp_spans_trace(set, (gp_id128_t){trace_store_be64(row->trace), trace_store_be64(row->trace + 8)}, NULL),
        .process = gp_spans_process(set, span->process.service, span->process.host, span->process.pid),
        .kind = gp_span_kind_text(row->kind),
        .record = {.name = gp_spans_text(set, row->name),
                   .start_unix_ns = row->start_ns,
                   .end_unix_ns = row->end_ns,
                   .cpu_ns = row->times.cpu_ns,
                   .ready_ns = row->times.ready_ns,
                   .parked_ns = row->times.parked_ns,
                   .blocked_ns = row->times.blocked_ns,
                   .preempted_ns = row->times.preempted_ns,
                   .waiting_ns = row->times.waiting_ns,
                   .flags = trace_store_flags_of(row),
                   .fields = trace_store_copy_info(set, row),
                   .field_count = row->info_count},
    };
    if (item.trace == GP_NO_SPAN || item.process == GP_NO_SPAN || item.record.name == NULL ||
        item.record.fields == NULL)
        return -ENOMEM;
    return gp_spans_add(set, &item) != GP_NO_SPAN ? 0 : -ENOMEM;
}

int gp_trace_store_read(gp_spans_t *set, char **url, gp_wanted_t wanted)
{
    char error[GP_FLEET_ERROR_SIZE] = "", *shown = gp_ask_shown(*url);
    if (shown == NULL)
        return gp_fail("memory", "%s", strerror(ENOMEM));
    gp_progress_begin("asking", shown, -1);
    int result = gp_ask_spans(*url, wanted, trace_store_take, set, error);
    gp_progress_end();
    *url = shown;
    return result == 0 ? 0 : gp_fail(shown, "%s", error);
}
