// SPDX-License-Identifier: MIT
// The work of all coroutines for a request: the sum of the ledger's records of its trace, up to the first look at all
// coroutines after its end. They are written in the same go as the span, so that a capture need not have ended.
#include <errno.h>

#include "ship/rows/piece.h"

enum { CLOCK_NS = 1000 }; // between a span's times and the ledger's

static void piece_sums_add_record(gp_capture_names_sum_t *sum, const gp_ledger_record_t *record)
{
    sum->cpu_ns += record->cpu_ns;
    sum->slice_ns += record->slice_ns;
    sum->blocked_ns += record->blocked_ns;
    sum->ready_ns += record->ready_ns;
    sum->parked_ns += record->parked_ns;
    sum->waiting_ns += record->waiting_ns;
}

static void piece_sums_add_sum(gp_capture_names_sum_t *sum, const gp_capture_names_sum_t *more)
{
    sum->cpu_ns += more->cpu_ns;
    sum->slice_ns += more->slice_ns;
    sum->blocked_ns += more->blocked_ns;
    sum->ready_ns += more->ready_ns;
    sum->parked_ns += more->parked_ns;
    sum->waiting_ns += more->waiting_ns;
}

static gp_capture_names_sum_t *piece_sums_sum_of(gp_arena_t *arena, gp_capture_names_table_t *table, uint32_t trace)
{
    const uint64_t *found = gp_capture_names_get(table, trace);
    if (found != NULL)
        return (gp_capture_names_sum_t *)(uintptr_t)*found;
    gp_capture_names_sum_t *sum = gp_arena_alloc(arena, sizeof(*sum));
    if (sum == NULL || gp_capture_names_put(table, trace, (uintptr_t)sum) < 0)
        return NULL;
    *sum = (gp_capture_names_sum_t){0};
    return sum;
}

int gp_piece_add_ledger(void *context, const gp_ledger_record_t *record)
{
    gp_piece_t *piece = context;
    piece->ledger_ns = record->time_ns > piece->ledger_ns ? record->time_ns : piece->ledger_ns;
    if (record->trace == 0)
        return 0;
    gp_capture_names_sum_t *sum = piece_sums_sum_of(&piece->arena, &piece->sums, record->trace);
    if (sum != NULL)
        piece_sums_add_record(sum, record);
    return sum != NULL ? 0 : -ENOMEM;
}

static bool piece_sums_is_wanted(const gp_capture_names_t *known, uint32_t trace)
{
    return trace != 0 && known->facts.wanted != NULL &&
           gp_table_find(known->facts.wanted, GP_KNOWN_SUM | trace) != GP_INDEX_NONE;
}

static int piece_sums_on_span(void *context, const gp_span_record_t *span, const char *name, const char *fields)
{
    gp_capture_names_t *known = context;
    (void)name, (void)fields;
    if (!gp_piece_is_request(span) || !piece_sums_is_wanted(known, span->trace))
        return 0;
    gp_capture_names_sum_t *sum = piece_sums_sum_of(&known->facts.passing, &known->sums, span->trace);
    if (sum != NULL)
        sum->is_shared = true;
    return sum != NULL ? 0 : -ENOMEM;
}

static int piece_sums_on_ledger(void *context, const gp_ledger_record_t *record)
{
    gp_capture_names_t *known = context;
    if (!piece_sums_is_wanted(known, record->trace))
        return 0;
    gp_capture_names_sum_t *sum = piece_sums_sum_of(&known->facts.passing, &known->sums, record->trace);
    if (sum != NULL)
        piece_sums_add_record(sum, record);
    return sum != NULL ? 0 : -ENOMEM;
}

const gp_reader_handlers_t gp_capture_names_sums = {.span = piece_sums_on_span, .ledger = piece_sums_on_ledger};

// Did a request begin before the kept sums do, without a reading again for it?
static bool piece_sums_lacks_history(const gp_piece_t *piece, const gp_row_request_t *request, uint32_t trace)
{
    const gp_capture_names_t *known = piece->known;
    const uint64_t *found = gp_capture_names_get(&known->sums, trace);
    if (piece->batch.from == 0 || (found != NULL && ((const gp_capture_names_sum_t *)(uintptr_t)*found)->has_history))
        return false;
    return !known->has_sums || (known->sums_from > 0 && request->start_ns - piece->shift_ns < known->sums_from_ns);
}

int gp_piece_want_sums(const gp_piece_t *piece, gp_capture_names_table_t *wanted)
{
    int result = 0;
    for (size_t i = 0; i < piece->request_count && result == 0; i++) {
        uint32_t trace = gp_piece_trace_number(piece->requests[i].trace);
        if (trace != 0 && piece_sums_lacks_history(piece, &piece->requests[i], trace))
            result = gp_capture_names_put(wanted, GP_KNOWN_SUM | trace, 1);
    }
    return result;
}

static bool piece_sums_is_alone(const gp_piece_t *piece, size_t request, uint32_t trace)
{
    for (size_t i = 0; i < piece->request_count; i++)
        if (i != request && gp_piece_trace_number(piece->requests[i].trace) == trace)
            return false;
    return true;
}

static void piece_sums_set_times(gp_row_request_t *request, const gp_capture_names_sum_t *sum)
{
    uint64_t used = sum->cpu_ns + sum->blocked_ns;
    const gp_row_times_t times = {
        .cpu_ns = sum->cpu_ns,
        .ready_ns = sum->ready_ns,
        .parked_ns = sum->parked_ns,
        .blocked_ns = sum->blocked_ns,
        .preempted_ns = sum->slice_ns > used ? sum->slice_ns - used : 0,
        .waiting_ns = sum->waiting_ns,
    };
    request->times = times;
    request->is_whole = true;
}

// Sums of a request. Where requests of a trace follow one another, each has the sums since the one before; requests
// that end in the same piece cannot be told apart.
static int piece_sums_make_whole(gp_piece_t *piece, size_t number)
{
    gp_row_request_t *request = &piece->requests[number];
    uint32_t trace = gp_piece_trace_number(request->trace);
    uint64_t end_ns = request->start_ns + request->latency_ns - piece->shift_ns;
    bool is_settled = piece->ledger_ns >= end_ns || piece->known->facts.ended;
    if (trace == 0)
        return 0;
    gp_capture_names_sum_t *mine = piece_sums_sum_of(&piece->arena, &piece->sums, trace);
    if (mine == NULL)
        return -ENOMEM;
    const uint64_t *found = gp_capture_names_get(&piece->known->sums, trace);
    const gp_capture_names_sum_t *before = found != NULL ? (const gp_capture_names_sum_t *)(uintptr_t)*found : NULL;
    gp_capture_names_sum_t sum = *mine;
    if (before != NULL)
        piece_sums_add_sum(&sum, before);
    is_settled = is_settled && (before == NULL || !before->is_shared);
    bool is_all = sum.slice_ns > 0 && sum.slice_ns < INT64_MAX && sum.cpu_ns + CLOCK_NS >= request->times.cpu_ns;
    if (is_settled && is_all && piece_sums_is_alone(piece, number, trace))
        piece_sums_set_times(request, &sum);
    mine->is_given = true;
    return 0;
}

int gp_piece_make_whole(gp_piece_t *piece)
{
    int result = 0;
    for (size_t i = 0; i < piece->request_count && result == 0; i++)
        result = piece_sums_make_whole(piece, i);
    return result;
}

// Keep the sums of a trace for its next request, without a former request's.
static int piece_sums_keep_sum(gp_capture_names_t *known, const gp_capture_names_entry_t *entry)
{
    const gp_capture_names_sum_t *mine = (const gp_capture_names_sum_t *)(uintptr_t)entry->value;
    gp_capture_names_sum_t *sum = piece_sums_sum_of(&known->facts.passing, &known->sums, (uint32_t)entry->number);
    if (sum == NULL)
        return -ENOMEM;
    if (mine->is_given)
        *sum = (gp_capture_names_sum_t){.has_history = true};
    else
        piece_sums_add_sum(sum, mine);
    return 0;
}

void gp_piece_keep_sums(gp_piece_t *piece)
{
    gp_capture_names_t *known = piece->known;
    int result = 0;
    if (piece->batch.is_paths)
        return;
    for (size_t i = 0; i < piece->sums.count && result == 0; i++)
        result = piece_sums_keep_sum(known, &piece->sums.items[i]);
    if (!known->has_sums || result < 0) {
        known->sums_from = result < 0 ? piece->batch.to : piece->batch.from;
        known->sums_from_ns = known->facts.end_ns;
    }
    known->has_sums = true;
}
