// SPDX-License-Identifier: MIT
#include "symbol/live_image.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 16 };

static _Atomic uint32_t processes[PROCESSES]; // 0 = none

void gp_live_image_process(uint32_t pid)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        uint32_t was = 0;
        if (atomic_compare_exchange_strong_explicit(&processes[i], &was, pid, memory_order_relaxed,
                                                    memory_order_relaxed) ||
            was == pid)
            return;
    }
}

static bool live_image_open_if_same(const gp_elf_module_t *module, gp_elf_t *elf, const char *path)
{
    uint8_t build_id[GP_BUILD_ID_MAX];
    if (gp_elf_open(elf, path) < 0)
        return false;
    if (gp_elf_build_id(elf, build_id) == module->build_id_len &&
        memcmp(build_id, module->build_id, module->build_id_len) == 0)
        return true;
    gp_elf_close(elf);
    return false;
}

// LO-HI rwxp OFFSET MAJOR:MINOR INODE PATH
static bool live_image_is_mapping_of(const char *line, const char *path)
{
    static const char mark[] = " (deleted)";
    const char *at = strchr(line, '/');
    size_t len = strlen(path);
    if (at == NULL || strncmp(at, path, len) != 0)
        return false;
    at += len;
    return *at == '\n' || (strncmp(at, mark, sizeof(mark) - 1) == 0 && at[sizeof(mark) - 1] == '\n');
}

static bool live_image_open_mapping(const gp_elf_module_t *module, uint32_t pid, gp_elf_t *elf,
                                    char path[GP_DEBUG_PATH_SIZE])
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, GP_DEBUG_PATH_SIZE, "/proc/%" PRIu32 "/maps", pid);
    FILE *maps = fopen(path, "re");
    while (maps != NULL && !found && getline(&line, &room, maps) > 0) {
        int len = (int)strcspn(line, " ");
        if (!live_image_is_mapping_of(line, module->path))
            continue;
        snprintf(path, GP_DEBUG_PATH_SIZE, "/proc/%" PRIu32 "/map_files/%.*s", pid, len, line);
        found = live_image_open_if_same(module, elf, path);
        break; // all of them are one file
    }
    if (maps != NULL)
        fclose(maps);
    free(line);
    return found;
}

bool gp_live_image_open(const gp_elf_module_t *module, gp_elf_t *elf, char path[GP_DEBUG_PATH_SIZE])
{
    for (unsigned i = 0; i < PROCESSES && module->build_id_len > 0; i++) {
        uint32_t pid = atomic_load_explicit(&processes[i], memory_order_relaxed);
        if (pid == 0)
            break;
        snprintf(path, GP_DEBUG_PATH_SIZE, "/proc/%" PRIu32 "/exe", pid);
        if (live_image_open_if_same(module, elf, path) || live_image_open_mapping(module, pid, elf, path))
            return true;
    }
    return false;
}
