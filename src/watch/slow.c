// SPDX-License-Identifier: MIT
// Slow requests: slow+file:///DIRECTORY?over=250ms&stuck=5s, for files of these alone.
//
// Model: each request of a batch is held against the target. For the slow ones the capture is read again, once a batch,
// together with the parts before it in which they began, and a folder of files is made for each. Records of a request
// may come a moment after its end, so the last second is waited for. Requests without an end are looked for at each
// batch as well: a process that hangs goes on saying which of its spans are open. So are coroutines without an open
// request, which do not give their thread back.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ship/send/destination.h"
#include "ship/send/ship_options.h"
#include "watch/slow_files.h"
#include "watch/slow_open.h"
#include "watch/slow_target.h"

enum { KEEP = 100, KEEP_MAX = 1000000 };

#define SETTLED_NS    UINT64_C(1000000000)
#define HELD_LEAST_NS UINT64_C(1000000000) // where all that is open is asked for

typedef struct slow {
    char *path;
    bool has_target, looks_at_open;
    gp_slow_target_t target;
    uint64_t stuck_ns; // 0 = all that are open
    gp_slow_open_t open;
    const gp_ship_options_t *options;
    size_t keep;
    gp_symbolizer_t *symbolizer;
} slow_t;

static int slow_parse_keep(const char *text, size_t *keep)
{
    char *end;
    *keep = KEEP;
    if (text == NULL)
        return 0;
    unsigned long long number = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (number == 0 || number > KEEP_MAX || *end != '\0')
        return -EINVAL;
    *keep = (size_t)number;
    return 0;
}

static int watch_slow_check_url(slow_t *slow, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE])
{
    static const char *const names[] = {"over", "stuck", "keep", NULL};
    const char *unknown = gp_fleet_url_unknown(url, names), *over = gp_fleet_url_option(url, "over");
    const char *stuck = gp_fleet_url_option(url, "stuck");
    bool is_here = url->path[0] == '/' && (url->host[0] == '\0' || strcmp(url->host, "localhost") == 0);
    slow->has_target = over != NULL;
    slow->looks_at_open = stuck != NULL;
    if (!is_here || (over == NULL && stuck == NULL))
        snprintf(error, GP_FLEET_ERROR_SIZE, "is to be slow+file:///DIRECTORY?over=TIME, over=p99 or stuck=TIME");
    else if (unknown != NULL)
        snprintf(error, GP_FLEET_ERROR_SIZE, "has no option '%.64s'; there are over, stuck and keep", unknown);
    else if (stuck != NULL && strcmp(stuck, "0s") != 0 && !gp_slow_time_parse(stuck, &slow->stuck_ns))
        snprintf(error, GP_FLEET_ERROR_SIZE, "stuck=%.64s: must be a time, as 5s or 500ms; 0s: all that are open",
                 stuck);
    else if (over != NULL && !gp_slow_target_parse(&slow->target, over))
        snprintf(error, GP_FLEET_ERROR_SIZE, "over=%.64s: must be %s", over, GP_SLOW_TARGET_WORDS);
    else if (slow_parse_keep(gp_fleet_url_option(url, "keep"), &slow->keep) < 0)
        snprintf(error, GP_FLEET_ERROR_SIZE, "keep: must be a number of requests, 1 to %d", KEEP_MAX);
    else
        return 0;
    return -EINVAL;
}

static void slow_close_slow(void *destination)
{
    slow_t *slow = destination;
    gp_slow_target_free(&slow->target);
    gp_slow_open_free(&slow->open);
    if (slow->symbolizer != NULL)
        gp_symbolizer_destroy(slow->symbolizer);
    free(slow->path);
    free(slow);
}

static int slow_open_slow(void **destination, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE])
{
    slow_t *slow = calloc(1, sizeof(*slow));
    int result = slow != NULL ? watch_slow_check_url(slow, url, error) : -ENOMEM;
    if (result == 0) {
        slow->path = strdup(url->path);
        slow->symbolizer = gp_symbolizer_create();
        result = slow->path != NULL && slow->symbolizer != NULL ? 0 : -ENOMEM;
    }
    if (result == 0)
        *destination = slow;
    else if (slow != NULL)
        slow_close_slow(slow);
    return result;
}

static int slow_slowest_first(const void *left, const void *right)
{
    const gp_slow_request_t *one = left, *other = right;
    return one->row->latency_ns < other->row->latency_ns ? 1 : one->row->latency_ns > other->row->latency_ns ? -1 : 0;
}

// No more than are kept. Returns how many.
static size_t slow_choose(slow_t *slow, const gp_batch_t *batch, gp_slow_request_t *chosen)
{
    size_t count = 0;
    for (size_t i = 0; slow->has_target && i < batch->request_count; i++) {
        const gp_row_request_t *row = &batch->requests[i];
        uint64_t from_ns = gp_slow_target_add(&slow->target, row->endpoint, row->latency_ns);
        if (row->latency_ns >= from_ns)
            chosen[count++] = (gp_slow_request_t){row, from_ns, false};
    }
    qsort(chosen, count, sizeof(*chosen), slow_slowest_first);
    return count < slow->keep ? count : slow->keep;
}

static void slow_let_settle(const gp_slow_request_t *chosen, size_t count)
{
    struct timespec now;
    uint64_t end_ns = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    for (size_t i = 0; i < count; i++) {
        uint64_t ends_ns = chosen[i].row->start_ns + chosen[i].row->latency_ns;
        end_ns = ends_ns > end_ns ? ends_ns : end_ns;
    }
    if (now_ns >= end_ns + SETTLED_NS || now_ns < end_ns)
        return;
    uint64_t left_ns = end_ns + SETTLED_NS - now_ns;
    struct timespec pause = {.tv_sec = (time_t)(left_ns / 1000000000), .tv_nsec = (long)(left_ns % 1000000000)};
    nanosleep(&pause, NULL);
}

static gp_slow_means_t slow_means_of(const slow_t *slow, int directory)
{
    return (gp_slow_means_t){
        .directory = directory,
        .path = slow->path,
        .symbolizer = slow->symbolizer,
        .coroutines = slow->options != NULL ? slow->options->coroutines : NULL,
    };
}

static int slow_write_open(slow_t *slow, const gp_batch_t *batch, const gp_slow_found_t *found, int directory,
                           char *error)
{
    gp_slow_request_t *chosen = calloc(found->count, sizeof(*chosen));
    gp_slow_means_t means = slow_means_of(slow, directory);
    size_t count = 0;
    means.recovery = found->recovery;
    means.fd = found->fd;
    for (size_t i = 0; chosen != NULL && i < found->count; i++)
        if (slow->stuck_ns == 0 || !gp_slow_files_has_open(directory, found->requests[i].span))
            chosen[count++] = (gp_slow_request_t){&found->requests[i], slow->stuck_ns, true};
    if (count > 1)
        qsort(chosen, count, sizeof(*chosen), slow_slowest_first);
    count = count < slow->keep ? count : slow->keep;
    int result = chosen == NULL ? -ENOMEM : count > 0 ? gp_slow_files_write(&means, batch, chosen, count, error) : 0;
    for (size_t i = 0; i < found->count && result == 0; i++)
        result = gp_slow_open_told(&slow->open, found->requests[i].span);
    free(chosen);
    return result;
}

// Write files for coroutines that hold their threads.
static int slow_write_held(slow_t *slow, const gp_batch_t *batch, const gp_slow_found_t *found, int directory,
                           char *error)
{
    gp_slow_means_t means = slow_means_of(slow, directory);
    uint64_t least_ns = slow->stuck_ns != 0 ? slow->stuck_ns : HELD_LEAST_NS;
    gp_held_found_t *held;
    size_t count;
    means.recovery = found->recovery;
    means.fd = found->fd;
    int result = gp_slow_held_list(found->process, least_ns, found->recovery, slow->symbolizer, &held, &count);
    for (size_t i = 0; i < count && result == 0; i++) {
        result = gp_slow_files_write_held(&means, batch, &held[i], least_ns, error);
        held[i].coro->is_told = result == 0;
    }
    free(held);
    if (result == 0 && count > 0)
        gp_slow_files_keep(directory, slow->keep);
    return result;
}

static int slow_send_open(slow_t *slow, const gp_batch_t *batch, int directory, char *error)
{
    gp_slow_found_t found;
    if (!slow->looks_at_open)
        return 0;
    int result = gp_slow_open_look(&slow->open, batch, slow->stuck_ns, &found);
    if (result == 0 && found.count > 0)
        result = slow_write_open(slow, batch, &found, directory, error);
    if (result == 0 && found.count > 0)
        gp_slow_files_keep(directory, slow->keep);
    if (result == 0 && found.process != NULL)
        result = slow_write_held(slow, batch, &found, directory, error);
    gp_slow_open_free_found(&found);
    return result;
}

static int slow_send_batch(slow_t *slow, const gp_batch_t *batch, int directory, char *error)
{
    gp_slow_request_t *chosen = malloc((batch->request_count + 1) * sizeof(*chosen));
    if (chosen == NULL)
        return -ENOMEM;
    size_t count = slow_choose(slow, batch, chosen);
    int result = 0;
    if (count > 0) {
        if (!batch->is_last)
            slow_let_settle(chosen, count);
        const gp_slow_means_t means = slow_means_of(slow, directory);
        result = gp_slow_files_write(&means, batch, chosen, count, error);
    }
    if (result == 0 && count > 0)
        gp_slow_files_keep(directory, slow->keep);
    free(chosen);
    return result;
}

static void slow_renew_symbolizer(slow_t *slow)
{
    gp_symbolizer_t *fresh = gp_symbolizer_is_crowded(slow->symbolizer) ? gp_symbolizer_create() : NULL;
    if (fresh == NULL)
        return;
    gp_symbolizer_destroy(slow->symbolizer);
    slow->symbolizer = fresh;
}

static int slow_send_slow(void *destination, const gp_batch_t *batches, size_t count, bool again,
                          char error[GP_FLEET_ERROR_SIZE])
{
    slow_t *slow = destination;
    (void)again; // a folder that is there stays
    int directory = open(slow->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = directory < 0 ? -errno : 0;
    if (result < 0)
        snprintf(error, GP_FLEET_ERROR_SIZE, "%.180s: %s", slow->path, strerror(-result));
    for (size_t i = 0; i < count && result == 0; i++)
        if ((result = slow_send_batch(slow, &batches[i], directory, error)) == 0)
            result = slow_send_open(slow, &batches[i], directory, error);
    if (directory >= 0)
        close(directory);
    slow_renew_symbolizer(slow);
    return result == 0 || result == -ENOMEM ? result : result == -EACCES || result == -EROFS ? -EACCES : -EAGAIN;
}

static void slow_use(void *destination, const gp_ship_options_t *options)
{
    ((slow_t *)destination)->options = options;
}

static void slow_describe(void *destination, const gp_batch_t *batch, FILE *out)
{
    const slow_t *slow = destination;
    (void)batch;
    fprintf(out, "%s: for each slow request a folder with its profile, critical path, page and times, the latest %zu\n",
            slow->path, slow->keep);
}

const gp_destination_kind_t gp_destination_slow = {
    .open = slow_open_slow,
    .use = slow_use,
    .send = slow_send_slow,
    .describe = slow_describe,
    .close = slow_close_slow,
};
