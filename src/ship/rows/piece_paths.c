// SPDX-License-Identifier: MIT
// The critical paths of a capture's requests, and what coroutines waited for long slices of others, as a batch: when
// the capture has ended, as a path may need what came late.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/critical_path.h"
#include "ship/rows/piece.h"

enum { ENDPOINT_SIZE = 512 };

typedef struct walk {
    gp_piece_t *piece;
    const gp_dataset_t *dataset;
    const gp_requests_t *requests;
} walk_t;

static int piece_paths_take_path(void *context, uint32_t request, const gp_path_segment_t *segments, size_t count)
{
    const walk_t *walk = context;
    const gp_dataset_t *dataset = walk->dataset;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const gp_path_segment_t *segment = &segments[i];
        const gp_piece_row_t row = {
            .bucket = (walk->piece->shift_ns + segment->from_ns) / walk->piece->grain_ns,
            .coro_id = dataset->facts.coros.items[segment->coro].record.id,
            .weight_ns = segment->to_ns - segment->from_ns,
            .trace = dataset->facts.traces.items[walk->requests->items[request].trace].index,
            .stack_id = segment->stack != GP_INDEX_NONE ? dataset->facts.stacks.items[segment->stack].id : 0,
            .samples = 1,
            .kind = (uint8_t)segment->state,
            .measure = GP_ROW_CRITICAL_PATH,
        };
        result = row.weight_ns > 0 ? gp_piece_add_row(walk->piece, &row) : 0;
    }
    return result;
}

static int piece_paths_name_endpoints(const walk_t *walk)
{
    int result = 0;
    for (size_t i = 0; i < walk->requests->count && result == 0; i++) {
        const gp_request_t *request = &walk->requests->items[i];
        uint32_t trace = walk->dataset->facts.traces.items[request->trace].index;
        char text[ENDPOINT_SIZE];
        const char *endpoint = gp_capture_names_text(
            walk->piece->known, gp_endpoint_text(&walk->requests->endpoints[request->endpoint], text, sizeof(text)));
        if (endpoint == NULL)
            return -ENOMEM;
        result = trace != 0 ? gp_capture_names_put(&walk->piece->known->endpoints, trace, (uintptr_t)endpoint) : 0;
    }
    return result;
}

// Requests with a row of their own: with a span that has ended.
static bool *piece_paths_choose(const gp_requests_t *requests)
{
    bool *chosen = calloc(requests->count + 1, sizeof(*chosen));
    for (size_t i = 0; chosen != NULL && i < requests->count; i++) {
        const gp_request_t *request = &requests->items[i];
        chosen[i] = request->span != GP_INDEX_NONE && !request->is_about && !request->is_cut;
    }
    return chosen;
}

static int piece_paths_walk_paths(gp_piece_t *piece, const gp_dataset_t *dataset)
{
    walk_t walk = {.piece = piece, .dataset = dataset, .requests = gp_requests_create(dataset, false)};
    if (walk.requests == NULL)
        return -errno;
    bool *chosen = piece_paths_choose(walk.requests);
    int result =
        chosen != NULL ? gp_critical_paths(dataset, walk.requests, chosen, piece_paths_take_path, &walk) : -ENOMEM;
    if (result == 0)
        result = piece_paths_name_endpoints(&walk);
    free(chosen);
    gp_requests_free((gp_requests_t *)walk.requests);
    return result;
}

// The wait of one coroutine for a long slice, divided among the slice's sampled stacks.
static int piece_paths_add_delay(gp_piece_t *piece, const gp_dataset_t *dataset, const gp_dataset_delay_t *delay)
{
    const gp_dataset_hog_t *hog = &dataset->hogs.items[delay->hog];
    gp_piece_row_t row = {
        .bucket = (piece->shift_ns + hog->start_ns) / piece->grain_ns,
        .coro_id = dataset->facts.coros.items[delay->coro].record.id,
        .hog_id = dataset->facts.coros.items[hog->coro].record.id,
        .trace = dataset->facts.traces.items[delay->trace].index,
        .samples = 1,        // of the whole delay
        .kind = GP_KIND_CPU, // the stack as it is
        .measure = GP_ROW_VICTIM_TIME,
    };
    uint64_t weight_ns = 0, before = 0, given = 0;
    int result = 0;
    for (uint32_t i = 0; i < hog->stack_count; i++)
        weight_ns += hog->stacks[i].weight_ns;
    for (uint32_t i = 0; i < hog->stack_count && weight_ns > 0 && result == 0; i++) {
        before += hog->stacks[i].weight_ns;
        uint64_t upto = (uint64_t)((unsigned __int128)delay->delay_ns * before / weight_ns);
        row.stack_id = dataset->facts.stacks.items[hog->stacks[i].stack_id].id;
        row.weight_ns = upto - given;
        given = upto;
        result = gp_piece_add_row(piece, &row);
        row.samples = 0;
    }
    if (weight_ns > 0 || result < 0)
        return result;
    row.weight_ns = delay->delay_ns;
    return gp_piece_add_row(piece, &row);
}

int gp_piece_make_paths(gp_piece_t *piece, gp_capture_names_t *known, int fd, uint64_t size,
                        const gp_piece_options_t *options, char error[GP_READER_ERROR_SIZE])
{
    *piece = (gp_piece_t){.known = known, .options = options, .grain_ns = options->grain_ns};
    bool is_first = !known->facts.has_header;
    gp_dataset_t *dataset = lseek(fd, 0, SEEK_SET) == 0
                                ? gp_dataset_load_fd(fd, GP_KEEP_REQUESTS | GP_KEEP_HOGS | GP_KEEP_WORKS, error)
                                : NULL;
    if (dataset == NULL)
        return -errno;
    known->facts.header = dataset->facts.header;
    known->facts.has_header = true;
    piece->shift_ns = dataset->facts.header.start_realtime_ns;
    piece->batch.from = size;
    piece->batch.to = size + 1;
    piece->batch.is_paths = piece->batch.is_last = true;
    int result = piece_paths_walk_paths(piece, dataset);
    for (size_t i = 0; i < dataset->delays.count && result == 0; i++)
        result = piece_paths_add_delay(piece, dataset, &dataset->delays.items[i]);
    if (result == 0)
        result = gp_piece_name(piece, fd, size, is_first, error);
    gp_dataset_free(dataset);
    return result;
}
