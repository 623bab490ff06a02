// SPDX-License-Identifier: MIT
#include "ship/follow/captures_watched.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/read/part_name.h"

bool gp_captures_watched_is_capture(const char *name)
{
    const char *at = strstr(name, ".greenprof");
    return at != NULL && name[0] != '.' && (at[10] == '\0' || at[10] == '.');
}

static gp_one_capture_t *captures_watched_find_path(const gp_captures_watched_t *following, const char *path)
{
    for (size_t i = 0; i < following->count; i++)
        if (!following->captures[i]->has_no_name && strcmp(following->captures[i]->path, path) == 0)
            return following->captures[i];
    return NULL;
}

gp_one_capture_t *gp_captures_watched_find(const gp_captures_watched_t *following, uint64_t id)
{
    for (size_t i = 0; i < following->count; i++)
        if (following->captures[i]->id == id && (following->captures[i]->fd >= 0 || following->captures[i]->is_done))
            return following->captures[i];
    return NULL;
}

// A followed capture that was put aside, by its new name.
static gp_one_capture_t *captures_watched_find_renamed(const gp_captures_watched_t *following, const char *path,
                                                       const struct stat *status)
{
    struct stat former;
    for (size_t i = 0; i < following->count; i++) {
        gp_one_capture_t *followed = following->captures[i];
        if (followed->fd < 0 || followed->inode != status->st_ino || followed->device != status->st_dev ||
            (stat(followed->path, &former) == 0 && former.st_ino == status->st_ino && former.st_dev == status->st_dev))
            continue; // another file, or another name of the same
        const char *renamed = gp_arena_text(&followed->names, path, strlen(path));
        if (renamed == NULL)
            return NULL;
        // -Wanalyzer-malloc-leak: it is the set's, which is freed with the shipper
        followed->path = renamed;
        followed->has_no_name = false;
        return followed;
    }
    return NULL;
}

static gp_one_capture_t *captures_watched_add_capture(gp_captures_watched_t *following, const char *path)
{
    gp_one_capture_t *followed = calloc(1, sizeof(*followed));
    if (followed == NULL ||
        gp_grow(&following->captures, &following->capacity, following->count, sizeof(gp_one_capture_t *)) < 0) {
        free(followed);
        return NULL;
    }
    followed->path = gp_arena_text(&followed->names, path, strlen(path));
    followed->fd = -1;
    if (followed->path == NULL) {
        free(followed);
        return NULL;
    }
    // -Wanalyzer-malloc-leak: it is the set's, which is freed with the shipper
    following->captures[following->count++] = followed;
    return followed;
}

static void captures_watched_open_capture(gp_captures_watched_t *following, gp_one_capture_t *followed, bool is_named)
{
    char error[GP_READER_ERROR_SIZE] = "";
    int result = gp_one_capture_open(followed, error);
    if (result == -EAGAIN || result == -ENOENT) {
        if (is_named && following->options->once) {
            following->options->say(followed->path, "%s", error);
            following->has_failed = true;
        } else if (is_named && result == -ENOENT && !followed->is_awaited) {
            following->options->say(followed->path, "%s; waiting for it", error);
            followed->is_awaited = true;
        }
        return;
    }
    bool is_old = result == 0 && followed->start_ns < following->options->since_ns;
    if (is_old ||
        (result == 0 && gp_captures_watched_find(following, followed->id) != followed)) { // or: under another name
        gp_one_capture_close(followed);
        followed->is_done = true;
        return;
    }
    if (result == 0 && (result = gp_capture_names_begin(&followed->known, following->symbolizer)) < 0)
        snprintf(error, sizeof(error), "%s", strerror(-result));
    if (result < 0) {
        following->options->say(followed->path, "%s", error);
        followed->is_done = true;
        following->has_failed = true;
        return;
    }
    followed->at =
        following->journal != NULL ? gp_journal_arrived(following->journal, following->destination, followed->id) : 0;
}

// Look at a file: whether it is new, another one than before, or has grown.
static void captures_watched_look_at(gp_captures_watched_t *following, const char *path, bool is_named)
{
    struct stat status = {0}; // of a named capture that is still missing
    gp_one_capture_t *followed = captures_watched_find_path(following, path);
    if (stat(path, &status) < 0 && !is_named)
        return;
    bool is_another = followed != NULL && (followed->fd >= 0 || followed->is_done) && followed->inode != 0 &&
                      (followed->inode != status.st_ino || followed->device != status.st_dev);
    if (is_another && followed->fd >= 0) { // put aside where nothing looks: it is read to its end
        followed->has_no_name = true;
        followed = NULL;
    } else if (is_another) {
        gp_one_capture_close(followed);
        followed->is_done = false;
        // -Wanalyzer-malloc-leak: it is the set's, which is freed with the shipper
        followed->id = 0;
    }
    if (followed == NULL)
        followed = captures_watched_find_renamed(following, path, &status);
    if (followed == NULL)
        followed = captures_watched_add_capture(following, path);
    if (followed == NULL)
        return;
    followed->is_seen = true;
    // -Wanalyzer-malloc-leak: it is the set's, which is freed with the shipper
    if (followed->fd < 0 && !followed->is_done) {
        captures_watched_open_capture(following, followed, is_named);
        if (followed->is_done && followed->inode == 0) {
            followed->inode = status.st_ino;
            followed->device = status.st_dev;
        }
    }
    followed->size = (uint64_t)status.st_size;
    if (following->journal != NULL && followed->id != 0) // still there
        gp_journal_arrived(following->journal, following->destination, followed->id);
}

static int captures_watched_by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int captures_watched_choose_name(const struct dirent *entry)
{
    return gp_captures_watched_is_capture(entry->d_name);
}

// With `only`, what one run writes: "api.greenprof", "api-0007.greenprof", "api.greenprof.PID" of a child.
static bool captures_watched_is_asked_for(const gp_captures_watched_t *following, const char *name)
{
    const char *only = following->options->only;
    size_t len = only != NULL ? strlen(only) : 0;
    return only == NULL || gp_part_is_beside(name, only) || (strncmp(name, only, len) == 0 && name[len] == '.');
}

static void captures_watched_look_into(gp_captures_watched_t *following, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, captures_watched_choose_name, captures_watched_by_name);
    if (count < 0) {
        following->options->say(folder, "%s", strerror(errno));
        following->has_failed = true;
        return;
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        int len = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (len > 0 && (size_t)len < sizeof(path) && captures_watched_is_asked_for(following, entries[i]->d_name))
            captures_watched_look_at(following, path, false);
        free(entries[i]);
    }
    free(entries);
}

static int captures_watched_count_span(void *context, const gp_span_record_t *span, const char *name,
                                       const char *fields)
{
    (void)span, (void)name, (void)fields;
    ++*(uint64_t *)context;
    return 0;
}

// Count the spans of a removed file that have not arrived, and will not.
static void captures_watched_count_lost(const gp_captures_watched_t *following, const gp_one_capture_t *followed)
{
    static const gp_reader_handlers_t handlers = {.span = captures_watched_count_span};
    char error[GP_READER_ERROR_SIZE];
    gp_reader_summary_t summary;
    gp_reader_part_t part = {.from = followed->at};
    uint64_t spans = 0;
    gp_reader_read_part(followed->fd, &part, &handlers, &spans, &summary, error);
    atomic_fetch_add_explicit(&following->options->state_now->lost, spans, memory_order_relaxed);
}

// Does it only take room on the disk, because it is open?
static bool captures_watched_is_dropped(const gp_captures_watched_t *following, const gp_one_capture_t *followed)
{
    struct stat status;
    return following->options->drops_removed && fstat(followed->fd, &status) == 0 && status.st_nlink == 0;
}

// A file that is gone is read to its end as long as it is open, then forgotten.
static void captures_watched_forget_gone(gp_captures_watched_t *following)
{
    size_t kept = 0;
    for (size_t i = 0; i < following->count; i++) {
        gp_one_capture_t *followed = following->captures[i];
        struct stat status;
        if (!followed->is_seen && followed->fd >= 0 && fstat(followed->fd, &status) == 0)
            followed->size = (uint64_t)status.st_size;
        bool is_left = followed->fd >= 0 && followed->at < followed->size && !followed->known.facts.ended;
        if (is_left && !followed->is_seen && !followed->is_in_group &&
            captures_watched_is_dropped(following, followed)) {
            captures_watched_count_lost(following, followed);
            is_left = false;
        }
        if (followed->is_seen || is_left || followed->is_in_group) {
            following->captures[kept++] = followed;
        } else {
            gp_one_capture_free(followed);
            free(followed);
        }
    }
    following->count = kept;
}

void gp_captures_watched_look_around(gp_captures_watched_t *following)
{
    for (size_t i = 0; i < following->count; i++)
        following->captures[i]->is_seen = false;
    for (size_t i = 0; i < following->options->path_count; i++) {
        struct stat status;
        const char *path = following->options->paths[i];
        if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
            captures_watched_look_into(following, path);
        else
            captures_watched_look_at(following, path, true);
    }
    captures_watched_forget_gone(following);
}

void gp_captures_watched_free(gp_captures_watched_t *following)
{
    for (size_t i = 0; i < following->count; i++) {
        gp_one_capture_free(following->captures[i]);
        free(following->captures[i]);
    }
    free(following->captures);
}
