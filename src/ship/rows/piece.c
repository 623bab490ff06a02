// SPDX-License-Identifier: MIT
#include "ship/rows/piece.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/span_kind.h"

enum { SLOTS_MIN = 4096, ENDPOINT_SIZE = 512 };

static bool piece_same_row(const gp_piece_row_t *a, const gp_piece_row_t *b)
{
    return a->bucket == b->bucket && a->coro_id == b->coro_id && a->trace == b->trace && a->stack_id == b->stack_id &&
           a->kind == b->kind && a->measure == b->measure && a->hog_id == b->hog_id;
}

static uint64_t piece_hash_row(const gp_piece_row_t *row)
{
    uint64_t hash = row->bucket * 0x9e3779b97f4a7c15ull ^ row->coro_id ^ row->hog_id << 20;
    return gp_hash_u64(hash * 0x9e3779b97f4a7c15ull ^ ((uint64_t)row->trace << 32 | row->stack_id) ^
                       (uint64_t)row->kind << 29);
}

static int piece_more_slots(gp_piece_t *piece)
{
    size_t count = piece->slot_count > 0 ? 2 * piece->slot_count : SLOTS_MIN;
    uint32_t *slots = calloc(count, sizeof(*slots));
    if (slots == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < piece->row_count; i++) {
        size_t at = piece_hash_row(&piece->rows[i]);
        while (slots[at & (count - 1)] != 0)
            at++;
        slots[at & (count - 1)] = (uint32_t)i + 1;
    }
    free(piece->slots);
    piece->slots = slots;
    piece->slot_count = count;
    return 0;
}

int gp_piece_add_row(gp_piece_t *piece, const gp_piece_row_t *row)
{
    if (2 * piece->row_count >= piece->slot_count && piece_more_slots(piece) < 0)
        return -ENOMEM;
    size_t at = piece_hash_row(row);
    for (uint32_t number; (number = piece->slots[at & (piece->slot_count - 1)]) != 0; at++) {
        gp_piece_row_t *known = &piece->rows[number - 1];
        if (!piece_same_row(known, row))
            continue;
        known->weight_ns += row->weight_ns;
        known->squares_ns2 += row->squares_ns2;
        known->samples += row->samples;
        return 0;
    }
    if (piece->row_count >= GP_BATCH_ROWS_MAX)
        return -EOVERFLOW;
    if (gp_grow(&piece->rows, &piece->row_capacity, piece->row_count, sizeof(*row)) < 0)
        return -ENOMEM;
    piece->rows[piece->row_count++] = *row;
    piece->slots[at & (piece->slot_count - 1)] = (uint32_t)piece->row_count;
    return 0;
}

static int piece_on_header(void *context, const gp_file_header_t *header)
{
    ((gp_piece_t *)context)->shift_ns = header->start_realtime_ns;
    return 0;
}

static int piece_on_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_piece_t *piece = context;
    uint64_t time_ns = 0;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const gp_piece_row_t row = {
            .bucket = (piece->shift_ns + samples[i].time_ns) / piece->grain_ns,
            .coro_id = samples[i].coro_id,
            .weight_ns = samples[i].weight_ns,
            .squares_ns2 = (double)samples[i].weight_ns * (double)samples[i].weight_ns,
            .trace = samples[i].trace,
            .stack_id = samples[i].stack_id,
            .samples = 1,
            .kind = (uint8_t)samples[i].kind,
        };
        piece->weight_read += row.weight_ns;
        time_ns = samples[i].time_ns > time_ns ? samples[i].time_ns : time_ns;
        result = gp_piece_add_row(piece, &row);
    }
    piece->samples_read += count;
    gp_facts_seen_at(&piece->known->facts, time_ns);
    return result;
}

static gp_row_times_t piece_times_of(const gp_span_record_t *span)
{
    uint64_t used = span->cpu_ns + span->blocked_ns;
    return (gp_row_times_t){
        .cpu_ns = span->cpu_ns,
        .ready_ns = span->ready_ns,
        .parked_ns = span->parked_ns,
        .blocked_ns = span->blocked_ns,
        .preempted_ns = span->slice_ns > used ? span->slice_ns - used : 0,
        .waiting_ns = span->waiting_ns,
    };
}

static uint8_t piece_stored_flags(uint32_t flags)
{
    return (uint8_t)((flags & GP_SPAN_OPEN ? GP_STORED_OPEN : 0) | (flags & GP_SPAN_NO_TIMES ? GP_STORED_NO_TIMES : 0) |
                     (flags & GP_SPAN_FAILED ? GP_STORED_FAILED : 0) |
                     (flags & GP_SPAN_REMOTE_PARENT ? GP_STORED_REMOTE_PARENT : 0) |
                     (flags & GP_SPAN_RESTED ? GP_STORED_RESTED : 0));
}

static gp_row_pair_t *piece_copy_info(gp_piece_t *piece, const gp_span_record_t *span, const char *fields)
{
    const char *at = gp_arena_copy(&piece->arena, fields, (size_t)span->fields_len + 1);
    gp_row_pair_t *pairs = gp_arena_alloc(&piece->arena, ((size_t)span->field_count + 1) * sizeof(*pairs));
    if (at == NULL || pairs == NULL)
        return NULL;
    for (uint32_t i = 0; i < span->field_count; i++) {
        pairs[i].key = at;
        pairs[i].value = at + strlen(at) + 1;
        at = pairs[i].value + strlen(pairs[i].value) + 1;
    }
    return pairs;
}

static int piece_add_request(gp_piece_t *piece, const gp_span_record_t *span, const gp_row_span_t *row)
{
    char text[ENDPOINT_SIZE];
    snprintf(text, sizeof(text), "%s%s%s", gp_span_kind_text(span->kind), row->name[0] != '\0' ? " " : "", row->name);
    const gp_row_request_t request = {
        .start_ns = row->start_ns,
        .latency_ns = row->end_ns - row->start_ns,
        .span = span->id,
        .endpoint = gp_capture_names_text(piece->known, text),
        .times = row->times,
        .has_failed = span->flags & GP_SPAN_FAILED,
    };
    if (request.endpoint == NULL ||
        gp_grow(&piece->requests, &piece->request_capacity, piece->request_count, sizeof(request)) < 0)
        return -ENOMEM;
    piece->requests[piece->request_count++] = request;
    return span->trace == 0 ? 0
                            : gp_capture_names_put(&piece->known->endpoints, span->trace, (uintptr_t)request.endpoint);
}

// Numbers of traces become ids when all of the piece is read: until then, they are kept in the first bytes.
static int piece_on_span(void *context, const gp_span_record_t *span, const char *name, const char *fields)
{
    gp_piece_t *piece = context;
    gp_row_span_t row = {
        .start_ns = piece->shift_ns + span->start_ns,
        .end_ns = piece->shift_ns + (span->end_ns > span->start_ns ? span->end_ns : span->start_ns),
        .id = span->id,
        .parent = span->parent_id,
        .kind = span->kind,
        .name = gp_arena_text(&piece->arena, name, span->name_len),
        .times = piece_times_of(span),
        .flags = piece_stored_flags(span->flags),
    };
    int result = 0;
    piece->batch.spans_read++;
    memcpy(row.trace, &span->trace, sizeof(span->trace));
    if (piece->options->with_info && span->field_count > 0) {
        row.info = piece_copy_info(piece, span, fields);
        row.info_count = row.info != NULL ? span->field_count : 0;
    }
    if (row.name == NULL || gp_grow(&piece->spans, &piece->span_capacity, piece->span_count, sizeof(row)) < 0)
        return -ENOMEM;
    if (gp_piece_is_request(span)) {
        piece->known->has_requests = true;
        result = piece_add_request(piece, span, &row);
        if (result == 0)
            memcpy(piece->requests[piece->request_count - 1].trace, row.trace, sizeof(row.trace));
    }
    if (!piece->options->no_traces)
        piece->spans[piece->span_count++] = row;
    return result;
}

static int piece_on_hog(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks)
{
    (void)hog, (void)stacks;
    ((gp_piece_t *)context)->known->has_hogs = true; // they are sent when all of the delays are known
    return 0;
}

static const gp_reader_handlers_t handlers = {
    .header = piece_on_header,
    .samples = piece_on_samples,
    .span = piece_on_span,
    .ledger = gp_piece_add_ledger,
    .hog = piece_on_hog,
};

static int piece_want(gp_capture_names_table_t *wanted, const gp_table_t *table, uint64_t kind, uint64_t id)
{
    return id == 0 || gp_table_find(table, id) != GP_INDEX_NONE ? 0 : gp_capture_names_put(wanted, kind | id, 1);
}

// Ids in the rows without a known definition.
static int piece_find_wanted(const gp_piece_t *piece, gp_capture_names_table_t *wanted)
{
    const gp_facts_t *facts = &piece->known->facts;
    int result = 0;
    for (size_t i = 0; i < piece->row_count && result == 0; i++) {
        result = piece_want(wanted, &facts->coros.table, GP_FACTS_CORO, piece->rows[i].coro_id);
        if (result == 0)
            result = piece_want(wanted, &facts->coros.table, GP_FACTS_CORO, piece->rows[i].hog_id);
        if (result == 0)
            result = piece_want(wanted, &facts->stacks.table, GP_FACTS_STACK, piece->rows[i].stack_id);
        if (result == 0)
            result = piece_want(wanted, &facts->traces.table, GP_FACTS_TRACE, piece->rows[i].trace);
    }
    for (size_t i = 0; i < piece->span_count && result == 0; i++)
        result = piece_want(wanted, &facts->traces.table, GP_FACTS_TRACE, gp_piece_trace_number(piece->spans[i].trace));
    for (size_t i = 0; i < piece->request_count && result == 0; i++)
        result =
            piece_want(wanted, &facts->traces.table, GP_FACTS_TRACE, gp_piece_trace_number(piece->requests[i].trace));
    return result == 0 ? gp_piece_want_sums(piece, wanted) : result;
}

// Read definitions before the piece: the wanted ones, and, where never read, the ones that are always kept.
static int piece_read_before(gp_piece_t *piece, int fd, uint64_t from, bool is_first, char *error)
{
    gp_capture_names_table_t wanted = {0};
    gp_reader_part_t part = {.max = from};
    gp_reader_summary_t summary;
    int result = piece_find_wanted(piece, &wanted);
    if (result == 0 && (wanted.count > 0 || is_first) && from > 0) {
        gp_facts_t *facts = &piece->known->facts;
        const gp_taker_t sums = {&gp_capture_names_sums, piece->known, NULL},
                         takers = {&gp_facts_handlers, facts, &sums};
        bool ended = facts->ended;
        facts->wanted = &wanted.table;
        result = gp_reader_take_part(fd, &part, &takers, &summary, error);
        facts->wanted = NULL;
        facts->ended = ended;
    }
    gp_capture_names_clear(&wanted);
    return result;
}

static int piece_number_stack(gp_piece_t *piece, uint32_t stack_id, uint32_t *number)
{
    const gp_row_stack_t *row = gp_capture_names_row(piece->known, stack_id);
    if (row == NULL)
        return -ENOMEM;
    uint64_t key = row->id != 0 ? row->id : UINT64_MAX;
    const uint64_t *found = gp_capture_names_get(&piece->stack_numbers, key);
    if (found != NULL) {
        *number = (uint32_t)*found;
        return 0;
    }
    if (gp_grow(&piece->stacks, &piece->stack_capacity, piece->stack_count, sizeof(*row)) < 0 ||
        gp_capture_names_put(&piece->stack_numbers, key, piece->stack_count) < 0)
        return -ENOMEM;
    *number = (uint32_t)piece->stack_count;
    piece->stacks[piece->stack_count++] = *row;
    return 0;
}

// NULL when memory is short.
static const char *piece_name_coro(gp_piece_t *piece, uint64_t id)
{
    const uint64_t *found = gp_capture_names_get(&piece->coro_names, id);
    if (found != NULL)
        return (const char *)(uintptr_t)*found;
    const char *name = gp_capture_names_coro(piece->known, id);
    return name != NULL && gp_capture_names_put(&piece->coro_names, id, (uintptr_t)name) == 0 ? name : NULL;
}

static const uint8_t *piece_trace_id(const gp_piece_t *piece, uint32_t index)
{
    const gp_facts_t *facts = &piece->known->facts;
    uint32_t number =
        index != 0 && !piece->options->no_traces ? gp_table_find(&facts->traces.table, index) : GP_INDEX_NONE;
    return number != GP_INDEX_NONE ? facts->traces.items[number].id : NULL;
}

static int piece_name_row(gp_piece_t *piece, const gp_piece_row_t *row, gp_row_sample_t *sample)
{
    const uint8_t *trace = piece_trace_id(piece, row->trace);
    const uint64_t *endpoint = row->trace != 0 ? gp_capture_names_get(&piece->known->endpoints, row->trace) : NULL;
    *sample = (gp_row_sample_t){
        .time_s = row->bucket * piece->grain_ns / 1000000000,
        .endpoint = endpoint != NULL ? (const char *)(uintptr_t)*endpoint : "",
        .coroutine = piece_name_coro(piece, row->coro_id),
        .hog = row->hog_id != 0 ? piece_name_coro(piece, row->hog_id) : "",
        .measure = row->measure,
        .state = row->kind,
        .samples = row->samples,
        .weight_ns = row->weight_ns,
        .squares_ns2 = row->squares_ns2,
    };
    if (trace != NULL)
        memcpy(sample->trace, trace, sizeof(sample->trace));
    if (sample->coroutine == NULL || sample->hog == NULL)
        return -ENOMEM;
    return piece_number_stack(piece, row->stack_id, &sample->stack);
}

// By time, then by stack: as stores sort them. The rest makes the order, and so the batch, the same each time.
static int piece_by_time(const void *left, const void *right)
{
    const gp_row_sample_t *a = left, *b = right;
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s ? -1 : 1;
    if (a->stack != b->stack)
        return a->stack < b->stack ? -1 : 1;
    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    if (a->measure != b->measure)
        return a->measure < b->measure ? -1 : 1;
    int order = memcmp(a->trace, b->trace, sizeof(a->trace));
    if (order == 0 && a->coroutine != b->coroutine)
        order = strcmp(a->coroutine, b->coroutine);
    return order != 0 ? order : a->hog != b->hog ? strcmp(a->hog, b->hog) : 0;
}

static bool piece_same_sample(const gp_row_sample_t *a, const gp_row_sample_t *b)
{
    return piece_by_time(a, b) == 0 && a->endpoint == b->endpoint;
}

// Coroutines of one name, and stacks of the same names, become one row.
static void piece_join_rows(gp_piece_t *piece)
{
    size_t kept = 0;
    for (size_t i = 0; i < piece->row_count; i++) {
        gp_row_sample_t *last = kept > 0 ? &piece->samples[kept - 1] : NULL;
        if (last != NULL && piece_same_sample(last, &piece->samples[i]) &&
            (uint64_t)last->samples + piece->samples[i].samples <= UINT32_MAX) {
            last->weight_ns += piece->samples[i].weight_ns;
            last->squares_ns2 += piece->samples[i].squares_ns2;
            last->samples += piece->samples[i].samples;
        } else {
            piece->samples[kept++] = piece->samples[i];
        }
    }
    piece->batch.samples = piece->samples;
    piece->batch.sample_count = kept;
}

static int piece_name_rows(gp_piece_t *piece)
{
    int result = 0;
    piece->samples = malloc((piece->row_count + 1) * sizeof(*piece->samples));
    if (piece->samples == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < piece->row_count && result == 0; i++)
        result = piece_name_row(piece, &piece->rows[i], &piece->samples[i]);
    if (result < 0)
        return result;
    qsort(piece->samples, piece->row_count, sizeof(*piece->samples), piece_by_time);
    piece_join_rows(piece);
    piece->batch.stacks = piece->stacks;
    piece->batch.stack_count = piece->stack_count;
    return 0;
}

static void piece_name_trace(const gp_piece_t *piece, uint8_t trace[16])
{
    const uint8_t *id = piece_trace_id(piece, gp_piece_trace_number(trace));
    if (id != NULL)
        memcpy(trace, id, 16);
    else
        memset(trace, 0, 16);
}

static int piece_by_span_start(const void *left, const void *right)
{
    const gp_row_span_t *a = left, *b = right;
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns ? -1 : 1 : a->id < b->id ? -1 : a->id > b->id;
}

static int piece_by_request_start(const void *left, const void *right)
{
    const gp_row_request_t *a = left, *b = right;
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns ? -1 : 1 : a->span < b->span ? -1 : a->span > b->span;
}

static void piece_name_spans(gp_piece_t *piece)
{
    for (size_t i = 0; i < piece->span_count; i++)
        piece_name_trace(piece, piece->spans[i].trace);
    for (size_t i = 0; i < piece->request_count; i++)
        piece_name_trace(piece, piece->requests[i].trace);
    if (piece->span_count > 0)
        qsort(piece->spans, piece->span_count, sizeof(*piece->spans), piece_by_span_start);
    if (piece->request_count > 0)
        qsort(piece->requests, piece->request_count, sizeof(*piece->requests), piece_by_request_start);
    piece->batch.spans = piece->spans;
    piece->batch.span_count = piece->span_count;
    piece->batch.requests = piece->requests;
    piece->batch.request_count = piece->request_count;
}

static int piece_read_piece(gp_piece_t *piece, int fd, uint64_t from, uint64_t to, uint64_t max, char *error)
{
    gp_reader_part_t part = {.from = from, .max = to != 0 ? to - from : max};
    gp_reader_summary_t summary;
    const gp_taker_t rows = {&handlers, piece, NULL}, takers = {&gp_facts_handlers, &piece->known->facts, &rows};
    int result = gp_reader_take_part(fd, &part, &takers, &summary, error);
    piece->batch.from = from;
    piece->batch.to = part.to;
    return result;
}

int gp_piece_name(gp_piece_t *piece, int fd, uint64_t from, bool is_first, char *error)
{
    int result = piece_read_before(piece, fd, from, is_first, error);
    if (result == 0)
        result = piece_name_rows(piece);
    if (result == 0)
        result = gp_piece_make_whole(piece);
    if (result == 0)
        piece_name_spans(piece);
    if (result < 0 && error[0] == '\0')
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    return result;
}

int gp_piece_make(gp_piece_t *piece, gp_capture_names_t *known, int fd, uint64_t from, uint64_t to, uint64_t max,
                  const gp_piece_options_t *options, char error[GP_READER_ERROR_SIZE])
{
    bool is_first = !known->facts.has_header;
    int result;
    for (;;) {
        *piece = (gp_piece_t){.known = known, .options = options, .grain_ns = options->grain_ns};
        result = piece_read_piece(piece, fd, from, to, max, error);
        if (result != -EOVERFLOW || to != 0)
            break;
        gp_piece_free(piece); // too many rows for one batch
        max = (max != 0 ? max : UINT64_C(64) << 20) / 2;
    }
    if (result == 0)
        result = gp_piece_name(piece, fd, from, is_first, error);
    piece->batch.is_last = known->facts.ended;
    return result;
}

void gp_piece_free(gp_piece_t *piece)
{
    free(piece->rows);
    free(piece->slots);
    free(piece->samples);
    free(piece->stacks);
    free(piece->spans);
    free(piece->requests);
    gp_capture_names_clear(&piece->stack_numbers);
    gp_capture_names_clear(&piece->coro_names);
    gp_capture_names_clear(&piece->sums);
    gp_arena_free(&piece->arena);
    *piece = (gp_piece_t){0};
}
