// SPDX-License-Identifier: MIT
#include "capture/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/descriptors.h"
#include "capture/write/pack.h"
#include "capture/write/write_parts.h"
#include "capture/write/writer_file.h"

enum {
    LAST_WORDS_BYTES = 1024,
    PUT_BYTES = 4 << 20,
    KEPT_ROOM = 2 << 20, // of a buffer; what it needed once beyond that, while the disk was slow, is given back
};

// A writer may have collected records before it has a file.
static int writer_open_file(gp_writer_t *writer)
{
    const gp_file_header_t *header = &writer->header;
    int error = gp_writer_file_open(writer);
    if (error != 0)
        return error;
    struct {
        gp_file_header_t header;
        gp_chunk_header_t chunk;
        gp_file_header_t again;
    } start = {
        .header = *header,
        .chunk = {.magic = GP_CHUNK_MAGIC, .type = GP_CHUNK_HEADER, .payload_len = sizeof(*header)},
        .again = *header,
    };
    start.chunk.checksum = XXH64(header, sizeof(*header), GP_CHUNK_SEED(GP_CHUNK_HEADER, 0, 0));
    error = gp_write_parts(writer->fd, &(struct iovec){&start, sizeof(start)}, 1);
    if (error != 0) {
        gp_writer_file_remove(writer, sizeof(start));
        close(writer->fd);
        writer->fd = -1;
        return error;
    }
    writer->bytes = sizeof(start);
    writer->sequence = 1;
    return 0;
}

static bool writer_make_room(gp_buffer_t *buffer, size_t bytes)
{
    if (bytes <= buffer->room)
        return true;
    unsigned char *grown = realloc(buffer->data, bytes);
    if (grown == NULL)
        return false;
    buffer->data = grown;
    buffer->room = bytes;
    return true;
}

// Room for the chunks that say in the end how much was lost, however short memory is by then.
static int writer_reserve_last_words(gp_writer_t *writer)
{
    static const enum gp_chunk_type last[] = {GP_CHUNK_COUNTERS, GP_CHUNK_END};
    for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
        if (!writer_make_room(&writer->buffers[last[i]], LAST_WORDS_BYTES) ||
            !writer_make_room(&writer->outgoing[last[i]], LAST_WORDS_BYTES))
            return -ENOMEM;
    gp_compressor_init(&writer->compressor);
    return 0;
}

static int writer_set_path(gp_writer_t *writer, const char *path)
{
    size_t length = strlen(path);
    writer->fd = -1;
    if (length >= sizeof(writer->path))
        return -ENAMETOOLONG;
    gp_writer_file_set_path(writer, path);
    return writer_reserve_last_words(writer);
}

static void writer_set_header(gp_writer_t *writer, const gp_file_header_t *header)
{
    writer->header = *header;
    writer->header.features |= GP_FEATURE_PACKED | GP_FEATURE_ZSTD;
    writer->header.checksum = XXH64(&writer->header, offsetof(gp_file_header_t, checksum), 0);
}

static int writer_prepare_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header)
{
    writer_set_header(writer, header);
    return writer_set_path(writer, path);
}

int gp_writer_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header)
{
    int error = writer_prepare_open(writer, path, header);
    if (error == 0)
        error = writer_open_file(writer);
    if (error != 0)
        gp_writer_abandon(writer);
    atomic_store_explicit(&writer->error, error, memory_order_relaxed);
    return error;
}

void gp_writer_open_later(gp_writer_t *writer, const char *path, const gp_file_header_t *header)
{
    int error = writer_prepare_open(writer, path, header);
    writer->to_open = error == 0;
    atomic_store_explicit(&writer->error, error, memory_order_relaxed);
}

static int writer_open_again(gp_writer_t *writer)
{
    struct stat status;
    writer->fd = gp_descriptor_open(AT_FDCWD, writer->path, O_WRONLY | O_APPEND, 0);
    if (writer->fd < 0 || fstat(writer->fd, &status) != 0)
        return -errno;
    writer->device = status.st_dev;
    writer->inode = status.st_ino;
    writer->bytes = (uint64_t)status.st_size;
    return 0;
}

int gp_writer_resume(gp_writer_t *writer, const char *path, uint32_t sequence)
{
    int error = writer_set_path(writer, path);
    writer->sequence = sequence;
    if (error == 0)
        error = writer_open_again(writer);
    if (error != 0)
        gp_writer_abandon(writer);
    atomic_store_explicit(&writer->error, error, memory_order_relaxed);
    return error;
}

void gp_writer_turn(gp_writer_t *writer, const char *aside, const gp_file_header_t *header)
{
    size_t length = strnlen(aside, sizeof(writer->aside) - 1);
    memcpy(writer->aside, aside, length);
    writer->aside[length] = '\0';
    writer->next_header = *header;
    writer->has_next = true;
}

static int writer_turn(gp_writer_t *writer)
{
    int error = gp_writer_file_check(writer);
    if (error == 0)
        error = gp_writer_file_put_aside(writer);
    if (error != 0)
        return error;
    writer->last_chunk = 0;
    writer_set_header(writer, &writer->next_header);
    return writer_open_file(writer);
}

#define PLAIN(name)                             0
#define PACKED(name)                            sizeof(gp_##name##_record_t)
#define ROW(number, id, name, how, writer_turn) [number] = {how(name), writer_turn},
static const struct {
    uint16_t packed_bytes; // of a record, where chunks are packed; else 0
    uint16_t turn;
} record_types[GP_CHUNK_TYPES] = {GP_RECORDS(ROW)};
enum { TURNS = 4 };

static int writer_write_chunk(gp_writer_t *writer, unsigned type, uint16_t flags, const void *payload,
                              size_t payload_len)
{
    static const char padding[8];
    size_t whole = (sizeof(gp_chunk_header_t) + payload_len + 7) & ~(size_t)7;
    gp_chunk_header_t header = {
        .magic = GP_CHUNK_MAGIC,
        .type = (uint16_t)type,
        .flags = flags,
        .payload_len = (uint32_t)payload_len,
        .sequence = writer->sequence,
    };
    header.checksum = XXH64(payload, payload_len, GP_CHUNK_SEED(type, flags, header.sequence));
    // There is always room for the record that says why nothing comes behind it.
    size_t behind = type != GP_CHUNK_END ? sizeof(header) + sizeof(gp_end_record_t) : 0;
    if (writer->max_bytes != 0 && writer->bytes + whole + behind > writer->max_bytes)
        return -EFBIG;
    struct iovec parts[] = {
        {&header, sizeof(header)},
        {(void *)(uintptr_t)payload, payload_len},
        {(void *)(uintptr_t)padding, whole - sizeof(header) - payload_len},
    };
    int error = gp_write_parts(writer->fd, parts, sizeof(parts) / sizeof(parts[0]));
    if (error != 0) {
        // Half a chunk is of no use; where it cannot be cut off (a pipe) the reader copes with it.
        int cut = ftruncate(writer->fd, (off_t)writer->bytes);
        (void)cut;
        return error;
    }
    writer->last_chunk = writer->bytes;
    writer->bytes += whole;
    writer->sequence++;
    return 0;
}

// Bytes that the packed records of a buffer may take; 0 = they are not packed.
static size_t writer_packed_bound(const gp_buffer_t *buffer, unsigned type)
{
    uint16_t record_bytes = record_types[type].packed_bytes;
    return record_bytes != 0 ? gp_pack_bound(buffer->length / record_bytes, record_bytes) : 0;
}

static int writer_write_buffer(gp_writer_t *writer, unsigned type)
{
    gp_buffer_t *buffer = &writer->outgoing[type];
    const unsigned char *payload = buffer->data;
    size_t len = buffer->length, bound = writer_packed_bound(buffer, type);
    uint16_t flags = 0, record_bytes = record_types[type].packed_bytes;
    if (len == 0)
        return 0;
    if (bound > 0 && bound <= writer->packed.room) {
        len = gp_pack(payload, (uint32_t)(len / record_bytes), record_bytes, writer->packed.data);
        payload = writer->packed.data;
        flags = GP_CHUNK_PACKED;
    }
    size_t compressed = gp_compress(&writer->compressor, payload, len, writer->chunk.data, writer->chunk.room);
    if (compressed != 0) {
        flags |= GP_CHUNK_ZSTD;
        len = compressed;
        payload = writer->chunk.data;
    }
    buffer->length = 0;
    return writer_write_chunk(writer, type, flags, payload, len);
}

// The last thing in a file that cannot be written any further. A disk is often full to the last block only.
static void writer_write_failure(gp_writer_t *writer, int error)
{
    bool is_full = error == -EFBIG && writer->max_bytes != 0;
    gp_end_record_t record = {.reason = is_full ? GP_END_FULL : GP_END_FAILED, .error = (uint32_t)-error};
    if (writer_write_chunk(writer, GP_CHUNK_END, 0, &record, sizeof(record)) == 0 || writer->last_chunk == 0 ||
        ftruncate(writer->fd, (off_t)writer->last_chunk) != 0)
        return;
    // That the capture is cut off is worth more than the chunk before.
    writer->bytes = writer->last_chunk;
    writer->sequence--;
    writer_write_chunk(writer, GP_CHUNK_END, 0, &record, sizeof(record));
}

static int writer_write_outgoing(gp_writer_t *writer)
{
    int error = gp_writer_file_check(writer);
    if (error != 0)
        return error;
    for (int turn = 0; turn < TURNS; turn++)
        for (unsigned type = 0; type < GP_CHUNK_TYPES && error == 0; type++)
            if (record_types[type].turn == turn)
                error = writer_write_buffer(writer, type);
    if (error != 0)
        writer_write_failure(writer, error);
    return error;
}

static void *writer_refuse(gp_writer_t *writer, enum gp_chunk_type type)
{
    writer->refused[type]++;
    return NULL;
}

// Small chunks that say how much is missing always find room.
static bool writer_is_too_much(const gp_writer_t *writer, enum gp_chunk_type type, size_t bytes)
{
    return writer->max_waiting != 0 && writer->waiting + bytes > writer->max_waiting && type != GP_CHUNK_COUNTERS &&
           type != GP_CHUNK_END && type != GP_CHUNK_META;
}

void *gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes)
{
    gp_buffer_t *buffer = &writer->buffers[type];
    size_t limit = type == GP_CHUNK_SAMPLES ? (size_t)GP_WRITER_SAMPLES_MAX : (size_t)GP_CHUNK_MAX / 2;
    bytes = (bytes + 7) & ~(size_t)7;
    if (atomic_load_explicit(&writer->error, memory_order_relaxed) != 0 || buffer->length + bytes > limit ||
        writer_is_too_much(writer, type, bytes))
        return writer_refuse(writer, type);
    if (buffer->length + bytes > buffer->room && !writer_make_room(buffer, (buffer->length + bytes) * 2))
        return writer_refuse(writer, type);
    void *record = buffer->data + buffer->length;
    buffer->length += bytes;
    writer->waiting += bytes;
    return memset(record, 0, bytes);
}

size_t gp_writer_pending(const gp_writer_t *writer)
{
    return writer->waiting;
}

static void writer_give_back(gp_buffer_t *buffer, size_t needed)
{
    if (buffer->room <= KEPT_ROOM || needed > KEPT_ROOM)
        return;
    free(buffer->data);
    *buffer = (gp_buffer_t){0};
}

// Buffers for gp_writer_write(), which packs and compresses: it never allocates, as its memory is a forking thread's to
// free. Where memory is short, chunks are written as they are.
static void writer_prepare_scratch(gp_writer_t *writer)
{
    size_t largest = 0, packed = 0;
    for (unsigned type = 0; type < GP_CHUNK_TYPES; type++) {
        size_t length = writer->buffers[type].length, bound = writer_packed_bound(&writer->buffers[type], type);
        largest = length > largest ? length : largest;
        packed = bound > packed ? bound : packed;
    }
    largest = packed > largest ? packed : largest;
    writer_give_back(&writer->packed, packed);
    writer_give_back(&writer->chunk, largest);
    gp_compressor_init(&writer->compressor);
    writer_make_room(&writer->packed, packed);
    writer_make_room(&writer->chunk, largest);
}

bool gp_writer_hand_over(gp_writer_t *writer)
{
    if (gp_writer_is_busy(writer))
        return false;
    writer_prepare_scratch(writer);
    writer->to_turn |= writer->has_next;
    writer->has_next = false;
    for (unsigned type = 0; type < GP_CHUNK_TYPES; type++) {
        gp_buffer_t empty = writer->outgoing[type];
        empty.length = 0;
        writer_give_back(&empty, 0);
        writer->outgoing[type] = writer->buffers[type];
        writer->buffers[type] = empty;
    }
    writer->waiting = 0;
    // Release: partner of the acquire in gp_writer_write().
    atomic_store_explicit(&writer->busy, 1, memory_order_release);
    return true;
}

int gp_writer_write(gp_writer_t *writer)
{
    int error = atomic_load_explicit(&writer->error, memory_order_relaxed);
    if (atomic_load_explicit(&writer->busy, memory_order_acquire) == 0)
        return error;
    if (error == 0 && writer->to_open)
        error = writer_open_file(writer);
    writer->to_open = false;
    if (error == 0 && writer->to_turn)
        error = writer_turn(writer);
    writer->to_turn = false;
    if (error == 0 && writer->fd >= 0)
        error = writer_write_outgoing(writer);
    if (error != 0)
        atomic_store_explicit(&writer->error, error, memory_order_relaxed);
    // Release: partner of the acquire in gp_writer_is_busy().
    atomic_store_explicit(&writer->busy, 0, memory_order_release);
    return error;
}

int gp_writer_flush(gp_writer_t *writer)
{
    gp_writer_write(writer);
    if (gp_writer_pending(writer) > 0)
        gp_writer_hand_over(writer);
    return gp_writer_write(writer);
}

int gp_writer_put(gp_writer_t *writer, enum gp_chunk_type type, const void *record, size_t bytes)
{
    if (gp_writer_pending(writer) > PUT_BYTES)
        gp_writer_flush(writer);
    void *room = gp_writer_add(writer, type, bytes);
    int error = atomic_load_explicit(&writer->error, memory_order_relaxed);
    if (room == NULL)
        return error != 0 ? error : -ENOMEM;
    memcpy(room, record, bytes);
    return 0;
}

static void writer_free_buffers(gp_buffer_t *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(buffers[i].data);
        buffers[i] = (gp_buffer_t){0};
    }
}

void gp_writer_abandon(gp_writer_t *writer)
{
    gp_writer_file_close(writer);
    writer->waiting = 0;
    writer_free_buffers(writer->buffers, GP_CHUNK_TYPES);
    writer_free_buffers(writer->outgoing, GP_CHUNK_TYPES);
    writer_free_buffers(&writer->packed, 1);
    writer_free_buffers(&writer->chunk, 1);
    gp_compressor_free(&writer->compressor);
    atomic_store_explicit(&writer->busy, 0, memory_order_relaxed);
}

void gp_writer_close(gp_writer_t *writer)
{
    gp_writer_flush(writer);
    gp_writer_abandon(writer);
    gp_kept_fd_close(&writer->directory);
}
