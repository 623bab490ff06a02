// SPDX-License-Identifier: MIT
// file:///DIR - a folder a trace, in it a file a process with one JSON object a line (span_json.h). Nothing is kept
// open between calls: folders may be removed at any time.
#include <stdio.h>
#include <stdlib.h>

#include "base/kept_fd.h"
#include "consumer/backends.h"
#include "consumer/directory.h"
#include "consumer/span_json.h"
#include "consumer/url.h"
#include "model/identity.h"

typedef struct file_state {
    char directory[GP_URL_MAX];
    gp_reply_bytes_t lines;
} file_state_t;

// file:/DIR and file:///DIR; no other host than this one.
bool gp_file_directory(const char *url, char directory[GP_URL_MAX])
{
    char path[GP_URL_MAX];
    if (gp_url_rest(url, path) <= 0 || !gp_url_decode(path))
        return false;
    const char *start = strncmp(path, "//", 2) == 0 ? path + 2 : path;
    if (strncmp(start, "localhost/", 10) == 0)
        start += 9;
    strcpy(directory, start);
    return directory[0] == '/';
}

static int file_open_files(const char *url, void **state)
{
    static const char *const options[] = {"profile", NULL}; // that one is src/library/request_profiles.c's
    char directory[GP_URL_MAX];
    if (!gp_file_directory(url, directory) || !gp_url_options_are(url, options))
        return -EINVAL;
    file_state_t *files = calloc(1, sizeof(*files));
    if (files == NULL)
        return -ENOMEM;
    strcpy(files->directory, directory);
    *state = files;
    return 0;
}

static int file_open_file(int folder, const prof_span_record_t *span)
{
    char service[GP_IDENTITY_MAX], host[GP_IDENTITY_MAX], name[2 * GP_IDENTITY_MAX + 32];
    gp_identity_name(service, span->service);
    gp_identity_name(host, span->host);
    snprintf(name, sizeof(name), "spans-%s-%s-%d.jsonl", service, host, span->pid);
    int fd = gp_descriptor_open(folder, name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return -errno;
    if (gp_directory_is_own_file(fd))
        return fd;
    close(fd);
    return -EACCES;
}

// All of it, or nothing.
static int file_append(const gp_kept_fd_t *file, const gp_reply_bytes_t *lines)
{
    off_t before = lseek(file->fd, 0, SEEK_END);
    size_t len = 0;
    while (len < lines->len) {                     // after a part of it, the next attempt says why
        bool is_there = gp_kept_fd_is_there(file); // else the program has closed it
        ssize_t written = is_there ? write(file->fd, lines->data + len, lines->len - len) : -1;
        if (written <= 0) {
            int error = !is_there ? -EBADF : written < 0 ? -errno : -ENOSPC;
            if (len > 0 && is_there)
                (void)!ftruncate(file->fd, before);
            return error;
        }
        len += (size_t)written;
    }
    return 0;
}

// Is only this trace's file out of reach, not all of them? Then it does not hold the others up.
static bool file_is_of_trace(int directory, int error)
{
    return error == -ELOOP || error == -ENOTDIR || error == -EISDIR || error == -ENXIO || error == -EFBIG ||
           (error == -EACCES && faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) == 0);
}

static int file_write_trace(int directory, const prof_span_record_t *span, const gp_reply_bytes_t *lines)
{
    char trace[PROF_TRACE_HEX_SIZE];
    prof_trace_to_hex(&span->trace, trace);
    int opened = gp_directory_open(directory, trace);
    if (opened < 0)
        return opened;
    gp_kept_fd_t folder = gp_kept_fd_keep(opened);
    int fd = file_open_file(folder.fd, span);
    gp_kept_fd_t file = fd >= 0 ? gp_kept_fd_keep(fd) : GP_HELD_NONE;
    int error = fd < 0 ? fd : file_append(&file, lines);
    gp_kept_fd_close(&file);
    gp_kept_fd_close(&folder);
    return error;
}

static bool file_is_same_file(const prof_span_record_t *a, const prof_span_record_t *b)
{
    return memcmp(a->trace.bytes, b->trace.bytes, sizeof(a->trace.bytes)) == 0;
}

static bool file_is_first_of_its_trace(const prof_span_record_t *spans, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (file_is_same_file(&spans[i], &spans[number]))
            return false;
    return true;
}

// The spans of a trace go together, each trace where its first span is.
static int file_write_all(file_state_t *files, int directory, const prof_span_record_t *spans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!file_is_first_of_its_trace(spans, i))
            continue;
        gp_bytes_clear(&files->lines);
        for (size_t j = i; j < count; j++)
            if (file_is_same_file(&spans[i], &spans[j]))
                gp_span_json(&files->lines, &spans[j]);
        int error = files->lines.is_short ? -ENOMEM : file_write_trace(directory, &spans[i], &files->lines);
        if (error != 0)
            return i > 0 ? (int)i : file_is_of_trace(directory, error) ? -EBADMSG : error;
    }
    return (int)count;
}

static int file_send_files(void *state, const prof_span_record_t *spans, size_t count)
{
    file_state_t *files = state;
    int opened = gp_directory_open(AT_FDCWD, files->directory);
    if (opened < 0)
        return opened;
    gp_kept_fd_t directory = gp_kept_fd_keep(opened);
    int result = file_write_all(files, directory.fd, spans, count);
    gp_kept_fd_close(&directory);
    return result;
}

static void file_close_files(void *state)
{
    file_state_t *files = state;
    gp_bytes_free(&files->lines);
    free(files);
}

const prof_consumer_t gp_consumer_file = {
    .size = sizeof(gp_consumer_file),
    .version = PROF_CONSUMER_VERSION,
    .scheme = "file",
    .open = file_open_files,
    .send = file_send_files,
    .close = file_close_files,
};
