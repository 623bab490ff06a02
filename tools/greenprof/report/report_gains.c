// SPDX-License-Identifier: MIT
// Gains of endpoints: the stacks that have most of their critical paths, and on how many requests' paths they are.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/write/text.h"
#include "print.h"
#include "report/critical_path.h"
#include "tables.h"

enum { NAME_SIZE = 256, GAINS_SHOWN = 10 };

typedef struct gain {
    gp_path_segment_t segment; // its first, for its stack, state and flags
    uint32_t endpoint;
    uint32_t last, requests; // the request that was met last, and how many there are
    uint64_t ns;
} gain_t;

struct gp_gains {
    const gp_requests_t *requests;
    gain_t *items;
    size_t count, capacity;
    gp_index_t index;
    uint32_t *chosen; // by endpoint: how many requests
    uint64_t *total;  // and the sum of their latencies, ns
};
typedef struct gp_gains gains_t;

static bool report_gains_same_gain(const void *owner, uint32_t number, const void *key)
{
    const gain_t *a = &((const gain_t *)owner)[number], *b = key;
    return a->endpoint == b->endpoint && a->segment.stack == b->segment.stack && a->segment.state == b->segment.state &&
           a->segment.flags == b->segment.flags;
}

// Others that ran meanwhile make the time for which a coroutine was ready or preempted, not the stack it was at.
static bool report_gains_is_others_doing(const gp_path_segment_t *segment)
{
    return segment->state == GP_KIND_READY || segment->state == GP_KIND_PREEMPTED;
}

static int report_gains_add_segment(gains_t *gains, uint32_t request, const gp_path_segment_t *segment)
{
    if (report_gains_is_others_doing(segment))
        return 0;
    gain_t key = {.segment = *segment, .endpoint = gains->requests->items[request].endpoint, .last = GP_INDEX_NONE};
    key.segment.flags &= GP_PATH_NOT_STARTED | GP_PATH_UNRECORDED | GP_PATH_ELSEWHERE | GP_PATH_UNKNOWN;
    uint64_t hash = gp_hash_more(gp_hash_u64((uint64_t)key.endpoint << 32 | segment->stack), segment->state);
    uint32_t found = gp_index_find(&gains->index, hash, report_gains_same_gain, gains->items, &key);
    if (found == GP_INDEX_NONE) {
        found = (uint32_t)gains->count;
        if (gp_grow(&gains->items, &gains->capacity, gains->count, sizeof(key)) < 0 ||
            gp_index_add(&gains->index, hash, found) < 0)
            return -ENOMEM;
        gains->items[gains->count++] = key;
    }
    gain_t *gain = &gains->items[found];
    gain->ns += segment->to_ns - segment->from_ns;
    gain->requests += gain->last != request;
    gain->last = request;
    return 0;
}

int gp_gains_take(void *context, uint32_t request, const gp_path_segment_t *segments, size_t count)
{
    gains_t *gains = context;
    const gp_request_t *item = &gains->requests->items[request];
    gains->chosen[item->endpoint]++;
    gains->total[item->endpoint] += item->end_ns - item->start_ns;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = report_gains_add_segment(gains, request, &segments[i]);
    return result;
}

static int report_gains_by_time(const void *left, const void *right)
{
    const gain_t *a = left, *b = right;
    return a->ns > b->ns ? -1 : a->ns < b->ns;
}

static void report_gains_print_gain(const gp_input_t *source, const gains_t *gains, const gain_t *gain)
{
    uint64_t count = gains->chosen[gain->endpoint], total = gains->total[gain->endpoint];
    char ms[32], text[NAME_SIZE];
    gp_text_decimal(ms, gain->ns / (count > 0 ? count : 1), 1000000, 3);
    printf("%13s %6.1f %5" PRIu32 " of %-6" PRIu64 " %-9s ", ms, total > 0 ? (double)gain->ns * 100 / (double)total : 0,
           gain->requests, count, gp_report_path_state(&gain->segment));
    gp_report_print_path_stack(source, &gain->segment);
    printf(" of [");
    gp_print_text(gp_endpoint_text(&source->requests->endpoints[gain->endpoint], text, sizeof(text)));
    printf("]\n");
}

void gp_gains_print(const gp_input_t *source, gp_gains_t *gains)
{
    if (gains->count > 0)
        qsort(gains->items, gains->count, sizeof(*gains->items), report_gains_by_time);
    printf(
        "   Where a millisecond less makes the request a millisecond faster, until something else is on the path\n\n");
    printf(" ms a request      %%      requests state     where\n");
    for (size_t i = 0; i < gains->count && i < GAINS_SHOWN; i++)
        report_gains_print_gain(source, gains, &gains->items[i]);
    if (gains->count > GAINS_SHOWN)
        printf("   and %zu more stacks\n", gains->count - GAINS_SHOWN);
    printf("   Time ready or preempted is not listed: --by victim-time says what ran meanwhile\n\n");
}

gp_gains_t *gp_gains_create(const gp_requests_t *requests)
{
    gains_t *gains = calloc(1, sizeof(*gains));
    if (gains == NULL)
        return NULL;
    *gains = (gains_t){.requests = requests,
                       .chosen = calloc(requests->endpoint_count + 1, sizeof(*gains->chosen)),
                       .total = calloc(requests->endpoint_count + 1, sizeof(*gains->total))};
    if (gains->chosen != NULL && gains->total != NULL)
        return gains;
    gp_gains_free(gains);
    return NULL;
}

void gp_gains_free(gp_gains_t *gains)
{
    if (gains == NULL)
        return;
    gp_index_free(&gains->index);
    free(gains->items);
    free(gains->chosen);
    free(gains->total);
    free(gains);
}
