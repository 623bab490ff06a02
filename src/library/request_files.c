// SPDX-License-Identifier: MIT
#include "request_files.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"
#include "consumer/backends.h"
#include "consumer/directory.h"
#include "consumer/url.h"
#include "dump.h"
#include "export/formats.h"
#include "wire/policy.h"

enum { FORMATS_MAX = 4 };

typedef struct place { // a consumer
    struct place *next;
    char url[GP_URL_MAX], directory[GP_URL_MAX];
    const gp_exporter_t *formats[FORMATS_MAX + 1]; // ended by NULL
    uint64_t slower_ns;
    gp_identity_t identity;
} place_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static place_t *places;

static const gp_exporter_t *request_files_format_of(const char *name)
{
    const gp_exporter_t *format = gp_exporter_find(strcmp(name, "prof") == 0 ? "pstats" : name);
    return format != NULL && !(format->wants & GP_WANT_TIMELINE) ? format : NULL;
}

// Read "prof,folded". Returns false: a name is none, or there are too many.
static bool request_files_read_formats(char *names, const gp_exporter_t *formats[FORMATS_MAX + 1])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *name = strtok_r(names, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        if (count == FORMATS_MAX || (formats[count] = request_files_format_of(name)) == NULL)
            return false;
        count++;
    }
    formats[count] = NULL;
    return count > 0;
}

int gp_request_files_asked(const char *url)
{
    const gp_exporter_t *formats[FORMATS_MAX + 1];
    char names[GP_URL_MAX];
    if (!gp_url_option(url, "profile", names))
        return 0;
    return request_files_read_formats(names, formats) ? 1 : -EINVAL;
}

static place_t *request_files_make_place(const char *url, const gp_identity_t *identity)
{
    char value[GP_URL_MAX];
    place_t *place = calloc(1, sizeof(*place));
    if (place == NULL)
        return NULL;
    strcpy(place->url, url);
    place->identity = *identity;
    if (gp_url_option(url, "slower", value))
        gp_url_duration(value, &place->slower_ns);
    if (gp_file_directory(url, place->directory) && gp_url_option(url, "profile", value) &&
        request_files_read_formats(value, place->formats))
        return place;
    free(place);
    return NULL;
}

int gp_request_files_add(const char *url, const gp_identity_t *identity)
{
    place_t *place = request_files_make_place(url, identity);
    if (place == NULL)
        return -ENOMEM;
    pthread_mutex_lock(&lock);
    place->next = places;
    places = place;
    pthread_mutex_unlock(&lock);
    return 0;
}

bool gp_request_files_remove(const char *url)
{
    pthread_mutex_lock(&lock);
    for (place_t **at = &places; *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->url, url) == 0) {
            place_t *place = *at;
            *at = place->next;
            free(place);
            break;
        }
    bool is_last = places == NULL;
    pthread_mutex_unlock(&lock);
    return is_last;
}

static int request_files_write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t written = write(fd, data, len);
        if (written <= 0)
            return written < 0 ? -errno : -ENOSPC;
        data += written;
        len -= (size_t)written;
    }
    return 0;
}

// Under a temporary name first: a reader never sees half of it.
static int request_files_write_file(int folder, const char *name, const char *data, size_t len)
{
    char temporary[NAME_MAX + 1];
    snprintf(temporary, sizeof(temporary), ".%.*s", NAME_MAX - 1, name);
    int fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int error = request_files_write_all(fd, data, len);
    close(fd);
    if (error == 0 && renameat(folder, temporary, folder, name) != 0)
        error = -errno;
    if (error != 0)
        unlinkat(folder, temporary, 0);
    return error;
}

static int request_files_write_format(int folder, prof_t *profile, const place_t *place, const gp_exporter_t *format,
                                      uint64_t span)
{
    char *data = NULL, name[NAME_MAX + 1];
    size_t len = 0;
    FILE *stream = open_memstream(&data, &len);
    if (stream == NULL)
        return -ENOMEM;
    int error = gp_dump_to(profile, format, stream);
    if (!gp_stream_close(stream) && error == 0)
        error = -ENOMEM;
    snprintf(name, sizeof(name), "profile-%s-%d-%016llx%s", place->identity.service, place->identity.pid,
             (unsigned long long)span, format->suffix);
    if (error == 0)
        error = request_files_write_file(folder, name, data, len);
    free(data);
    return error;
}

static int request_files_open_folder(const place_t *place, const gp_request_file_t *request)
{
    char trace[PROF_TRACE_HEX_SIZE];
    int directory = gp_directory_open(AT_FDCWD, place->directory);
    if (directory < 0)
        return directory;
    prof_trace_to_hex(&request->trace, trace);
    int folder = gp_directory_open(directory, trace);
    close(directory);
    return folder;
}

static int request_files_write_place(const place_t *place, prof_t *profile, const gp_request_file_t *request)
{
    int folder = request_files_open_folder(place, request), count = 0, error = folder < 0 ? folder : 0;
    for (; error == 0 && place->formats[count] != NULL; count++)
        error = request_files_write_format(folder, profile, place, place->formats[count], request->span);
    if (folder >= 0)
        close(folder);
    return error != 0 ? error : count;
}

static bool request_files_is_wanted(const place_t *place, const gp_request_file_t *request)
{
    uint64_t least = gp_policy_least_ns();
    return request->is_asked || request->duration_ns >= (place->slower_ns > least ? place->slower_ns : least);
}

int gp_request_files_write(prof_t *profile, const gp_request_file_t *request)
{
    int result = 0;
    pthread_mutex_lock(&lock);
    for (const place_t *place = places; place != NULL && result >= 0; place = place->next)
        if (request_files_is_wanted(place, request)) {
            int written = request_files_write_place(place, profile, request);
            result = written < 0 ? written : result + written;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

void gp_request_files_after_fork(int32_t pid)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    lock = fresh;
    for (place_t *place = places; place != NULL; place = place->next)
        place->identity.pid = pid;
}
