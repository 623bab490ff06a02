// SPDX-License-Identifier: MIT
#include "report/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

enum { PIECE_BYTES = 256 * 1024, BUFFER_MIN = 512 };

typedef struct extent { // of the file
    uint64_t at, len;
} extent_t;

typedef struct gp_spill_part {
    uint8_t *buffer;
    size_t len, size;
    extent_t *extents;
    size_t extent_count, extent_capacity;
    uint64_t written;
} part_t;

int gp_spill_init(gp_spill_t *spill, size_t count)
{
    *spill = (gp_spill_t){.parts = calloc(count, sizeof(part_t)), .fd = -1};
    if (spill->parts == NULL)
        return -ENOMEM;
    spill->count = count;
    return 0;
}

int gp_temporary_file(void)
{
    const char *directory = secure_getenv("TMPDIR");
    char path[PATH_MAX];
    if (directory == NULL || directory[0] == '\0')
        directory = "/tmp";
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    int len = snprintf(path, sizeof(path), "%s/greenprof-XXXXXX", directory);
    if (fd >= 0)
        return fd;
    if (len < 0 || len >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC); // not every file system has O_TMPFILE
    if (fd < 0)
        return -errno;
    unlink(path);
    return fd;
}

int gp_temporary_write(int fd, const void *bytes, size_t len)
{
    for (const uint8_t *at = bytes; len > 0;) {
        ssize_t put = write(fd, at, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        at += put;
        len -= (size_t)put;
    }
    return 0;
}

static int spill_flush_part(gp_spill_t *spill, part_t *part)
{
    if (part->len == 0)
        return 0;
    if (gp_grow(&part->extents, &part->extent_capacity, part->extent_count, sizeof(extent_t)) < 0)
        return -ENOMEM;
    int result = gp_temporary_write(spill->fd, part->buffer, part->len);
    if (result < 0)
        return result;
    part->extents[part->extent_count++] = (extent_t){spill->end, part->len};
    spill->end += part->len;
    part->written += part->len;
    spill->held -= part->len;
    part->len = 0;
    return 0;
}

static int spill_flush(gp_spill_t *spill)
{
    if (spill->fd < 0)
        spill->fd = gp_temporary_file();
    int result = spill->fd < 0 ? spill->fd : 0;
    for (size_t i = 0; i < spill->count && result == 0; i++)
        result = spill_flush_part(spill, &spill->parts[i]);
    return result;
}

static int spill_make_room(part_t *part, size_t len)
{
    size_t size = part->size > 0 ? part->size : BUFFER_MIN;
    while (size < part->len + len)
        size *= 2;
    if (size == part->size)
        return 0;
    uint8_t *buffer = realloc(part->buffer, size);
    if (buffer == NULL)
        return -ENOMEM;
    part->buffer = buffer;
    part->size = size;
    return 0;
}

int gp_spill_add(gp_spill_t *spill, size_t part, const void *bytes, size_t len)
{
    part_t *to = &spill->parts[part];
    int result = 0;
    if (spill->held + len > GP_SPILL_BYTES)
        result = spill_flush(spill);
    if (result == 0)
        result = spill_make_room(to, len);
    if (result < 0)
        return result;
    memcpy(to->buffer + to->len, bytes, len);
    to->len += len;
    spill->held += len;
    return 0;
}

uint64_t gp_spill_bytes(const gp_spill_t *spill, size_t part)
{
    return spill->parts[part].written + spill->parts[part].len;
}

static int spill_read_at(int fd, uint8_t *bytes, size_t len, uint64_t at)
{
    while (len > 0) {
        ssize_t got = pread(fd, bytes, len, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EIO;
        bytes += got;
        at += (uint64_t)got;
        len -= (size_t)got;
    }
    return 0;
}

static int spill_read_extent(const gp_spill_t *spill, extent_t extent, size_t unit, uint8_t *piece,
                             int (*take)(void *, const void *, size_t), void *context)
{
    size_t most = PIECE_BYTES / unit * unit;
    int result = 0;
    while (extent.len > 0 && result == 0) {
        size_t len = extent.len < most ? (size_t)extent.len : most;
        result = spill_read_at(spill->fd, piece, len, extent.at);
        if (result == 0)
            result = take(context, piece, len);
        extent.at += len;
        extent.len -= len;
    }
    return result;
}

int gp_spill_read(const gp_spill_t *spill, size_t part, size_t unit,
                  int (*take)(void *context, const void *bytes, size_t len), void *context)
{
    const part_t *from = &spill->parts[part];
    uint8_t *piece = from->extent_count > 0 ? malloc(PIECE_BYTES) : NULL;
    int result = from->extent_count > 0 && piece == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < from->extent_count && result == 0; i++)
        result = spill_read_extent(spill, from->extents[i], unit, piece, take, context);
    if (result == 0 && from->len > 0)
        result = take(context, from->buffer, from->len);
    free(piece);
    return result;
}

void gp_spill_free(gp_spill_t *spill)
{
    for (size_t i = 0; i < spill->count; i++) {
        free(spill->parts[i].buffer);
        free(spill->parts[i].extents);
    }
    if (spill->count > 0 && spill->fd >= 0)
        close(spill->fd);
    free(spill->parts);
    *spill = (gp_spill_t){0};
}
