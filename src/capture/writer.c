#include "capture/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { DESCRIPTOR_FLOOR = 512, PREDECESSORS_MAX = 1000 };

static int write_all(int fd, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        at += written;
        length -= (size_t)written;
    }
    return 0;
}

// The capture of this very process before it replaced its image by exec?
static bool is_predecessor(const char *path, const gp_file_header_t *header)
{
    gp_file_header_t old;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, &old, sizeof(old));
    close(fd);
    static const uint8_t none[16];
    return got == (ssize_t)sizeof(old) && memcmp(old.magic, GP_FILE_MAGIC, 8) == 0 && old.pid == header->pid &&
           memcmp(old.session, header->session, 16) == 0 && memcmp(old.session, none, 16) != 0;
}

static void move_predecessor(const char *path)
{
    char aside[4128];
    for (int i = 1; i < PREDECESSORS_MAX; i++) {
        snprintf(aside, sizeof(aside), "%s.%d", path, i);
        if (access(aside, F_OK) != 0) {
            rename(path, aside);
            return;
        }
    }
}

static int create(gp_writer_t *writer)
{
    // O_APPEND: should a host close the descriptor, it is reopened by path and goes on where it was.
    int fd = open(writer->path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_FLOOR);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    struct stat status;
    fstat(fd, &status);
    writer->device = status.st_dev;
    writer->inode = status.st_ino;
    writer->fd = fd;
    return 0;
}

int gp_writer_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header)
{
    size_t length = strlen(path);
    memset(writer, 0, sizeof(*writer));
    writer->fd = -1;
    if (length >= sizeof(writer->path))
        return writer->error = -ENAMETOOLONG;
    memcpy(writer->path, path, length + 1);
    if (is_predecessor(path, header))
        move_predecessor(path);
    writer->error = create(writer);
    if (writer->error != 0)
        return writer->error;
    writer->error = write_all(writer->fd, header, sizeof(*header));
    if (writer->error != 0) {
        close(writer->fd);
        writer->fd = -1;
        unlink(path);
        return writer->error;
    }
    writer->bytes = sizeof(*header);
    return 0;
}

// Write what there is of one type as a chunk. The buffer leaves room for the header at its start.
static int flush_one(gp_writer_t *writer, unsigned type)
{
    gp_buffer_t *buffer = &writer->buffers[type];
    if (buffer->length == 0)
        return 0;
    gp_chunk_header_t header = {
        .magic = GP_CHUNK_MAGIC,
        .type = (uint16_t)type,
        .payload_len = (uint32_t)(buffer->length - sizeof(header)),
        .sequence = writer->sequence,
    };
    header.checksum = XXH64(buffer->data + sizeof(header), header.payload_len,
                            GP_CHUNK_SEED(header.type, header.flags, header.sequence));
    memcpy(buffer->data, &header, sizeof(header));
    int error = write_all(writer->fd, buffer->data, buffer->length);
    if (error != 0) {
        // Half a chunk is of no use to anyone.
        if (ftruncate(writer->fd, (off_t)writer->bytes) != 0)
            writer->sequence = 0; // the reader copes with half a chunk, too
        return error;
    }
    writer->bytes += buffer->length;
    writer->sequence++;
    buffer->length = 0;
    return 0;
}

// Is the descriptor still our file? If the host closed it, open the file again.
static int check_descriptor(gp_writer_t *writer)
{
    struct stat status;
    if (fstat(writer->fd, &status) == 0 && status.st_dev == writer->device && status.st_ino == writer->inode)
        return 0;
    int fd = open(writer->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) != 0 || status.st_dev != writer->device || status.st_ino != writer->inode) {
        close(fd);
        return -ESTALE; // removed or replaced by somebody
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_FLOOR);
    if (high >= 0)
        close(fd);
    writer->fd = high >= 0 ? high : fd;
    return 0;
}

static int flush_all(gp_writer_t *writer)
{
    int error = check_descriptor(writer);
    if (error == 0) // a definition, with the number that was left
        error = flush_one(writer, GP_CHUNK_FUNCTIONS);
    for (unsigned type = 0; type < GP_WRITER_TYPES && error == 0; type++)
        error = flush_one(writer, type);
    return error;
}

void *gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes)
{
    gp_buffer_t *buffer = &writer->buffers[type];
    bytes = (bytes + 7) & ~(size_t)7;
    if (writer->error != 0)
        return NULL;
    if (buffer->length + bytes > GP_CHUNK_MAX && gp_writer_flush(writer) != 0)
        return NULL;
    size_t start = buffer->length > 0 ? buffer->length : sizeof(gp_chunk_header_t);
    if (start + bytes > buffer->room) {
        size_t room = (start + bytes) * 2;
        unsigned char *grown = realloc(buffer->data, room);
        if (grown == NULL)
            return NULL;
        buffer->data = grown;
        buffer->room = room;
    }
    buffer->length = start + bytes;
    return memset(buffer->data + start, 0, bytes);
}

size_t gp_writer_pending(const gp_writer_t *writer)
{
    size_t sum = 0;
    for (int type = 0; type < GP_WRITER_TYPES; type++)
        sum += writer->buffers[type].length;
    return sum;
}

int gp_writer_flush(gp_writer_t *writer)
{
    if (writer->error == 0 && writer->fd >= 0)
        writer->error = flush_all(writer);
    return writer->error;
}

void gp_writer_abandon(gp_writer_t *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    writer->fd = -1;
    for (int type = 0; type < GP_WRITER_TYPES; type++) {
        free(writer->buffers[type].data);
        writer->buffers[type] = (gp_buffer_t){0};
    }
}

void gp_writer_close(gp_writer_t *writer)
{
    gp_writer_flush(writer);
    gp_writer_abandon(writer);
}
