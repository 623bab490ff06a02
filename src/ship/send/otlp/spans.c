// SPDX-License-Identifier: MIT
#include "ship/send/otlp/spans.h"

#include <string.h>

#include "base/hex.h"
#include "export/otlp_fields.h"
#include "export/otlp_resource.h"
#include "export/write/protobuf.h"
#include "model/span_kind.h"

static enum span_kind otlp_spans_kind_of(uint32_t kind)
{
    switch (kind) {
    case PROF_SPAN_REQUEST:
    case PROF_SPAN_REST_DISPATCH:
    case PROF_SPAN_RPC_DISPATCH:
        return SPAN_KIND_SERVER;
    case PROF_SPAN_REST_CALL:
    case PROF_SPAN_RPC_CALL:
    case PROF_SPAN_DATABASE:
    case PROF_SPAN_CACHE:
        return SPAN_KIND_CLIENT;
    default:
        return SPAN_KIND_INTERNAL;
    }
}

static void spans_put_id(gp_text_t *span, unsigned field, uint64_t id)
{
    uint8_t bytes[8];
    gp_hex_from_u64(id, bytes);
    gp_pb_bytes(span, field, bytes, sizeof(bytes));
}

static void spans_put_times(gp_text_t *span, const gp_row_times_t *times)
{
    const struct {
        const char *key;
        uint64_t ns;
    } all[] = {
        {"greenprof.cpu_ns", times->cpu_ns},
        {"greenprof.ready_ns", times->ready_ns},
        {"greenprof.parked_ns", times->parked_ns},
        {"greenprof.blocked_ns", times->blocked_ns},
        {"greenprof.preempted_ns", times->preempted_ns},
        {"greenprof.waiting_ns", times->waiting_ns},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].ns > 0)
            gp_otlp_put_number(span, SPAN_ATTRIBUTES, all[i].key, all[i].ns);
}

// Whether the request that is this span has failed. Requests are by start, as the first of that moment is found in
// `next`, which goes along with the spans.
static bool spans_has_failed(const gp_batch_t *batch, const gp_row_span_t *span, size_t *next)
{
    while (*next < batch->request_count && batch->requests[*next].start_ns < span->start_ns)
        ++*next;
    for (size_t i = *next; i < batch->request_count && batch->requests[i].start_ns == span->start_ns; i++)
        if (batch->requests[i].span == span->id)
            return batch->requests[i].has_failed;
    return false;
}

static void spans_put_span(gp_text_t *scope, const gp_row_span_t *row, bool failed)
{
    gp_text_t span = {0}, status = {0};
    gp_pb_bytes(&span, SPAN_TRACE_ID, row->trace, sizeof(row->trace));
    spans_put_id(&span, SPAN_SPAN_ID, row->id);
    if (row->parent != 0)
        spans_put_id(&span, SPAN_PARENT_SPAN_ID, row->parent);
    gp_pb_text(&span, SPAN_NAME, row->name[0] != '\0' ? row->name : gp_span_kind_text(row->kind));
    gp_pb_uint(&span, SPAN_KIND, otlp_spans_kind_of(row->kind));
    gp_pb_fixed64(&span, SPAN_START_UNIX_NANO, row->start_ns);
    gp_pb_fixed64(&span, SPAN_END_UNIX_NANO, row->end_ns);
    gp_otlp_put_text(&span, SPAN_ATTRIBUTES, "greenprof.kind", gp_span_kind_text(row->kind));
    if (!(row->flags & GP_STORED_NO_TIMES))
        spans_put_times(&span, &row->times);
    for (size_t i = 0; i < row->info_count; i++)
        gp_otlp_put_text(&span, SPAN_ATTRIBUTES, row->info[i].key, row->info[i].value);
    gp_pb_uint(&status, STATUS_CODE, failed ? STATUS_CODE_ERROR : 0);
    if (failed)
        gp_pb_message(&span, SPAN_STATUS, &status);
    gp_pb_message(scope, SCOPE_SPANS_SPANS, &span);
    gp_text_free(&span);
    gp_text_free(&status);
}

static size_t spans_put_scope(const gp_batch_t *batch, size_t from, size_t to, gp_text_t *scope)
{
    static const uint8_t no_trace[sizeof(batch->spans->trace)];
    gp_text_t inner = {0};
    size_t count = 0, request = 0;
    gp_pb_text(&inner, SCOPE_NAME, "greenprof");
    gp_pb_message(scope, SCOPE_SPANS_SCOPE, &inner);
    gp_text_free(&inner);
    for (size_t i = from; i < to; i++) {
        const gp_row_span_t *span = &batch->spans[i];
        if (span->flags & GP_STORED_OPEN || span->id == 0 || memcmp(span->trace, no_trace, sizeof(no_trace)) == 0)
            continue;
        spans_put_span(scope, span, spans_has_failed(batch, span, &request));
        count++;
    }
    return count;
}

size_t gp_otlp_spans(const gp_batch_t *batch, size_t from, size_t to, const char *const *resource, gp_text_t *data)
{
    gp_text_t scope = {0}, inner = {0}, whole = {0};
    size_t count = spans_put_scope(batch, from, to, &scope);
    gp_otlp_put_resource(&inner, batch->process->service, resource);
    gp_pb_message(&whole, RESOURCE_SPANS_RESOURCE, &inner);
    gp_pb_message(&whole, RESOURCE_SPANS_SCOPE_SPANS, &scope);
    gp_pb_message(data, TRACE_DATA_RESOURCE_SPANS, &whole);
    gp_text_free(&scope);
    gp_text_free(&inner);
    gp_text_free(&whole);
    return count;
}
