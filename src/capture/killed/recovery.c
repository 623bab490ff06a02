// SPDX-License-Identifier: MIT
#include "capture/killed/recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/write/write_parts.h"
#include "capture/write/writer.h"
#include "model/kinds.h"

enum { COPY_BYTES = 1 << 20, TIDY_MIN = 1024 };

static void recovery_note_time(gp_recovery_t *recovery, uint64_t time_ns)
{
    recovery->last_ns = time_ns > recovery->last_ns ? time_ns : recovery->last_ns;
}

static int recovery_take_header(void *context, const gp_file_header_t *header)
{
    gp_recovery_t *recovery = context;
    recovery->header = *header;
    return 0;
}

static int recovery_take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_recovery_t *recovery = context;
    for (size_t i = 0; i < count; i++) {
        recovery_note_time(recovery, samples[i].time_ns);
        recovery->samples += samples[i].kind == GP_KIND_CPU;
    }
    return 0;
}

static int recovery_take_ledger(void *context, const gp_ledger_record_t *ledger)
{
    recovery_note_time(context, ledger->time_ns);
    return 0;
}

static int recovery_take_activity(void *context, const gp_activity_record_t *activity)
{
    gp_recovery_t *recovery = context;
    recovery_note_time(recovery, activity->end_ns);
    gp_recovery_activities_over(&recovery->activities, activity->coro_id, activity->end_ns);
    return 0;
}

static int recovery_take_open_activity(void *context, const gp_activity_record_t *activity)
{
    gp_recovery_t *recovery = context;
    recovery_note_time(recovery, activity->end_ns);
    return gp_recovery_activities_keep(&recovery->activities, activity);
}

static int recovery_take_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    (void)values;
    recovery_note_time(context, record->time_ns);
    return 0;
}

static bool recovery_has_id(const void *owner, uint32_t number, const void *key)
{
    const gp_recovery_t *recovery = owner;
    return recovery->spans[number].id == *(const uint64_t *)key;
}

static gp_recovery_span_t *recovery_find(const gp_recovery_t *recovery, uint64_t id)
{
    uint32_t number = gp_index_find(&recovery->index, gp_hash_u64(id), recovery_has_id, recovery, &id);
    return number != GP_INDEX_NONE ? &recovery->spans[number] : NULL;
}

bool gp_recovery_has_open(const gp_recovery_t *recovery, uint64_t id)
{
    const gp_recovery_span_t *span = recovery_find(recovery, id);
    return span != NULL && span->record != NULL;
}

static void recovery_forget(gp_recovery_t *recovery, gp_recovery_span_t *span)
{
    recovery->open -= span->record != NULL;
    free(span->record);
    span->record = NULL;
}

static int recovery_take_span(void *context, const gp_span_record_t *record, const char *name, const char *fields)
{
    (void)name, (void)fields;
    gp_recovery_t *recovery = context;
    gp_recovery_span_t *span = recovery_find(recovery, record->id);
    recovery_note_time(recovery, record->end_ns);
    if (span != NULL)
        recovery_forget(recovery, span);
    return 0;
}

static gp_recovery_span_t *recovery_add(gp_recovery_t *recovery, uint64_t id)
{
    if (recovery->count == recovery->capacity) {
        size_t capacity = recovery->capacity != 0 ? 2 * recovery->capacity : 64;
        gp_recovery_span_t *grown = realloc(recovery->spans, capacity * sizeof(*grown));
        if (grown == NULL)
            return NULL;
        recovery->spans = grown;
        recovery->capacity = capacity;
    }
    if (gp_index_add(&recovery->index, gp_hash_u64(id), (uint32_t)recovery->count) != 0)
        return NULL;
    gp_recovery_span_t *span = &recovery->spans[recovery->count++];
    *span = (gp_recovery_span_t){.id = id};
    return span;
}

static int recovery_take_open_span(void *context, const gp_span_record_t *record, const char *name, const char *fields)
{
    (void)name, (void)fields; // they stand behind it
    gp_recovery_t *recovery = context;
    gp_recovery_span_t *span = recovery_find(recovery, record->id);
    recovery_note_time(recovery, record->end_ns);
    size_t bytes = sizeof(*record) + record->name_len + record->fields_len;
    if (span == NULL && (span = recovery_add(recovery, record->id)) == NULL)
        return -ENOMEM;
    void *copy = malloc(bytes);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, record, bytes);
    recovery_forget(recovery, span);
    span->record = copy;
    span->bytes = bytes;
    recovery->open++;
    return 0;
}

// Spans that are over stay in the table until they are most of it.
static int recovery_tidy(gp_recovery_t *recovery)
{
    size_t count = 0;
    if (recovery->count < TIDY_MIN || recovery->open > recovery->count / 2)
        return 0;
    gp_index_free(&recovery->index);
    for (size_t i = 0; i < recovery->count; i++)
        if (recovery->spans[i].record != NULL)
            recovery->spans[count++] = recovery->spans[i];
    recovery->count = count;
    for (size_t i = 0; i < count; i++)
        if (gp_index_add(&recovery->index, gp_hash_u64(recovery->spans[i].id), (uint32_t)i) != 0)
            return -ENOMEM;
    return 0;
}

int gp_recovery_look(gp_recovery_t *recovery, int fd, char error[GP_READER_ERROR_SIZE])
{
    static const gp_reader_handlers_t handlers = {
        .header = recovery_take_header,
        .samples = recovery_take_samples,
        .ledger = recovery_take_ledger,
        .activity = recovery_take_activity,
        .open_activity = recovery_take_open_activity,
        .counters = recovery_take_counters,
        .span = recovery_take_span,
        .open_span = recovery_take_open_span,
    };
    struct stat status;
    recovery->part.from = recovery->part.to;
    int result = gp_reader_read_part(fd, &recovery->part, &handlers, recovery, &recovery->summary, error);
    if (result == 0 &&
        ((result = recovery_tidy(recovery)) < 0 || (result = gp_recovery_activities_tidy(&recovery->activities)) < 0))
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    if (result == 0 && fstat(fd, &status) == 0)
        recovery->bytes = (uint64_t)status.st_size;
    return result;
}

static int recovery_copy_piece(int fd, int to, uint64_t left, void *room)
{
    ssize_t got = read(fd, room, left < COPY_BYTES ? (size_t)left : COPY_BYTES);
    if (got <= 0)
        return got < 0 ? -errno : -EIO; // the file has become smaller
    int error = gp_write_parts(to, &(struct iovec){room, (size_t)got}, 1);
    return error != 0 ? error : (int)got;
}

static int recovery_copy_to(const gp_recovery_t *recovery, int fd, int to)
{
    int copied = 0;
    void *room = malloc(COPY_BYTES);
    if (room == NULL)
        return -ENOMEM;
    if (lseek(fd, 0, SEEK_SET) < 0)
        copied = -errno;
    for (uint64_t left = recovery->part.to; left > 0 && copied >= 0; left -= (uint64_t)copied)
        if ((copied = recovery_copy_piece(fd, to, left, room)) < 0)
            break;
    free(room);
    return copied < 0 ? copied : 0;
}

// The last chunk may be whole but for the padding behind it.
static int recovery_pad(int to, uint64_t bytes)
{
    static char zeros[8];
    size_t missing = -bytes & 7;
    return missing > 0 ? gp_write_parts(to, &(struct iovec){zeros, missing}, 1) : 0;
}

static int recovery_copy(const gp_recovery_t *recovery, int fd, const char *path)
{
    int to = open(path, O_WRONLY | O_CLOEXEC);
    if (to < 0)
        return -errno;
    struct stat status;
    int error = fstat(fd, &status) == 0 && fchmod(to, status.st_mode & 0777) == 0 ? 0 : -errno;
    if (error == 0)
        error = recovery_copy_to(recovery, fd, to);
    if (error == 0)
        error = recovery_pad(to, recovery->part.to);
    if (close(to) != 0 && error == 0)
        error = -errno;
    return error;
}

static int recovery_add_end(const gp_recovery_t *recovery, gp_writer_t *writer)
{
    const gp_end_record_t end = {.time_ns = recovery->last_ns, .reason = GP_END_KILLED};
    int error = gp_recovery_activities_put(&recovery->activities, writer);
    for (size_t i = 0; i < recovery->count && error == 0; i++)
        if (recovery->spans[i].record != NULL)
            error = gp_writer_put(writer, GP_CHUNK_SPANS, recovery->spans[i].record, recovery->spans[i].bytes);
    if (error == 0)
        error = gp_writer_put(writer, GP_CHUNK_END, &end, sizeof(end));
    return error == 0 ? gp_writer_flush(writer) : error;
}

int gp_recovery_take_rings(gp_recovery_t *recovery, int rings_fd, int fd)
{
    gp_recovery_rings_t *rings;
    int error = gp_recovery_rings_read(&rings, rings_fd, fd, &recovery->header);
    if (error != 0)
        return error;
    gp_recovery_rings_free(recovery->rings);
    recovery->rings = rings;
    recovery->samples += rings->samples;
    recovery_note_time(recovery, rings->last_ns);
    for (uint64_t i = 0; i < rings->spans; i++) {
        gp_recovery_span_t *span = recovery_find(recovery, rings->span_ids[i]);
        if (span != NULL)
            recovery_forget(recovery, span);
    }
    for (size_t i = 0; i < rings->over_count; i++)
        gp_recovery_activities_over(&recovery->activities, rings->overs[i].coro_id, rings->overs[i].end_ns);
    return 0;
}

int gp_recovery_write(const gp_recovery_t *recovery, int fd, const char *path)
{
    gp_writer_t plain = GP_WRITER_INIT, *writer = recovery->rings != NULL ? &recovery->rings->writer : &plain;
    int error = recovery_copy(recovery, fd, path);
    if (error != 0 || recovery->summary.ended)
        return error;
    error = gp_writer_resume(writer, path, recovery->part.sequence);
    if (error == 0)
        error = recovery_add_end(recovery, writer);
    gp_writer_abandon(writer);
    return error;
}

void gp_recovery_free(gp_recovery_t *recovery)
{
    for (size_t i = 0; i < recovery->count; i++)
        free(recovery->spans[i].record);
    free(recovery->spans);
    gp_index_free(&recovery->index);
    gp_recovery_activities_free(&recovery->activities);
    gp_recovery_rings_free(recovery->rings);
    *recovery = (gp_recovery_t){0};
}
