// SPDX-License-Identifier: MIT
#include "export/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report.h"

enum { BUFFER_BYTES = 128 * 1024, NAME_TRIES = 16, PLACE_SIZE = 32 };

static int output_open_stream(gp_output_t *output, int fd)
{
    output->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (output->file == NULL) {
        int result = -errno;
        if (fd >= 0)
            close(fd);
        return result;
    }
    // glibc takes the size only together with a buffer; else its own is small.
    output->buffer = malloc(BUFFER_BYTES);
    if (output->buffer != NULL)
        setvbuf(output->file, output->buffer, _IOFBF, BUFFER_BYTES);
    // A single thread writes to the stream: a lock for each byte would be a third of a dump's time.
    __fsetlocking(output->file, FSETLOCKING_BYCALLER);
    return 0;
}

// The temporary name: hidden, beside the final one, different every time.
static char *output_temporary_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    int directory = slash ? (int)(slash - path) + 1 : 0;
    uint64_t random = 0;
    char *name = NULL;
    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
        random = (uint64_t)(uintptr_t)&random ^ (uint64_t)getpid() << 32;
    // A name may be 255 bytes; ours is the final one with a prefix and a suffix.
    if (asprintf(&name, "%.*s.%.200s.%08x", directory, path, path + directory, (unsigned)(random ^ random >> 32)) < 0)
        return NULL;
    return name;
}

static const char *output_place_of(int fd, char place[PLACE_SIZE])
{
    snprintf(place, PLACE_SIZE, "/proc/thread-self/fd/%d", fd);
    return place;
}

// A file without a name, which is gone when the process is, however that ends. Returns -1 where there is none of these,
// or no /proc to give it a name by.
static int output_open_nameless(const char *path, mode_t mode)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1), place[PLACE_SIZE];
    int fd = directory != NULL ? open(directory, O_WRONLY | O_TMPFILE | O_CLOEXEC, mode) : -1;
    free(directory);
    if (fd < 0 || access(output_place_of(fd, place), F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

// Make the temporary file by `make`, with another name as long as the name is taken.
static int output_with_temporary_name(gp_output_t *output, int (*make)(const char *name, int argument), int argument)
{
    int result = -1;
    for (int i = 0; i < NAME_TRIES && result < 0; i++) {
        free(output->temporary);
        output->temporary = output_temporary_name(output->path);
        if (output->temporary == NULL)
            return -ENOMEM;
        result = make(output->temporary, argument);
        if (result < 0 && errno != EEXIST)
            break;
    }
    if (result >= 0)
        return result;
    result = -errno;
    free(output->temporary);
    output->temporary = NULL;
    return result;
}

static int output_make_file(const char *name, int mode)
{
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
}

// Source: open(2), O_TMPFILE.
static int output_make_link(const char *name, int fd)
{
    char place[PLACE_SIZE];
    return linkat(AT_FDCWD, output_place_of(fd, place), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static int output_open_temporary(gp_output_t *output, mode_t mode, bool is_named)
{
    int fd = is_named ? -1 : output_open_nameless(output->path, mode);
    output->is_nameless = fd >= 0;
    if (fd < 0)
        fd = output_with_temporary_name(output, output_make_file, (int)mode);
    return fd >= 0 ? output_open_stream(output, fd) : fd;
}

// Through a symbolic link the file it points to is replaced or made, not the link. NULL and errno on failure.
static char *output_final_path(const char *path)
{
    char target[PATH_MAX], *real = realpath(path, NULL), *joined = NULL;
    if (real != NULL || errno != ENOENT)
        return real;
    ssize_t length = readlink(path, target, sizeof(target) - 1);
    if (length <= 0)
        return strdup(path);
    target[length] = '\0';
    const char *slash = target[0] != '/' ? strrchr(path, '/') : NULL;
    if (slash == NULL)
        return output_final_path(target);
    if (asprintf(&joined, "%.*s/%s", (int)(slash - path), path, target) < 0)
        return NULL;
    real = output_final_path(joined);
    free(joined);
    return real;
}

static int output_open_path(gp_output_t *output, const char *path, bool is_named)
{
    struct stat status;
    mode_t mode = 0666;
    output->path = output_final_path(path);
    if (output->path == NULL)
        return -errno;
    if (stat(output->path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return -EISDIR;
        if (!S_ISREG(status.st_mode))
            return output_open_stream(output, open(output->path, O_WRONLY | O_CLOEXEC));
        if (access(output->path, W_OK) < 0) // a rename would go around the file's own permissions
            return -errno;
        mode = status.st_mode & 0777;
    }
    return output_open_temporary(output, mode, is_named);
}

// The stream of the process that a path names, which must never be replaced by a file; else -1.
static int output_stream_named(const char *path)
{
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    return strcmp(path, "/dev/stderr") == 0 ? STDERR_FILENO : -1;
}

static int output_open(gp_output_t *output, const char *path, bool is_named)
{
    int result, stream = output_stream_named(path);
    memset(output, 0, sizeof(*output));
    if (stream >= 0)
        result = output_open_stream(output, fcntl(stream, F_DUPFD_CLOEXEC, 3));
    else if (path[0] == '\0')
        result = -ENOENT;
    else
        result = output_open_path(output, path, is_named);
    if (result < 0)
        gp_output_abort(output);
    return result;
}

int gp_output_open(gp_output_t *output, const char *path)
{
    return output_open(output, path, false);
}

int gp_output_open_named(gp_output_t *output, const char *path)
{
    return output_open(output, path, true);
}

int gp_output_commit(gp_output_t *output)
{
    int result = gp_output_state(output->file); // of what has left the buffer already
    errno = 0;
    if (fflush(output->file) != 0 && result == 0)
        result = errno ? -errno : -EIO;
    if (result == 0 && output->is_nameless)
        result = output_with_temporary_name(output, output_make_link, fileno(output->file));
    if (fclose(output->file) != 0 && result == 0)
        result = errno ? -errno : -EIO;
    output->file = NULL;
    if (result == 0 && output->temporary != NULL && rename(output->temporary, output->path) < 0)
        result = -errno;
    if (result == 0) {
        free(output->temporary);
        output->temporary = NULL;
    }
    gp_output_abort(output);
    return result;
}

int gp_output_state(FILE *file)
{
    return !ferror(file) ? 0 : errno > 0 ? -errno : -EIO;
}

void gp_output_abort(gp_output_t *output)
{
    if (output->file != NULL)
        fclose(output->file);
    if (output->temporary != NULL)
        unlink(output->temporary);
    free(output->temporary);
    free(output->buffer);
    free(output->path);
    memset(output, 0, sizeof(*output));
}

int gp_output_write(const gp_exporter_t *exporter, const gp_report_t *report, const char *path)
{
    gp_output_t output;
    int result = gp_output_open(&output, path);
    if (result < 0)
        return result;
    result = exporter->write(report, output.file);
    if (result < 0) {
        gp_output_abort(&output);
        return result;
    }
    return gp_output_commit(&output);
}
