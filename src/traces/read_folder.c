// SPDX-License-Identifier: MIT
// Files of the file consumer: DIR/<trace>/spans-<service>-<host>-<pid>.jsonl and profile-<service>-<pid>-<span>.folded.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"
#include "traces/sources.h"

typedef struct reading {
    gp_spans_t *set;
    char *error;
    size_t found; // files of spans
} reading_t;

// Returns a malloc()ed text, NUL behind it, or NULL and errno.
static char *read_folder_file(const char *path, size_t *len)
{
    char *text = NULL;
    int fd = gp_regular_file_open(AT_FDCWD, path, 0);
    if (fd < 0) {
        errno = -fd;
        return NULL;
    }
    int result = gp_spans_read_all(fd, &text, len);
    close(fd);
    if (result == 0)
        return text;
    free(text);
    errno = -result;
    return NULL;
}

static int read_folder_fail(const reading_t *reading, const char *name, const char *what)
{
    snprintf(reading->error, GP_SPANS_ERROR_SIZE, "%.150s: %.90s", name, what);
    return -EINVAL;
}

static int read_folder_spans(reading_t *reading, const char *path, const char *name)
{
    size_t len, before = reading->set->unreadable;
    char *text = read_folder_file(path, &len), error[GP_SPANS_ERROR_SIZE] = "";
    if (text == NULL)
        return read_folder_fail(reading, name, strerror(errno));
    int result = len > 0 ? gp_spans_read_json(reading->set, text, len, error) : 0;
    free(text);
    reading->found++;
    if (result == -ENOMEM || result == 0)
        return result;
    reading->set->unreadable = before + 1; // the other files are read
    return 0;
}

// The span is the last part of the name.
static int read_folder_profile(reading_t *reading, uint32_t trace, const char *path, const char *name)
{
    const char *dash = strrchr(name, '-');
    size_t len, id_len = dash != NULL ? strlen(dash + 1) : 0;
    char *text, id[17];
    const char *copy;
    uint32_t span;
    if (id_len != sizeof("0123456789abcdef.folded") - 1)
        return 0;
    snprintf(id, sizeof(id), "%.16s", dash + 1);
    span = gp_spans_find(reading->set, trace, gp_id128_parse(id));
    if (span == GP_NO_SPAN)
        return 0;
    text = read_folder_file(path, &len);
    if (text == NULL)
        return read_folder_fail(reading, name, strerror(errno));
    copy = gp_spans_text(reading->set, text);
    free(text);
    reading->set->items[span].profile = copy;
    return copy != NULL ? 0 : -ENOMEM;
}

static bool read_folder_has_form(const char *name, const char *prefix, const char *suffix)
{
    size_t len = strlen(name), suffix_len = strlen(suffix);
    return strncmp(name, prefix, strlen(prefix)) == 0 && len > suffix_len &&
           strcmp(name + len - suffix_len, suffix) == 0;
}

static int read_folder_only_files(const struct dirent *entry)
{
    return read_folder_has_form(entry->d_name, "spans-", ".jsonl") ||
           read_folder_has_form(entry->d_name, "profile-", ".folded");
}

static int read_folder_compare_spans_first(const struct dirent **a, const struct dirent **b)
{
    return -strcmp((*a)->d_name, (*b)->d_name); // "spans-" before "profile-"
}

// A folder of one trace, or of all.
static int read_folder_trace(reading_t *reading, const char *path, const char *id)
{
    struct dirent **names;
    int count = scandir(path, &names, read_folder_only_files, read_folder_compare_spans_first), result = 0;
    if (count < 0)
        return errno == ENOTDIR ? 0 : read_folder_fail(reading, id, strerror(errno));
    uint32_t trace = gp_spans_trace(reading->set, gp_id128_parse(id), NULL);
    for (int i = 0; i < count; i++) {
        char *file = NULL;
        if (result == 0 && (trace == GP_NO_SPAN || asprintf(&file, "%s/%s", path, names[i]->d_name) < 0))
            result = -ENOMEM;
        if (result == 0)
            result = names[i]->d_name[0] == 's' ? read_folder_spans(reading, file, names[i]->d_name)
                                                : read_folder_profile(reading, trace, file, names[i]->d_name);
        free(file);
        free(names[i]);
    }
    free(names);
    return result;
}

static bool read_folder_is_trace(const char *name, gp_wanted_t wanted)
{
    return strlen(name) == 32 && gp_id128_is_form(name) &&
           (wanted == NULL || strncmp(name, wanted, strlen(wanted)) == 0);
}

static int read_folder_only_traces(const struct dirent *entry)
{
    return read_folder_is_trace(entry->d_name, NULL);
}

int gp_spans_read_folder(gp_spans_t *set, const char *path, gp_wanted_t wanted, char error[GP_SPANS_ERROR_SIZE])
{
    reading_t reading = {.set = set, .error = error};
    struct dirent **names;
    int count = scandir(path, &names, read_folder_only_traces, alphasort), result = 0;
    if (count < 0) {
        result = -errno;
        snprintf(error, GP_SPANS_ERROR_SIZE, "%s", strerror(errno));
        return result;
    }
    for (int i = 0; i < count; i++) {
        char *folder = NULL;
        if (result == 0 && read_folder_is_trace(names[i]->d_name, wanted)) {
            if (asprintf(&folder, "%s/%s", path, names[i]->d_name) < 0)
                result = -ENOMEM;
            else
                result = read_folder_trace(&reading, folder, names[i]->d_name);
        }
        free(folder);
        free(names[i]);
    }
    free(names);
    if (result == 0 && count == 0) { // the folder of one trace itself
        const char *slash = strrchr(path, '/');
        result = read_folder_trace(&reading, path, slash != NULL && slash[1] != '\0' ? slash + 1 : path);
        if (result == 0 && reading.found == 0) {
            snprintf(error, GP_SPANS_ERROR_SIZE, "has no folders of traces with spans-*.jsonl in them");
            result = -ENOENT;
        }
    }
    return result;
}
