// SPDX-License-Identifier: MIT
#include "watch/slow_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/span_kind.h"
#include "watch/slow_parts.h"

enum { ENDPOINT_SIZE = 512 };

struct gp_slow_watched { // a capture
    uint64_t capture;
    int fd;
    gp_recovery_t recovery;
    gp_reader_part_t held_part;
    gp_held_process_t *process;
};

typedef struct gp_slow_watched watched_t;

static watched_t *slow_open_find(const gp_slow_open_t *open, uint64_t capture)
{
    for (size_t i = 0; i < open->count; i++)
        if (open->watched[i].capture == capture)
            return &open->watched[i];
    return NULL;
}

// The capture itself, whatever it is called by now.
static int slow_open_own(const gp_batch_t *batch)
{
    gp_slow_parts_t parts = {0};
    int result = gp_slow_parts_open(&parts, batch, UINT64_MAX);
    int fd = result == 0 && parts.count > 0 ? fcntl(parts.fds[parts.count - 1], F_DUPFD_CLOEXEC, 0) : -1;
    gp_slow_parts_close(&parts);
    return fd;
}

static watched_t *slow_open_watch(gp_slow_open_t *open, const gp_batch_t *batch)
{
    int fd = slow_open_own(batch);
    if (fd < 0)
        return NULL;
    if (gp_grow(&open->watched, &open->capacity, open->count, sizeof(*open->watched)) < 0) {
        close(fd);
        return NULL;
    }
    watched_t *watched = &open->watched[open->count++];
    *watched = (watched_t){.capture = batch->capture_id, .fd = fd};
    return watched;
}

static void slow_open_leave(gp_slow_open_t *open, watched_t *watched)
{
    close(watched->fd);
    gp_recovery_free(&watched->recovery);
    gp_slow_held_leave(&open->held, watched->process);
    *watched = open->watched[--open->count];
}

static bool slow_open_was_told(const gp_slow_open_t *open, uint64_t span)
{
    for (size_t i = 0; i < open->told_count; i++)
        if (open->told[i] == span)
            return true;
    return false;
}

static bool slow_open_is_open(const gp_slow_open_t *open, uint64_t span)
{
    for (size_t i = 0; i < open->count; i++)
        if (gp_recovery_has_open(&open->watched[i].recovery, span))
            return true;
    return false;
}

// Forget told requests that are no longer open; in the next part of a recording one is open once its first batch has
// come.
static void slow_open_forget_told(gp_slow_open_t *open, bool any_ended)
{
    size_t kept = 0;
    for (size_t i = 0; i < open->told_count && !any_ended; i++)
        if (slow_open_is_open(open, open->told[i]))
            open->told[kept++] = open->told[i];
    open->told_count = any_ended ? open->told_count : kept;
}

static int slow_open_add_request(gp_slow_open_t *open, const watched_t *watched, const gp_span_record_t *span,
                                 gp_slow_found_t *found)
{
    char text[ENDPOINT_SIZE];
    const char *name = (const char *)(span + 1);
    uint64_t last_ns = watched->recovery.last_ns;
    snprintf(text, sizeof(text), "%s%s%.*s", gp_span_kind_text(span->kind), span->name_len > 0 ? " " : "",
             (int)span->name_len, name);
    const char *endpoint = gp_arena_text(&open->texts, text, strlen(text));
    gp_row_request_t *requests = realloc(found->requests, (found->count + 1) * sizeof(*requests));
    if (requests == NULL || endpoint == NULL) {
        found->requests = requests != NULL ? requests : found->requests;
        return -ENOMEM;
    }
    found->requests = requests;
    requests[found->count++] = (gp_row_request_t){
        .start_ns = watched->recovery.header.start_realtime_ns + span->start_ns,
        .latency_ns = last_ns - span->start_ns,
        .span = span->id,
        .endpoint = endpoint,
        .has_failed = span->flags & GP_SPAN_FAILED,
    };
    return 0;
}

static bool slow_open_is_stuck(const gp_recovery_t *recovery, const gp_span_record_t *span, uint64_t stuck_ns)
{
    bool is_request = span->parent_id == 0 || span->flags & GP_SPAN_REMOTE_PARENT;
    return is_request && recovery->last_ns >= span->start_ns && recovery->last_ns - span->start_ns >= stuck_ns;
}

static int slow_open_choose(gp_slow_open_t *open, const watched_t *watched, uint64_t stuck_ns, gp_slow_found_t *found)
{
    const gp_recovery_t *recovery = &watched->recovery;
    int result = 0;
    for (size_t i = 0; i < recovery->count && result == 0; i++) {
        const gp_span_record_t *span = recovery->spans[i].record;
        if (span != NULL && slow_open_is_stuck(recovery, span, stuck_ns) && !slow_open_was_told(open, span->id))
            result = slow_open_add_request(open, watched, span, found);
    }
    return result;
}

int gp_slow_open_look(gp_slow_open_t *open, const gp_batch_t *batch, uint64_t stuck_ns, gp_slow_found_t *found)
{
    char error[GP_READER_ERROR_SIZE];
    *found = (gp_slow_found_t){.fd = -1};
    gp_arena_free(&open->texts);
    watched_t *watched = slow_open_find(open, batch->capture_id);
    if (watched == NULL && !batch->is_paths)
        watched = slow_open_watch(open, batch);
    if (watched == NULL)
        return 0;
    int result = gp_recovery_look(&watched->recovery, watched->fd, error);
    bool has_ended = watched->recovery.summary.ended;
    if (result == 0)
        result = gp_slow_held_look(&open->held, watched->fd, &watched->held_part, &watched->process, error);
    if (result == 0)
        slow_open_forget_told(open, has_ended);
    if (result < 0 || has_ended) {
        slow_open_leave(open, watched);
        return result == -ENOMEM ? result : 0;
    }
    found->recovery = &watched->recovery;
    found->process = watched->process;
    found->fd = watched->fd;
    return slow_open_choose(open, watched, stuck_ns, found);
}

int gp_slow_open_told(gp_slow_open_t *open, uint64_t span)
{
    if (gp_grow(&open->told, &open->told_capacity, open->told_count, sizeof(*open->told)) < 0)
        return -ENOMEM;
    open->told[open->told_count++] = span;
    return 0;
}

void gp_slow_open_free_found(gp_slow_found_t *found)
{
    free(found->requests);
    *found = (gp_slow_found_t){.fd = -1};
}

void gp_slow_open_free(gp_slow_open_t *open)
{
    while (open->count > 0)
        slow_open_leave(open, &open->watched[0]);
    free(open->watched);
    free(open->told);
    gp_slow_held_free(&open->held);
    gp_arena_free(&open->texts);
    *open = (gp_slow_open_t){0};
}
