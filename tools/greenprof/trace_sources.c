// SPDX-License-Identifier: MIT
#include "trace_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/format.h"
#include "message.h"

static bool is_url(const char *source)
{
    return strncmp(source, "redis://", 8) == 0;
}

// What messages say of a source: not its password.
static const char *public_name(const char *source, char *text, size_t size)
{
    const char *at = is_url(source) ? strrchr(source, '@') : NULL;
    if (at == NULL)
        return source;
    snprintf(text, size, "redis://%s", at + 1);
    return text;
}

// Returns 0 or a negative errno value; the text is malloc()ed and ended by NUL.
static int read_all(int fd, char **text, size_t *len)
{
    size_t capacity = 0;
    ssize_t got = 0;
    *text = NULL;
    *len = 0;
    do {
        *len += (size_t)got;
        if (gp_reserve(text, &capacity, *len + 65536, 1) < 0)
            return -ENOMEM;
        got = read(fd, *text + *len, 65535);
    } while (got > 0);
    (*text)[*len] = '\0';
    return got == 0 ? 0 : -errno;
}

static bool is_capture(const char *text, size_t len)
{
    return len >= strlen(GP_FILE_MAGIC) && memcmp(text, GP_FILE_MAGIC, strlen(GP_FILE_MAGIC)) == 0;
}

static int read_json(gp_spans_t *set, int fd, const char *source)
{
    char error[GP_SPANS_ERROR_SIZE] = "", *text;
    size_t len;
    int result = read_all(fd, &text, &len), status = 0;
    if (result < 0)
        status = gp_fail(source, "%s", strerror(-result));
    else if (is_capture(text, len))
        status = gp_fail(source, "is a capture in a pipe: give it by its name");
    else if (len == 0)
        status = gp_fail(source, "is empty");
    else if ((result = gp_spans_read_json(set, text, len, error)) < 0)
        status = gp_fail(source, "%s", result == -ENOMEM ? strerror(ENOMEM) : error);
    free(text);
    return status;
}

static int read_file(gp_spans_t *set, const char *source)
{
    char magic[8];
    int fd = open(source, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return gp_fail(source, "%s", strerror(errno));
    ssize_t got = pread(fd, magic, sizeof(magic), 0);
    int status = got > 0 && is_capture(magic, (size_t)got) ? gp_fail(source, "is a capture without spans")
                                                           : read_json(set, fd, source);
    close(fd);
    return status;
}

static int read_source(gp_spans_t *set, const char *source, gp_wanted_t wanted)
{
    char error[GP_SPANS_ERROR_SIZE] = "", name[512];
    struct stat status;
    int result;
    if (is_url(source))
        result = gp_spans_read_redis(set, source, wanted, error);
    else if (strstr(source, "://") != NULL)
        return gp_fail(source, "is no source: a file, a directory or redis://HOST[:PORT][/DB]");
    else if (stat(source, &status) == 0 && S_ISDIR(status.st_mode))
        result = gp_spans_read_folder(set, source, wanted, error);
    else
        return read_file(set, source);
    if (result == 0)
        return 0;
    return gp_fail(public_name(source, name, sizeof(name)), "%s", result == -ENOMEM ? strerror(ENOMEM) : error);
}

int gp_trace_sources_read(gp_spans_t *set, const gp_arguments_t *arguments, char **sources, size_t count,
                          gp_wanted_t wanted, bool profiles)
{
    (void)arguments, (void)profiles;
    int status = 0;
    char name[512];
    for (size_t i = 0; i < count && status == 0; i++) {
        size_t unreadable = set->unreadable;
        status = read_source(set, sources[i], wanted);
        if (status == 0 && set->unreadable > unreadable)
            gp_warn(public_name(sources[i], name, sizeof(name)), "%zu records are no spans and were left out",
                    set->unreadable - unreadable);
    }
    if (status == 0 && gp_spans_link(set) < 0)
        status = gp_fail("memory", "%s", strerror(ENOMEM));
    return status;
}
