// SPDX-License-Identifier: MIT
#include "consumer/spool.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

#include "base/index.h"
#include "consumer/directory.h"

static const char magic[16] = "greenprof-spool";

typedef struct header {
    char magic[16];
    uint64_t version, sent_at;
    uint64_t url_hash;
    gp_identity_t identity;
} header_t;

enum { VERSION = 1, FIRST = 256, NAME_HASH = 16 };
_Static_assert(sizeof(header_t) <= FIRST, "the header is before the first span");

void gp_spool_begin(gp_spool_t *spool, const char *directory, const char *url, uint64_t limit_bytes,
                    const gp_identity_t *identity)
{
    *spool = (gp_spool_t){
        .path = directory,
        .url_hash = gp_hash_bytes(url, strcspn(url, "?")),
        .limit_bytes = limit_bytes,
        .identity = *identity,
        .directory = GP_HELD_NONE,
        .file = GP_HELD_NONE,
    };
}

static void spool_close_all(gp_spool_t *spool)
{
    gp_kept_fd_close(&spool->file);
    gp_kept_fd_close(&spool->directory);
    spool->sent_at = spool->end = spool->spans = 0;
}

static int spool_open_directory(gp_spool_t *spool)
{
    int fd = gp_directory_open(AT_FDCWD, spool->path);
    if (fd >= 0 && !gp_directory_is_private(fd)) {
        close(fd);
        return -EACCES;
    }
    gp_kept_fd_close(&spool->directory);
    if (fd >= 0)
        spool->directory = gp_kept_fd_keep(fd);
    return fd < 0 ? fd : 0;
}

// A locked descriptor of the file; negative: not to be had.
static int spool_open_file(gp_spool_t *spool, int flags)
{
    int fd = gp_descriptor_open(spool->directory.fd, spool->name, O_RDWR | O_NOFOLLOW | flags, 0600);
    if (fd < 0)
        return -errno;
    if (gp_directory_is_own_file(fd) && flock(fd, LOCK_EX | LOCK_NB) == 0 && gp_directory_is_own_file(fd))
        return fd;
    close(fd);
    return -EACCES;
}

// Is the file there? A file that the program closed is opened again. Another process may have locked and adopted it
// since: then a new file is made.
static bool spool_has_file(gp_spool_t *spool)
{
    struct stat status;
    const gp_kept_fd_t before = spool->file;
    if (before.fd < 0 || gp_kept_fd_is_there(&before))
        return before.fd >= 0;
    spool->file.fd = -1;
    int fd =
        gp_kept_fd_is_there(&spool->directory) || spool_open_directory(spool) == 0 ? spool_open_file(spool, 0) : -1;
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == before.device && status.st_ino == before.inode &&
        (uint64_t)status.st_size >= spool->end) {
        spool->file = gp_kept_fd_keep(fd);
        return true;
    }
    if (fd >= 0)
        close(fd);
    spool_close_all(spool);
    return false;
}

static int spool_write_all(int fd, const void *bytes, size_t len, uint64_t at)
{
    ssize_t written = pwrite(fd, bytes, len, (off_t)at);
    return written == (ssize_t)len ? 0 : written < 0 ? -errno : -ENOSPC;
}

static int spool_write_header(const gp_spool_t *spool)
{
    header_t header = {
        .version = VERSION, .sent_at = spool->sent_at, .url_hash = spool->url_hash, .identity = spool->identity};
    memcpy(header.magic, magic, sizeof(magic));
    return spool_write_all(spool->file.fd, &header, sizeof(header), 0);
}

static void spool_name_file(gp_spool_t *spool)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(spool->name, sizeof(spool->name), "%016llx-%d-%llx.spool", (unsigned long long)spool->url_hash,
             spool->identity.pid, (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec);
}

static int spool_make(gp_spool_t *spool)
{
    int error = spool->path != NULL ? spool_open_directory(spool) : -ENOSPC;
    if (error != 0)
        return error;
    spool_name_file(spool);
    int fd = spool_open_file(spool, O_CREAT | O_EXCL);
    if (fd >= 0)
        spool->file = gp_kept_fd_keep(fd);
    spool->sent_at = spool->end = FIRST;
    error = fd >= 0 ? spool_write_header(spool) : fd;
    if (error == 0)
        return 0;
    if (fd >= 0)
        unlinkat(spool->directory.fd, spool->name, 0);
    spool_close_all(spool);
    return error;
}

int gp_spool_put(gp_spool_t *spool, gp_packed_span_t *packed)
{
    int error = spool_has_file(spool) ? 0 : spool_make(spool);
    if (error != 0)
        return error;
    if (spool->end + packed->bytes > spool->limit_bytes)
        return -ENOSPC;
    gp_packed_sign(packed);
    error = spool_write_all(spool->file.fd, packed, packed->bytes, spool->end);
    if (error != 0) {
        if (gp_kept_fd_is_there(&spool->file))
            (void)!ftruncate(spool->file.fd, (off_t)spool->end);
        return error;
    }
    spool->end += packed->bytes;
    spool->spans++;
    return 0;
}

// Bytes of the whole spans in a buffer.
static size_t spool_whole(const uint8_t *bytes, size_t len)
{
    size_t at = 0;
    while (len - at >= sizeof(gp_packed_span_t)) {
        const gp_packed_span_t *packed = (const void *)(bytes + at);
        if (packed->bytes > len - at || !gp_packed_is_whole(packed, packed->bytes))
            break;
        at += packed->bytes;
    }
    return at;
}

size_t gp_spool_read(gp_spool_t *spool, void *into, size_t room)
{
    if (!spool_has_file(spool) || spool->sent_at >= spool->end)
        return 0;
    size_t left = spool->end - spool->sent_at;
    ssize_t len = pread(spool->file.fd, into, left < room ? left : room, (off_t)spool->sent_at);
    size_t good = len > 0 ? spool_whole(into, (size_t)len) : 0;
    if (good == 0)
        gp_spool_take(spool, left, spool->spans); // torn, or unreadable: nothing behind it can be trusted
    return good;
}

static void spool_empty(gp_spool_t *spool)
{
    spool->sent_at = spool->end = FIRST;
    spool->spans = 0;
    if (gp_kept_fd_is_there(&spool->file))
        (void)!ftruncate(spool->file.fd, FIRST);
}

void gp_spool_take(gp_spool_t *spool, size_t bytes, size_t spans)
{
    if (!spool_has_file(spool))
        return;
    spool->sent_at += bytes;
    spool->spans -= spans < spool->spans ? spans : spool->spans;
    if (spool->sent_at >= spool->end)
        spool_empty(spool);
    if (gp_kept_fd_is_there(&spool->file))
        spool_write_header(spool);
}

static bool spool_is_header_right(const gp_spool_t *spool, const header_t *header, uint64_t size)
{
    return memcmp(header->magic, magic, sizeof(magic)) == 0 && header->version == VERSION &&
           header->url_hash == spool->url_hash && header->sent_at >= FIRST && header->sent_at <= size &&
           header->sent_at % 8 == 0 && memchr(header->identity.service, '\0', GP_IDENTITY_MAX) != NULL &&
           memchr(header->identity.host, '\0', GP_IDENTITY_MAX) != NULL;
}

// Take an existing file that no process has locked.
static bool spool_adopt_file(gp_spool_t *spool, const char *name)
{
    header_t header = {0};
    struct stat stat;
    snprintf(spool->name, sizeof(spool->name), "%s", name);
    int fd = spool_open_file(spool, 0);
    if (fd < 0)
        return false;
    if (fstat(fd, &stat) == 0 && pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
        spool_is_header_right(spool, &header, (uint64_t)stat.st_size)) {
        spool->file = gp_kept_fd_keep(fd);
        spool->sent_at = header.sent_at;
        spool->end = (uint64_t)stat.st_size;
        spool->identity = header.identity;
        gp_identity_name(spool->identity.service, header.identity.service);
        gp_identity_name(spool->identity.host, header.identity.host);
        return true;
    }
    close(fd);
    return false;
}

bool gp_spool_adopt(gp_spool_t *spool)
{
    char prefix[NAME_HASH + 2];
    if (spool->path == NULL || access(spool->path, F_OK) != 0 || spool_open_directory(spool) != 0)
        return false;
    snprintf(prefix, sizeof(prefix), "%016llx-", (unsigned long long)spool->url_hash);
    int copy = fcntl(spool->directory.fd, F_DUPFD_CLOEXEC, gp_descriptor_floor());
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    if (list == NULL && copy >= 0)
        close(copy);
    for (struct dirent *entry; list != NULL && spool->file.fd < 0 && (entry = readdir(list)) != NULL;)
        if (strncmp(entry->d_name, prefix, NAME_HASH + 1) == 0 && strlen(entry->d_name) < sizeof(spool->name))
            spool_adopt_file(spool, entry->d_name);
    if (list != NULL)
        closedir(list);
    if (spool->file.fd < 0)
        spool_close_all(spool);
    return spool->file.fd >= 0;
}

void gp_spool_end(gp_spool_t *spool)
{
    if (spool->sent_at >= spool->end && spool_has_file(spool) && gp_kept_fd_is_there(&spool->directory))
        unlinkat(spool->directory.fd, spool->name, 0);
    spool_close_all(spool);
}

void gp_spool_abandon(gp_spool_t *spool)
{
    spool_close_all(spool);
}
