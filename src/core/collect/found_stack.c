// SPDX-License-Identifier: MIT
#include "collect/found_stack.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "coro/registry.h"
#include "model/kinds.h"
#include "signal/region.h"
#include "signal/ticks.h"

// Where there are very many mappings, looking takes long: at most 1/SHARE of the time, but for BURST_NS of CPU time at
// once.
enum { BURST_NS = 50000000, SHARE = 20 };

typedef struct mapping { // a line of /proc/self/maps
    unsigned long lo, hi;
    char access[5];
    unsigned long inode;
    bool is_heap;
} mapping_t;

static bool parse(const char *line, mapping_t *mapping)
{
    *mapping = (mapping_t){.is_heap = strstr(line, "[heap]") != NULL};
    return sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &mapping->lo, &mapping->hi, mapping->access, &mapping->inode) ==
           4;
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

// Returns whether the collector has time to look.
static bool may_look(int64_t *credit_ns)
{
    static uint64_t last_ns; // guarded by the drain lock, as is the credit
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    int64_t credit = *credit_ns + (int64_t)((now - last_ns) / SHARE);
    last_ns = now;
    *credit_ns = credit < BURST_NS ? credit : BURST_NS;
    return *credit_ns > 0;
}

prof_coro_t *gp_found_stack(uintptr_t sp, uint64_t *id)
{
    static int64_t credit_ns;
    prof_coro_t *coro = gp_region_find(sp, id);
    if (coro != NULL || !may_look(&credit_ns))
        return coro;
    uint64_t before = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    coro = make(sp);
    credit_ns -= (int64_t)(gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    if (coro != NULL)
        *id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    return coro;
}
