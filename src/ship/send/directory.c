// SPDX-License-Identifier: MIT
// A directory: file:///directory, of this host or a mounted one, for captures as they are.
//
// Model: while a capture grows its copy is NAME.greenprof.part, which greenprof reads as it does the capture itself;
// when it has ended the copy gets its name. Bytes go to where they belong in the file, so that the same batch twice
// changes nothing; where a part is missing, because somebody has deleted the copy, it is copied again from there on.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ship/send/capture_copy.h"
#include "ship/send/sends.h"

enum { PATH_SIZE = 4096, PIECE_BYTES = 1 << 20 };

typedef struct directory {
    char *path;
    uint64_t sent;
    char piece[PIECE_BYTES];
} directory_t;

static int say(char *error, int result, const char *path)
{
    snprintf(error, GP_FLEET_ERROR_SIZE, "%.180s: %s", path, strerror(-result));
    return result == -EACCES || result == -EPERM || result == -EROFS ? -EACCES : result == -ENOMEM ? result : -EAGAIN;
}

static int open_directory(void **destination, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE])
{
    if (url->path[0] != '/' || url->option_count > 0 || (url->host[0] != '\0' && strcmp(url->host, "localhost") != 0)) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "is to be file:///DIRECTORY, without options");
        return -EINVAL;
    }
    directory_t *directory = calloc(1, sizeof(*directory));
    if (directory != NULL)
        directory->path = strdup(url->path);
    if (directory == NULL || directory->path == NULL) {
        free(directory);
        return -ENOMEM;
    }
    *destination = directory;
    return 0;
}

// Make the directories above a file, but not the one that was named: where it is not mounted it must not appear.
static int make_parents(const directory_t *directory, char *path)
{
    for (char *slash = path + strlen(directory->path) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        int result = mkdir(path, 0777) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (result < 0)
            return result;
    }
    return 0;
}

static int write_all(int fd, const char *bytes, size_t len, uint64_t at)
{
    for (size_t done = 0; done < len;) {
        ssize_t put = pwrite(fd, bytes + done, len - done, (off_t)(at + done));
        if (put < 0 && errno != EINTR)
            return -errno;
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static int copy_bytes(directory_t *directory, int from_fd, int to_fd, uint64_t from, uint64_t to)
{
    int result = 0;
    while (from < to && result == 0) {
        size_t len = to - from < PIECE_BYTES ? (size_t)(to - from) : PIECE_BYTES;
        result = gp_copy_read(from_fd, from, directory->piece, len);
        if (result == 0)
            result = write_all(to_fd, directory->piece, len, from);
        from += len;
        directory->sent += len;
    }
    return result == 0 && fdatasync(to_fd) < 0 ? -errno : result;
}

// Where the copy has all bytes up to: of what is missing nothing is left out.
static uint64_t first_missing(int fd, uint64_t from)
{
    struct stat status;
    return fstat(fd, &status) == 0 && (uint64_t)status.st_size < from ? (uint64_t)status.st_size : from;
}

static int copy_to(directory_t *directory, const gp_batch_t *batch, char *part, const char *whole, char *error)
{
    int to_fd, from_fd = gp_copy_open(batch, error);
    if (from_fd < 0)
        return from_fd == -EACCES ? from_fd : -EAGAIN;
    int result = make_parents(directory, part);
    to_fd = result == 0 ? open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (result == 0 && to_fd < 0)
        result = -errno;
    if (result == 0)
        result = copy_bytes(directory, from_fd, to_fd, first_missing(to_fd, batch->from), batch->to);
    if (result == 0 && batch->is_last && rename(part, whole) < 0)
        result = -errno;
    if (to_fd >= 0)
        close(to_fd);
    close(from_fd);
    return result < 0 ? say(error, result, part) : 0;
}

static int send_one(directory_t *directory, const gp_batch_t *batch, char *error)
{
    char name[GP_COPY_NAME_SIZE], whole[PATH_SIZE], part[PATH_SIZE + 8];
    struct stat status;
    if (!gp_copy_has_bytes(batch))
        return 0;
    int result = gp_copy_name(batch, name);
    if (result == 0 && strlen(directory->path) + strlen(name) + 2 > sizeof(whole))
        result = -ENAMETOOLONG;
    if (result < 0)
        return say(error, result, batch->capture);
    snprintf(whole, sizeof(whole), "%s/%s", directory->path, name);
    snprintf(part, sizeof(part), "%s.part", whole);
    if (stat(whole, &status) == 0 && (uint64_t)status.st_size >= batch->to && access(part, F_OK) < 0)
        return 0; // all of it came before
    return copy_to(directory, batch, part, whole, error);
}

static int send_directory(void *destination, const gp_batch_t *batches, size_t count, bool again,
                          char error[GP_FLEET_ERROR_SIZE])
{
    int result = 0;
    (void)again; // it is looked up each time
    for (size_t i = 0; i < count && result == 0; i++)
        result = send_one(destination, &batches[i], error);
    return result;
}

static uint64_t sent_bytes(void *destination)
{
    return ((directory_t *)destination)->sent;
}

static void describe(void *destination, const gp_batch_t *batch, FILE *out)
{
    gp_copy_describe(batch, ((directory_t *)destination)->path, out);
}

static void close_directory(void *destination)
{
    directory_t *directory = destination;
    free(directory->path);
    free(directory);
}

const gp_destination_kind_t gp_destination_directory = {
    .scheme = "file",
    .takes = GP_TAKES_BYTES,
    .asks = true,
    .open = open_directory,
    .send = send_directory,
    .sent_bytes = sent_bytes,
    .describe = describe,
    .close = close_directory,
};
