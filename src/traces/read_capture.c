// SPDX-License-Identifier: MIT
// Spans of a capture, and the stacks that were sampled for them.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/read/process_text.h"
#include "facts/dataset.h"
#include "report/requests.h"
#include "traces/sources.h"

// The process' name: as it says itself, else its executable.
static const char *read_capture_service_of(const gp_dataset_t *dataset)
{
    const gp_facts_meta_t *service = gp_facts_meta(&dataset->facts, "service");
    const char *slash = strrchr(dataset->facts.exe, '/');
    if (service != NULL && service->value[0] != '\0')
        return service->value;
    return slash != NULL ? slash + 1 : dataset->facts.exe;
}

static uint64_t read_capture_be64(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return value;
}

static const prof_field_t *read_capture_copy_fields(gp_spans_t *set, const gp_dataset_span_t *span)
{
    prof_field_t *fields = gp_arena_alloc(&set->arena, ((size_t)span->field_count + 1) * sizeof(*fields));
    for (uint32_t i = 0; fields != NULL && i < span->field_count; i++) {
        fields[i].key = gp_spans_text(set, span->fields[i].key);
        fields[i].value = gp_spans_text(set, span->fields[i].value);
        if (fields[i].key == NULL || fields[i].value == NULL)
            return NULL;
    }
    return fields;
}

// A damaged capture may say any time.
static uint64_t read_capture_moment(const gp_dataset_t *dataset, uint64_t ns)
{
    uint64_t start = dataset->facts.header.start_realtime_ns, most = INT64_MAX / 4;
    return (start < most ? start : most) + (ns < most ? ns : most);
}

typedef struct owner { // a process of which some spans may be
    gp_process_text_t text;
    uint32_t process; // GP_NO_SPAN: none of it was seen yet
} owner_t;

typedef struct owners {
    owner_t *items; // [count], of the merged processes; behind them, one for all others
    size_t count;
} owners_t;

static int read_capture_list_owners(const gp_dataset_t *dataset, owners_t *owners)
{
    const gp_facts_meta_t *host = gp_facts_meta(&dataset->facts, "hostname");
    owners->items = calloc(dataset->facts.metas.count + 1, sizeof(*owners->items));
    if (owners->items == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->facts.metas.count; i++) {
        const gp_facts_meta_t *meta = &dataset->facts.metas.items[i];
        owner_t *owner = &owners->items[owners->count];
        owner->process = GP_NO_SPAN;
        owners->count +=
            strcmp(meta->key, "process") == 0 && gp_process_text_read(meta->value, meta->value_len, &owner->text);
    }
    owners->items[owners->count] = (owner_t){
        {0, UINT64_MAX, dataset->facts.header.pid, read_capture_service_of(dataset), host != NULL ? host->value : ""},
        GP_NO_SPAN};
    return 0;
}

static uint32_t read_capture_process_of(gp_spans_t *set, owners_t *owners, uint64_t coro)
{
    owner_t *owner = owners->items;
    while (coro < owner->text.first || coro > owner->text.last) // the last one has all
        owner++;
    if (owner->process == GP_NO_SPAN)
        owner->process = gp_spans_process(set, owner->text.service, owner->text.host, owner->text.pid);
    return owner->process;
}

static int read_capture_add_span(gp_spans_t *set, const gp_dataset_t *dataset, const gp_dataset_span_t *span,
                                 uint32_t process)
{
    const uint8_t *id = dataset->facts.traces.items[span->trace].id;
    gp_tree_span_t item = {
        .id = {0, span->is.id},
        .parent_id = {0, span->is.parent_id},
        .trace = gp_spans_trace(set, (gp_id128_t){read_capture_be64(id), read_capture_be64(id + 8)}, NULL),
        .process = process,
        .kind = gp_span_kind_text(span->is.kind),
    };
    gp_span_publish(&span->is, read_capture_moment(dataset, span->is.start), read_capture_moment(dataset, span->is.end),
                    &item.record);
    item.record.name = gp_spans_text(set, span->name);
    item.record.fields = read_capture_copy_fields(set, span);
    item.record.field_count = span->field_count;
    if (item.trace == GP_NO_SPAN || item.record.name == NULL || item.record.fields == NULL)
        return -ENOMEM;
    return gp_spans_add(set, &item) != GP_NO_SPAN ? 0 : -ENOMEM;
}

int gp_spans_read_dataset(gp_spans_t *set, const gp_dataset_t *dataset)
{
    owners_t owners = {0};
    int result = read_capture_list_owners(dataset, &owners);
    for (size_t i = 0; i < dataset->spans.count && result == 0; i++) {
        const gp_dataset_span_t *span = &dataset->spans.items[i];
        uint32_t process = read_capture_process_of(set, &owners, dataset->facts.coros.items[span->coro].record.id);
        result = process != GP_NO_SPAN ? read_capture_add_span(set, dataset, span, process) : -ENOMEM;
    }
    free(owners.items);
    return result;
}

static int read_capture_take_request(gp_spans_t *set, uint32_t trace, const gp_dataset_t *dataset,
                                     const gp_request_t *request)
{
    const gp_dataset_span_t *span = request->span != GP_INDEX_NONE ? &dataset->spans.items[request->span] : NULL;
    uint32_t item = span != NULL ? gp_spans_find(set, trace, (gp_id128_t){0, span->is.id}) : GP_NO_SPAN;
    if (item == GP_NO_SPAN || request->coros == 0)
        return 0;
    gp_tree_work_t *work = gp_arena_alloc(&set->arena, sizeof(*work));
    if (work == NULL)
        return -ENOMEM;
    *work = (gp_tree_work_t){
        .coroutines = request->coros,
        .cpu = request->ledger.cpu_ns,
        .ready = request->ledger.ready_ns,
        .parked = request->ledger.parked_ns,
        .blocked = gp_ledger_kind_ns(&request->ledger, GP_KIND_BLOCKED) +
                   gp_ledger_kind_ns(&request->ledger, GP_KIND_GIL) + gp_ledger_kind_ns(&request->ledger, GP_KIND_LOCK),
        .preempted = gp_ledger_kind_ns(&request->ledger, GP_KIND_PREEMPTED),
        .waiting = request->ledger.waiting_ns,
    };
    set->items[item].work = work;
    return 0;
}

int gp_spans_take_work(gp_spans_t *set, uint32_t trace, const gp_dataset_t *dataset, uint32_t number)
{
    gp_requests_t *requests = gp_requests_create(dataset, true);
    int result = requests != NULL ? 0 : -errno;
    if (requests == NULL)
        return result;
    for (uint32_t i = requests->first[number]; i < requests->first[number + 1] && result == 0; i++)
        result = read_capture_take_request(set, trace, dataset, &requests->items[i]);
    gp_requests_free(requests);
    return result;
}
