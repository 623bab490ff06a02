// SPDX-License-Identifier: MIT
// The spans of a capture, for tests: a line of JSON for each, in the order of their beginnings. Argument: the file.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "facts/dataset.h"

static void put_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++)
        if (*text == '"' || *text == '\\' || (unsigned char)*text < ' ')
            printf("\\u%04x", (unsigned)*text);
        else
            putchar(*text);
    putchar('"');
}

static void put_fields(const gp_dataset_span_t *span)
{
    printf(", \"fields\": [");
    for (uint32_t i = 0; i < span->field_count; i++) {
        printf("%s[", i > 0 ? ", " : "");
        put_text(span->fields[i].key);
        printf(", ");
        put_text(span->fields[i].value);
        printf("]");
    }
    printf("]");
}

static void put_trace(const gp_dataset_t *dataset, uint32_t number)
{
    printf(", \"trace\": \"");
    for (size_t i = 0; i < sizeof(dataset->facts.traces.items[number].id); i++)
        printf("%02x", dataset->facts.traces.items[number].id[i]);
    printf("\"");
}

static void put_span(const gp_dataset_t *dataset, const gp_dataset_span_t *span)
{
    const gp_ledger_t *times = &span->is.times;
    printf("{\"id\": %" PRIu64 ", \"parent_id\": %" PRIu64 ", \"is_root\": %s", span->is.id, span->is.parent_id,
           span->parent == GP_INDEX_NONE ? "true" : "false");
    printf(", \"coroutine\": %" PRIu64 ", \"end_coroutine\": %" PRIu64,
           dataset->facts.coros.items[span->coro].record.id, span->is.end_coro_id);
    printf(", \"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64, span->is.start, span->is.end);
    printf(", \"times_ns\": %" PRIu64, times->slice_ns + times->ready_ns + times->parked_ns + times->waiting_ns);
    printf(", \"cpu_ns\": %" PRIu64 ", \"parked_ns\": %" PRIu64 ", \"switches\": %" PRIu64, times->cpu_ns,
           times->parked_ns, times->switches);
    printf(", \"kind\": %u, \"flags\": %u, \"name\": ", span->is.kind, span->is.flags);
    put_text(span->name);
    put_trace(dataset, span->trace);
    put_fields(span);
    printf("}\n");
}

int main(int argc, char **argv)
{
    char error[GP_READER_ERROR_SIZE];
    gp_dataset_t *dataset = argc == 2 ? gp_dataset_load(argv[1], GP_KEEP_SPANS, error) : NULL;
    if (dataset == NULL) {
        fprintf(stderr, "list_spans: %s\n", argc == 2 ? error : "which capture?");
        return 1;
    }
    for (size_t i = 0; i < dataset->spans.count; i++)
        put_span(dataset, &dataset->spans.items[i]);
    gp_dataset_free(dataset);
    return 0;
}
