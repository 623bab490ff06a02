// SPDX-License-Identifier: MIT
#include "record/rotation.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/memory.h"
#include "capture/write/writer_file.h"
#include "collect/collector.h"
#include "model/rotation.h"
#include "record/asked_signal.h"
#include "settings.h"

#define SUFFIX ".greenprof"

enum { DIGITS = 4, SHORT_MAX = 9999, NUMBER_MAX = 999999999, OWN_MAX = 1 << 16 };

static gp_rotation_t rotation, suggested;
static uint64_t keep, keep_bytes, suggested_keep, begun_ns;
static _Atomic bool is_asked; // by the signal
static bool is_read;
static unsigned count;

// Parts that this process put aside: where files have no attributes, nothing else tells whose they are.
typedef struct part {
    unsigned long number;
    ino_t inode;
} part_t;

static part_t *own;
static size_t own_count, own_room;

void gp_rotation_suggest(uint64_t bytes, unsigned keep_count)
{
    suggested = (gp_rotation_t){.bytes = bytes};
    suggested_keep = keep_count;
    is_read = false;
}

static void rotation_on_signal(int number)
{
    (void)number;
    atomic_store_explicit(&is_asked, true, memory_order_relaxed);
    gp_collector_kick();
}

static void rotation_read_settings(void)
{
    const char *text = gp_setting(GP_SETTING_ROTATE), *size = gp_setting(GP_SETTING_KEEP_SIZE);
    // Calls are counted from the start of the program on: they would be in each part anew.
    bool may = !gp_setting_is(GP_SETTING_MODE, "exact");
    if (text == NULL || !gp_rotation_parse(text, &rotation))
        rotation = suggested;
    if (!may)
        rotation = (gp_rotation_t){0};
    else
        gp_asked_signal_take(gp_setting(GP_SETTING_ROTATE_SIGNAL), rotation_on_signal);
    bool is_own = text != NULL || gp_setting(GP_SETTING_ROTATE_SIGNAL) != NULL;
    keep = is_own ? (uint64_t)gp_setting_number(GP_SETTING_KEEP) : suggested_keep;
    if (size == NULL || !gp_size_limit_parse(size, &keep_bytes))
        keep_bytes = 0;
}

void gp_rotation_begin(uint64_t now_ns)
{
    if (!is_read)
        rotation_read_settings();
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
    own_count = 0;
}

typedef struct place {
    int fd;           // of the directory; -1 = it cannot be read
    const char *name; // of the capture
    size_t stem_len;  // of it, without the suffix
    const char *suffix;
} place_t;

static place_t rotation_find_place(const gp_writer_t *writer)
{
    const char *slash = strrchr(writer->path, '/'), *name = slash != NULL ? slash + 1 : writer->path;
    size_t len = strlen(name);
    bool is_held = gp_kept_fd_is_there(&writer->directory);
    bool has_suffix = len > strlen(SUFFIX) && strcmp(name + len - strlen(SUFFIX), SUFFIX) == 0;
    return (place_t){
        .fd = is_held ? gp_descriptor_open(writer->directory.fd, ".", O_RDONLY | O_DIRECTORY, 0) : -1,
        .name = name,
        .stem_len = has_suffix ? len - strlen(SUFFIX) : len,
        .suffix = has_suffix ? SUFFIX : "",
    };
}

// Which part of the recording would it be, by its name? 0 = none.
static unsigned long rotation_number_of(const place_t *place, const char *name)
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

static bool rotation_is_own(unsigned long number, ino_t inode)
{
    for (size_t i = own_count; number != 0 && i-- > 0;)
        if (own[i].number == number && own[i].inode == inode)
            return true;
    return false;
}

static void rotation_note_own(unsigned long number, ino_t inode)
{
    if (own_count == OWN_MAX) {
        own_count /= 2;
        memmove(own, own + own_count, own_count * sizeof(*own));
    }
    if (gp_grow(&own, &own_room, own_count, sizeof(*own)) == 0)
        own[own_count++] = (part_t){number, inode};
}

typedef struct look {
    unsigned long count, first, last; // of the recording's parts: how many, and their numbers
    uint64_t bytes;                   // of all recordings' parts
    struct timespec when;
    char oldest[NAME_MAX + 1]; // of them, "" = there is none
} look_t;

static bool rotation_is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static void rotation_look_at(const place_t *place, const char *name, look_t *look)
{
    struct stat status;
    unsigned long number = rotation_number_of(place, name);
    if (number > look->last && number <= SHORT_MAX) // a part of before, where files have no attributes
        look->last = number;
    // Beside them, copies and captures with a date or a process id in their names are its user's.
    if (fstatat(place->fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode) ||
        (!rotation_is_own(number, status.st_ino) && !gp_writer_file_is_part(place->fd, name)))
        return;
    look->bytes += (uint64_t)status.st_size;
    if (look->oldest[0] == '\0' || rotation_is_older(&status.st_mtim, &look->when)) {
        look->when = status.st_mtim;
        snprintf(look->oldest, sizeof(look->oldest), "%s", name);
    }
    if (number == 0)
        return;
    look->count++;
    look->first = look->first == 0 || number < look->first ? number : look->first;
    look->last = number > look->last ? number : look->last;
}

static look_t rotation_look(const place_t *place)
{
    look_t found = {0};
    DIR *directory = place->fd >= 0 ? gp_descriptor_entries(place->fd, ".") : NULL;
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (strchr(entry->d_name, '-') != NULL)
            rotation_look_at(place, entry->d_name, &found);
    if (directory != NULL)
        closedir(directory);
    return found;
}

// Returns whether there is room.
static bool rotation_name_part(const place_t *place, unsigned long number, char name[NAME_MAX + 1])
{
    int len =
        snprintf(name, NAME_MAX + 1, "%.*s-%0*lu%s", (int)place->stem_len, place->name, DIGITS, number, place->suffix);
    return len <= NAME_MAX;
}

static bool rotation_remove_oldest(const place_t *place, const look_t *found, uint64_t bytes)
{
    char name[NAME_MAX + 1];
    if (keep != 0 && found->count >= keep) // with the coming one there are `keep`
        return rotation_name_part(place, found->first, name) && unlinkat(place->fd, name, 0) == 0;
    return keep_bytes != 0 && found->oldest[0] != '\0' && found->bytes + bytes > keep_bytes &&
           unlinkat(place->fd, found->oldest, 0) == 0;
}

bool gp_rotation_make_room(const gp_writer_t *writer, char aside[GP_ROTATION_PATH_SIZE])
{
    place_t place = rotation_find_place(writer);
    char name[NAME_MAX + 1];
    struct stat status;
    look_t found = rotation_look(&place);
    unsigned long number = found.last + 1;
    while (rotation_remove_oldest(&place, &found, writer->bytes))
        found = rotation_look(&place);
    bool has_room = rotation_name_part(&place, number, name); // others may have such a name
    while (has_room && place.fd >= 0 && fstatat(place.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
        has_room = rotation_name_part(&place, ++number, name);
    if (place.fd >= 0)
        close(place.fd);
    int len = snprintf(aside, GP_ROTATION_PATH_SIZE, "%.*s%s", (int)(place.name - writer->path), writer->path, name);
    if (!has_room || number > NUMBER_MAX || len >= GP_ROTATION_PATH_SIZE)
        return false;
    rotation_note_own(number, writer->inode);
    count++;
    return true;
}
