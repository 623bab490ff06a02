// SPDX-License-Identifier: MIT
// The folder of a coroutine that holds its thread.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/slow_files_private.h"

enum { LABEL_SIZE = 256 };

typedef struct held {
    char name[LABEL_SIZE];
    const gp_held_coro_t *coro;
    size_t others;
    uint64_t from_ns, start_unix_ns, took_ns;
} held_t;

static const gp_slow_view_t views[] = {
    {"held.prof", "pstats", GP_BY_NONE, GP_MEASURE_CPU},
    {"wall.prof", "pstats", GP_BY_NONE, GP_MEASURE_WALL},
    {"held.html", "html", GP_BY_NONE, GP_MEASURE_WALL},
};

static void slow_files_held_put_held(gp_json_t *json, const gp_slow_capture_t *capture, const held_t *held)
{
    const gp_row_process_t *process = capture->batch->process;
    gp_json_key_uint(json, "coroutine", held->coro->id);
    gp_json_key_text(json, "name", held->name);
    gp_json_key_uint(json, "start_unix_ns", held->start_unix_ns);
    gp_json_key_uint(json, "held_ns", held->took_ns);
    gp_json_key_uint(json, "stuck_from_ns", held->from_ns);
    gp_json_key_text(json, "state", held->coro->cpu_ns >= held->coro->blocked_ns ? "running" : "blocked");
    gp_json_key_uint(json, "others", held->others);
    gp_json_key_text(json, "service", process->service);
    gp_json_key_text(json, "host", process->host);
    gp_json_key_uint(json, "pid", process->pid);
    gp_json_key_text(json, "capture", capture->batch->capture);
    gp_json_key(json, "in_capture");
    gp_json_bool(json, capture->dataset != NULL);
}

static int slow_files_held_write_views(const gp_slow_capture_t *capture, uint32_t coro, const char *folder)
{
    bool *coros = calloc(capture->dataset->facts.coros.count + 1, sizeof(bool));
    int result = coros != NULL ? 0 : -ENOMEM;
    if (result == 0)
        coros[coro] = true;
    const gp_report_options_t options = {.selection = {.coros = coros}};
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]) && result == 0; i++)
        result = gp_slow_files_view(capture, &views[i], &options, folder);
    free(coros);
    return result;
}

static int slow_files_held_fill(const gp_slow_capture_t *capture, const void *subject, int folder, const char *path)
{
    const held_t *held = subject;
    const gp_slow_means_t *means = capture->means;
    gp_json_t json;
    int result = gp_slow_files_json(folder, "held.json", &json);
    if (result < 0)
        return result;
    slow_files_held_put_held(&json, capture, held);
    result = gp_slow_files_json_end(&json);
    uint32_t coro = capture->dataset != NULL ? gp_dataset_coro_find(capture->dataset, held->coro->id) : GP_INDEX_NONE;
    if (result == 0 && coro != GP_INDEX_NONE)
        result = slow_files_held_write_views(capture, coro, path);
    if (result == 0 && means->coroutines != NULL)
        means->coroutines(capture->batch->process->pid, capture->batch->capture, "", folder, "coroutines.txt");
    return result;
}

// Load the coroutine's records since it has had its thread. A capture that has been removed meanwhile has none.
static int slow_files_held_load(gp_slow_capture_t *capture, const gp_held_coro_t *coro)
{
    char text[GP_READER_ERROR_SIZE];
    gp_captures_t captures = {0};
    uint64_t start_ns = capture->means->recovery->header.start_monotonic_ns;
    const gp_dataset_window_t window = {coro->since_ns > start_ns ? coro->since_ns - start_ns : 0, UINT64_MAX};
    int result = gp_slow_files_recovered(capture, &captures);
    if (result < 0) {
        gp_captures_free(&captures);
        return result;
    }
    capture->dataset = gp_dataset_load_captures(&captures, GP_KEEP_SPANS | GP_KEEP_HOGS | GP_KEEP_WORKS, &window, text);
    return capture->dataset == NULL && errno == ENOMEM ? -ENOMEM : 0;
}

static void slow_files_held_name_coro(const gp_slow_capture_t *capture, held_t *held)
{
    const gp_dataset_t *dataset = capture->dataset;
    uint32_t coro = dataset != NULL ? gp_dataset_coro_find(dataset, held->coro->id) : GP_INDEX_NONE;
    if (coro != GP_INDEX_NONE)
        gp_report_coro_label(dataset, coro, capture->means->symbolizer, true, held->name, sizeof(held->name));
    else
        snprintf(held->name, sizeof(held->name), "%s", held->coro->name);
}

int gp_slow_files_write_held(const gp_slow_means_t *means, const gp_batch_t *batch, const gp_held_found_t *found,
                             uint64_t from_ns, char error[GP_FLEET_ERROR_SIZE])
{
    const gp_file_header_t *header = &means->recovery->header;
    gp_slow_capture_t capture = {.means = means, .batch = batch};
    held_t held = {
        .coro = found->coro,
        .others = found->others,
        .from_ns = from_ns,
        .start_unix_ns = header->start_realtime_ns + (found->coro->since_ns - header->start_monotonic_ns),
        .took_ns = found->coro->last_ns - found->coro->since_ns,
    };
    char name[GP_SLOW_NAME_SIZE];
    int result = slow_files_held_load(&capture, found->coro);
    if (result == 0) {
        slow_files_held_name_coro(&capture, &held);
        gp_slow_files_name(held.start_unix_ns + held.took_ns, held.took_ns, "-held-", held.name, found->coro->id, name);
        result = gp_slow_files_make(&capture, name, slow_files_held_fill, &held);
    }
    if (result < 0 && error[0] == '\0')
        snprintf(error, GP_FLEET_ERROR_SIZE, "%.180s: %s", means->path, strerror(-result));
    gp_dataset_free(capture.dataset);
    return result;
}
