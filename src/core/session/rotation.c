// SPDX-License-Identifier: MIT
#include "session/rotation.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/rotation.h"
#include "settings.h"

#define SUFFIX ".greenprof"

enum { DIGITS = 4, NUMBER_MAX = 999999999 };

static gp_rotation_t rotation, suggested;
static uint64_t keep, suggested_keep, begun_ns;
static unsigned count;

static bool is_read;

void gp_rotation_suggest(uint64_t bytes, unsigned keep_count)
{
    suggested = (gp_rotation_t){.bytes = bytes};
    suggested_keep = keep_count;
    is_read = false;
}

void gp_rotation_begin(uint64_t now_ns)
{
    const char *text = gp_setting(GP_SETTING_ROTATE);
    // Calls are counted from the start of the program on: they would be in each part anew.
    if (!is_read && (text == NULL || !gp_rotation_parse(text, &rotation)))
        rotation = suggested;
    if (gp_setting_is(GP_SETTING_MODE, "exact"))
        rotation = (gp_rotation_t){0};
    is_read = true;
    keep = text == NULL ? suggested_keep : (uint64_t)gp_setting_number(GP_SETTING_KEEP);
    begun_ns = now_ns;
}

bool gp_rotation_is_due(uint64_t bytes, uint64_t now_ns)
{
    return (rotation.bytes != 0 && bytes >= rotation.bytes) ||
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
    if (last >= NUMBER_MAX || !name_part(&place, last + 1, aside))
        return false;
    count++;
    return true;
}
