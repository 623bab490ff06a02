// SPDX-License-Identifier: MIT
#include "base/main_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/maps.h"

// The process' own entry has no image any more once its first thread has ended.
static const char exe[] = "/proc/thread-self/exe";

typedef struct search {
    uintptr_t address;
    uint64_t inode; // of what is in `path`; 0 = not known
    char *path;     // [GP_MAIN_FILE_SIZE]
    bool is_other;
} search_t;

// Put the mapping's file into `path`, unless that is it.
static bool main_file_visit(const gp_mapping_t *mapping, void *argument)
{
    search_t *search = argument;
    if (search->address < mapping->lo || search->address >= mapping->hi)
        return true;
    search->is_other = mapping->inode != 0 && mapping->path[0] == '/' && mapping->inode != search->inode &&
                       strcmp(mapping->path, search->path) != 0;
    if (search->is_other)
        snprintf(search->path, GP_MAIN_FILE_SIZE, "%s", mapping->path);
    return false;
}

// The kernel marks a file so when its path no longer leads to it; or the file is really called so.
static void main_file_strip_deleted(char *path)
{
    static const char mark[] = " (deleted)";
    struct stat status;
    size_t len = strlen(path), mark_len = sizeof(mark) - 1;
    if (len > mark_len && strcmp(path + len - mark_len, mark) == 0 && stat(path, &status) != 0)
        path[len - mark_len] = '\0';
}

const char *gp_main_file(char path[GP_MAIN_FILE_SIZE])
{
    struct stat status;
    search_t search = {.address = getauxval(AT_PHDR), .path = path};
    ssize_t len = readlink(exe, path, GP_MAIN_FILE_SIZE - 1);
    path[len > 0 ? len : 0] = '\0';
    if (stat(exe, &status) == 0)
        search.inode = (uint64_t)status.st_ino;
    gp_maps_each(main_file_visit, &search);
    main_file_strip_deleted(path);
    return search.is_other ? path : exe;
}

void gp_mapped_file(uintptr_t address, char path[GP_MAIN_FILE_SIZE])
{
    search_t search = {.address = address, .path = path};
    path[0] = '\0';
    gp_maps_each(main_file_visit, &search);
    main_file_strip_deleted(path);
}
