// SPDX-License-Identifier: MIT
#include "watch/slow_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "capture/read/part_name.h"

#define BEFORE_BYTES (UINT64_C(256) << 20) // of the parts before: more is not read for it

typedef struct part {
    char path[PATH_MAX];
    int fd;
    uint64_t bytes;
    gp_file_header_t header;
} part_t;

typedef struct family { // the captures beside one that have its name, but for a number
    char directory[PATH_MAX];
    const char *name;
    part_t *parts;
    size_t count, capacity;
} family_t;

static bool slow_parts_is_own(const gp_file_header_t *header, const gp_batch_t *batch)
{
    return header->pid == batch->process->pid && header->start_realtime_ns == batch->process->start_ns;
}

static bool slow_parts_was_written_since(const struct stat *status, uint64_t from_ns)
{
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec >= from_ns;
}

// Returns whether it is a capture of the process, and was written to since then.
static bool slow_parts_open_part(const family_t *family, const char *name, const gp_batch_t *batch, uint64_t from_ns,
                                 part_t *part)
{
    struct stat status;
    if (snprintf(part->path, sizeof(part->path), "%s/%s", family->directory, name) >= (int)sizeof(part->path))
        return false;
    part->fd = open(part->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (part->fd < 0)
        return false;
    bool is_capture = fstat(part->fd, &status) == 0 && S_ISREG(status.st_mode) &&
                      pread(part->fd, &part->header, sizeof(part->header), 0) == (ssize_t)sizeof(part->header) &&
                      memcmp(part->header.magic, GP_FILE_MAGIC, sizeof(part->header.magic)) == 0 &&
                      part->header.pid == batch->process->pid &&
                      (slow_parts_was_written_since(&status, from_ns) || slow_parts_is_own(&part->header, batch));
    part->bytes = is_capture ? (uint64_t)status.st_size : 0;
    if (!is_capture)
        close(part->fd);
    return is_capture;
}

static int slow_parts_list(family_t *family, const gp_batch_t *batch, uint64_t from_ns)
{
    int result = 0;
    DIR *directory = opendir(family->directory);
    struct dirent *entry;
    while (directory != NULL && result == 0 && (entry = readdir(directory)) != NULL) {
        if (!gp_part_is_beside(entry->d_name, family->name))
            continue;
        result = gp_grow(&family->parts, &family->capacity, family->count, sizeof(*family->parts));
        if (result == 0)
            family->count += slow_parts_open_part(family, entry->d_name, batch, from_ns, &family->parts[family->count]);
    }
    if (directory != NULL)
        closedir(directory);
    return result;
}

static const part_t *slow_parts_find_own(const family_t *family, const gp_batch_t *batch)
{
    for (size_t i = 0; i < family->count; i++)
        if (slow_parts_is_own(&family->parts[i].header, batch))
            return &family->parts[i];
    return NULL;
}

// The part that is `number`; NULL = it has gone.
static const part_t *slow_parts_find_part(const family_t *family, const part_t *own, uint32_t number)
{
    for (size_t i = 0; i < family->count; i++) {
        const gp_file_header_t *header = &family->parts[i].header;
        if (header->pid == own->header.pid && header->part == number &&
            header->start_monotonic_ns <= own->header.start_monotonic_ns + 1000000 &&
            memcmp(header->session, own->header.session, sizeof(header->session)) == 0)
            return &family->parts[i];
    }
    return NULL;
}

static int slow_parts_take(gp_slow_parts_t *parts, const part_t *part)
{
    int fd = fcntl(part->fd, F_DUPFD_CLOEXEC, 0);
    char *path = strdup(part->path);
    if (fd < 0 || path == NULL) {
        if (fd >= 0)
            close(fd);
        free(path);
        return -ENOMEM;
    }
    memmove(parts->fds + 1, parts->fds, parts->count * sizeof(*parts->fds));
    memmove(parts->paths + 1, parts->paths, parts->count * sizeof(*parts->paths));
    parts->fds[0] = fd;
    parts->paths[0] = path;
    parts->count++; // -Wanalyzer-malloc-leak: they are the parts'
    return 0;
}

static int slow_parts_take_those(gp_slow_parts_t *parts, const family_t *family, const part_t *own)
{
    uint64_t bytes = 0;
    parts->fds = calloc(family->count, sizeof(*parts->fds));
    parts->paths = calloc(family->count, sizeof(*parts->paths));
    int result = parts->fds != NULL && parts->paths != NULL ? slow_parts_take(parts, own) : -ENOMEM;
    for (uint32_t number = own->header.part; number > 0 && result == 0; number--) {
        const part_t *part = slow_parts_find_part(family, own, number - 1);
        if (part == NULL || (bytes += part->bytes) > BEFORE_BYTES)
            break;
        result = slow_parts_take(parts, part);
    }
    return result;
}

int gp_slow_parts_open(gp_slow_parts_t *parts, const gp_batch_t *batch, uint64_t from_ns)
{
    family_t family = {0};
    const char *slash = strrchr(batch->capture, '/');
    int len = slash == NULL ? 1 : slash == batch->capture ? 1 : (int)(slash - batch->capture);
    if (snprintf(family.directory, sizeof(family.directory), "%.*s", len, slash != NULL ? batch->capture : ".") >=
        (int)sizeof(family.directory))
        return 0;
    family.name = slash != NULL ? slash + 1 : batch->capture;
    int result = slow_parts_list(&family, batch, from_ns);
    const part_t *own = result == 0 ? slow_parts_find_own(&family, batch) : NULL;
    if (own != NULL)
        result = slow_parts_take_those(parts, &family, own);
    for (size_t i = 0; i < family.count; i++)
        close(family.parts[i].fd);
    free(family.parts);
    return result;
}

int gp_slow_parts_add(const gp_slow_parts_t *parts, size_t count, gp_captures_t *captures)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = gp_captures_add(captures, parts->fds[i], parts->paths[i]);
    return result;
}

void gp_slow_parts_close(gp_slow_parts_t *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        close(parts->fds[i]);
        free(parts->paths[i]);
    }
    free(parts->fds);
    free(parts->paths);
    *parts = (gp_slow_parts_t){0};
}
