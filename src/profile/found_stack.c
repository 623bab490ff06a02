#include "profile/found_stack.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/format.h"
#include "coro/registry.h"
#include "signal/region.h"
#include "signal/ticks.h"

enum { LONG_NS = 1000000, SHARE = 20 }; // looking takes at most 1/20 of the collector's time where it takes long

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

static prof_coro_t *make(uintptr_t sp)
{
    gp_coro_birth_t birth = {.kind = GP_CORO_FOUND};
    FILE *maps = fopen("/proc/thread-self/maps", "re");
    prof_coro_t *coro = maps != NULL && find(maps, sp, &birth) ? gp_coro_new(&birth) : NULL;
    if (maps != NULL)
        fclose(maps);
    return coro;
}

prof_coro_t *gp_found_stack(uintptr_t sp, uint64_t *id)
{
    static uint64_t next_ns; // guarded by the drain lock
    prof_coro_t *coro = gp_region_find(sp, id);
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    if (coro != NULL || now < next_ns)
        return coro;
    coro = make(sp);
    uint64_t took = gp_clock_ns(CLOCK_MONOTONIC) - now;
    if (took > LONG_NS) // there are very many mappings
        next_ns = now + took * SHARE;
    if (coro != NULL)
        *id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    return coro;
}
