// SPDX-License-Identifier: MIT
#include "coro/main_stack.h"

#include <sys/auxv.h>
#include <sys/resource.h>

#include "base/maps.h"

// However low the limit is as a program begins, the kernel maps nothing so close below the stack by itself, so that
// raising it later has an effect. Source: Linux 6.1, mm/util.c, mmap_base().
enum { LEAST_GAP = 128 << 20 };

typedef struct search {
    uintptr_t inside, below; // an address in it; where the mapping below it ends
    gp_mapping_t mapping;
} search_t;

static bool main_stack_visit(const gp_mapping_t *mapping, void *argument)
{
    search_t *search = argument;
    if (mapping->lo <= search->inside) {
        search->below = search->mapping.hi;
        search->mapping = *mapping;
    }
    return mapping->lo <= search->inside;
}

#ifndef __GLIBC__
extern char **environ;

// Nothing runs above the number of the program's arguments, which stands right below these, as these do below the first
// environment: musl's start code, which has no unwind rows, is known by its place below (unwind/walk.c).
static uintptr_t main_stack_begin(uintptr_t lo, uintptr_t hi)
{
    static uintptr_t begin; // the program may have another environment by now
    const uintptr_t *at = (const uintptr_t *)environ - 2;
    if (begin == 0 && (uintptr_t)at >= lo && (uintptr_t)at < hi)
        for (uintptr_t count = 0; begin == 0 && (uintptr_t)at >= lo; count++, at--)
            begin = *at == count ? (uintptr_t)at : 0;
    return begin != 0 ? begin : hi;
}
#endif

void gp_main_stack(uintptr_t *lo, uintptr_t *hi)
{
    search_t search = {.inside = getauxval(AT_RANDOM)}; // the kernel has put 16 random bytes on it
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    *lo = *hi = 0;
    if (search.inside == 0 || gp_maps_each(main_stack_visit, &search) != 0 || search.mapping.hi <= search.inside)
        return;
    getrlimit(RLIMIT_STACK, &limit);
    uintptr_t most = limit.rlim_cur > LEAST_GAP && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : LEAST_GAP;
    *hi = search.mapping.hi;
#ifndef __GLIBC__
    *hi = main_stack_begin(search.mapping.lo, *hi);
#endif
    *lo = *hi - search.below > most ? *hi - (most & ~(uintptr_t)4095) : search.below;
    if (*lo > search.mapping.lo)
        *lo = search.mapping.lo;
}
