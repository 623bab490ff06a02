#include "profile/found_stack.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/format.h"
#include "coro/registry.h"
#include "signal/region.h"

typedef struct mapping { // a line of /proc/self/maps
    unsigned long lo, hi;
    char access[5];
    unsigned long inode;
    bool is_heap;
} mapping_t;

static bool parse(const char *line, mapping_t *mapping)
{
    *mapping = (mapping_t){.is_heap = strstr(line, "[heap]") != NULL};
    return sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &mapping->lo, &mapping->hi, mapping->access, &mapping->inode) == 4;
}

// `image_end`: where the last mapping of a file, and what adjoins it, ends: behind it is .bss.
static uint32_t kind_of(const mapping_t *mapping, const mapping_t *below, uintptr_t image_end)
{
    bool guarded = below->hi == mapping->lo && strncmp(below->access, "---", 3) == 0;
    bool is_image = mapping->inode != 0 || mapping->lo == image_end;
    return (guarded ? (uint32_t)GP_REGION_GUARDED : 0) | (mapping->is_heap ? (uint32_t)GP_REGION_HEAP : 0) |
           (is_image && !guarded && !mapping->is_heap ? (uint32_t)GP_REGION_FILE : 0);
}

static bool find(FILE *maps, uintptr_t sp, gp_coro_birth_t *birth)
{
    mapping_t below = {0}, mapping;
    uintptr_t image_end = 0;
    char line[512];
    bool is_start = true;
    while (fgets(line, sizeof(line), maps) != NULL) {
        bool is_new = is_start;
        is_start = strchr(line, '\n') != NULL; // else the rest of a long path comes next
        if (!is_new || !parse(line, &mapping))
            continue;
        if (sp >= mapping.lo && sp < mapping.hi) {
            birth->lo = mapping.lo;
            birth->hi = mapping.hi;
            birth->region_kind = kind_of(&mapping, &below, image_end);
            return true;
        }
        if (mapping.inode != 0)
            image_end = mapping.hi;
        below = mapping;
    }
    return false;
}

void gp_found_stack(uintptr_t sp)
{
    gp_coro_birth_t birth = {.kind = GP_CORO_FOUND};
    uint64_t id;
    FILE *maps = fopen("/proc/thread-self/maps", "re");
    if (maps == NULL)
        return;
    if (find(maps, sp, &birth) && gp_region_find(sp, &id) == NULL)
        gp_coro_new(&birth);
    fclose(maps);
}
