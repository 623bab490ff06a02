// SPDX-License-Identifier: MIT
#include "session/rotation.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/collector.h"
#include "model/rotation.h"
#include "session/asked_signal.h"
#include "settings.h"

#define SUFFIX ".greenprof"

enum { DIGITS = 4, NUMBER_MAX = 999999999 };

static gp_rotation_t rotation, suggested;
static uint64_t keep, keep_bytes, suggested_keep, begun_ns;
static _Atomic bool is_asked; // by the signal
static bool is_read;
static unsigned count;

void gp_rotation_suggest(uint64_t bytes, unsigned keep_count)
{
    suggested = (gp_rotation_t){.bytes = bytes};
    suggested_keep = keep_count;
    is_read = false;
}

static void on_signal(int number)
{
    (void)number;
    atomic_store_explicit(&is_asked, true, memory_order_relaxed);
    gp_collector_kick();
}

static void read_settings(void)
{
    const char *text = gp_setting(GP_SETTING_ROTATE), *size = gp_setting(GP_SETTING_KEEP_SIZE);
    // Calls are counted from the start of the program on: they would be in each part anew.
    bool may = !gp_setting_is(GP_SETTING_MODE, "exact");
    if (text == NULL || !gp_rotation_parse(text, &rotation))
        rotation = suggested;
    if (!may)
        rotation = (gp_rotation_t){0};
    else
        gp_asked_signal_take(gp_setting(GP_SETTING_ROTATE_SIGNAL), on_signal);
    bool is_own = text != NULL || gp_setting(GP_SETTING_ROTATE_SIGNAL) != NULL;
    keep = is_own ? (uint64_t)gp_setting_number(GP_SETTING_KEEP) : suggested_keep;
    if (size == NULL || !gp_size_limit_parse(size, &keep_bytes))
        keep_bytes = 0;
}

void gp_rotation_begin(uint64_t now_ns)
{
    if (!is_read)
        read_settings();
    is_read = true;
    begun_ns = now_ns;
    atomic_store_explicit(&is_asked, false, memory_order_relaxed);
}

bool gp_rotation_is_due(uint64_t bytes, uint64_t now_ns)
{
    bool asked = atomic_load_explicit(&is_asked, memory_order_relaxed);
    return asked || (rotation.bytes != 0 && bytes >= rotation.bytes) ||
           (rotation.ns != 0 && now_ns > begun_ns && now_ns - begun_ns >= rotation.ns);
}

unsigned gp_rotation_count(void)
{
    return count;
}

void gp_rotation_in_child(void)
{
    count = 0;
}

typedef struct place {
    char directory[GP_ROTATION_PATH_SIZE];
    const char *name; // in the path
    size_t stem_len;  // of it, without the suffix
    const char *suffix;
} place_t;

static void find_place(const char *path, place_t *place)
{
    const char *slash = strrchr(path, '/');
    place->name = slash != NULL ? slash + 1 : path;
    size_t len = strlen(place->name), directory_len = (size_t)(place->name - path);
    bool has_suffix = len > strlen(SUFFIX) && strcmp(place->name + len - strlen(SUFFIX), SUFFIX) == 0;
    place->stem_len = has_suffix ? len - strlen(SUFFIX) : len;
    place->suffix = has_suffix ? SUFFIX : "";
    memcpy(place->directory, directory_len > 0 ? path : "./", directory_len > 0 ? directory_len : 2);
    place->directory[directory_len > 0 ? directory_len : 2] = '\0';
}

// Which part is it? 0 = none.
static unsigned long number_of(const place_t *place, const char *name)
{
    char *end;
    if (strncmp(name, place->name, place->stem_len) != 0 || name[place->stem_len] != '-')
        return 0;
    const char *digits = name + place->stem_len + 1;
    if (strspn(digits, "0123456789") < DIGITS)
        return 0;
    unsigned long number = strtoul(digits, &end, 10);
    return strcmp(end, place->suffix) == 0 && number <= NUMBER_MAX ? number : 0;
}

typedef struct parts {
    unsigned long count, first, last;
} parts_t;

// What the place has with numbers above `floor`.
static parts_t look(const place_t *place, unsigned long floor)
{
    parts_t parts = {0};
    DIR *directory = opendir(place->directory);
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        unsigned long number = number_of(place, entry->d_name);
        if (number <= floor)
            continue;
        parts.count++;
        parts.first = parts.first == 0 || number < parts.first ? number : parts.first;
        parts.last = number > parts.last ? number : parts.last;
    }
    if (directory != NULL)
        closedir(directory);
    return parts;
}

static bool name_part(const place_t *place, unsigned long number, char path[GP_ROTATION_PATH_SIZE])
{
    int length = snprintf(path, GP_ROTATION_PATH_SIZE, "%s%.*s-%0*lu%s", place->directory, (int)place->stem_len,
                          place->name, DIGITS, number, place->suffix);
    return length > 0 && length < GP_ROTATION_PATH_SIZE;
}

typedef struct heap { // parts of all captures of a directory
    uint64_t bytes;
    struct timespec when;
    char oldest[256]; // "" = there is none
} heap_t;

static bool is_any_part(const char *name)
{
    size_t len = strlen(name), digits = 0, suffix = strlen(SUFFIX);
    if (len < suffix || strcmp(name + len - suffix, SUFFIX) != 0)
        return false;
    for (len -= suffix; len > 0 && name[len - 1] >= '0' && name[len - 1] <= '9'; len--)
        digits++;
    return digits >= DIGITS && len > 1 && name[len - 1] == '-';
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static heap_t weigh(DIR *directory, const place_t *place)
{
    heap_t heap = {0};
    struct dirent *entry;
    struct stat status;
    while ((entry = readdir(directory)) != NULL) {
        if ((!is_any_part(entry->d_name) && number_of(place, entry->d_name) == 0) ||
            fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
            continue;
        heap.bytes += (uint64_t)status.st_size;
        if (heap.oldest[0] != '\0' && !is_older(&status.st_mtim, &heap.when))
            continue;
        heap.when = status.st_mtim;
        snprintf(heap.oldest, sizeof(heap.oldest), "%s", entry->d_name);
    }
    return heap;
}

// Remove the oldest parts of the directory, whatever capture they are of, until there is room for this one.
static void keep_within(const place_t *place, const char *path)
{
    struct stat status;
    uint64_t own = stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
    DIR *directory = keep_bytes != 0 ? opendir(place->directory) : NULL;
    if (directory == NULL)
        return;
    heap_t heap = weigh(directory, place);
    while (heap.oldest[0] != '\0' && heap.bytes + own > keep_bytes && unlinkat(dirfd(directory), heap.oldest, 0) == 0) {
        rewinddir(directory);
        heap = weigh(directory, place);
    }
    closedir(directory);
}

bool gp_rotation_make_room(const char *path, char aside[GP_ROTATION_PATH_SIZE])
{
    place_t place;
    find_place(path, &place);
    parts_t parts = look(&place, 0);
    unsigned long last = parts.last, floor = 0;
    while (keep != 0 && parts.count >= keep) { // with the one that comes there are `keep`
        if (!name_part(&place, parts.first, aside) || unlink(aside) != 0)
            floor = parts.first; // not ours to remove
        parts = look(&place, floor);
    }
    keep_within(&place, path);
    if (last >= NUMBER_MAX || !name_part(&place, last + 1, aside))
        return false;
    count++;
    return true;
}
