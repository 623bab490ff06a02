// SPDX-License-Identifier: MIT
#include "coro/helper_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/page.h"

#ifndef MADV_POPULATE_READ // Linux 5.14, glibc 2.35
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { OWN_MAPS_MAX = 4096 };

// Mappings, as far as there is room: the list is for gp_own_unlock() alone.
static struct {
    _Atomic uintptr_t at;
    _Atomic size_t bytes;
} own_maps[OWN_MAPS_MAX];

static void helper_memory_note(uintptr_t from, uintptr_t to, size_t bytes)
{
    for (size_t i = 0; i < OWN_MAPS_MAX; i++) {
        uintptr_t expected = from;
        if (!atomic_compare_exchange_strong_explicit(&own_maps[i].at, &expected, to, memory_order_relaxed,
                                                     memory_order_relaxed))
            continue;
        atomic_store_explicit(&own_maps[i].bytes, bytes, memory_order_release);
        return;
    }
}

static _Atomic bool own_is_locked; // what is mapped from now on is, if nothing is done

void gp_own_will_be_locked(void)
{
    atomic_store_explicit(&own_is_locked, true, memory_order_relaxed);
}

void gp_own_unlock(void)
{
    int error = errno;
    for (size_t i = 0; i < OWN_MAPS_MAX; i++) {
        size_t bytes = atomic_load_explicit(&own_maps[i].bytes, memory_order_acquire);
        uintptr_t at = atomic_load_explicit(&own_maps[i].at, memory_order_relaxed);
        if (at != 0 && bytes != 0)
            munlock((void *)at, bytes);
    }
    errno = error;
}

// Under mlockall(MCL_FUTURE) what is mapped is locked, and present, unless it cannot be touched. Not unlocked
// elsewhere: a sandbox may know nothing of munlock().
static unsigned char *helper_memory_map_untouched(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (atomic_load_explicit(&own_is_locked, memory_order_relaxed))
        munlock(memory, bytes);
    helper_memory_note(0, (uintptr_t)memory, bytes);
    return memory;
}

void *gp_own_map(size_t bytes)
{
    unsigned char *memory = helper_memory_map_untouched(bytes);
    if (memory == NULL || mprotect(memory, bytes, PROT_READ | PROT_WRITE) == 0)
        return memory;
    gp_own_unmap(memory, bytes);
    return NULL;
}

void *gp_own_map_apart(size_t bytes)
{
    size_t page = gp_page_bytes(), room = gp_page_round_up(bytes), all = room + 2 * page;
    unsigned char *memory = helper_memory_map_untouched(all);
    if (memory == NULL || mprotect(memory + page, room, PROT_READ | PROT_WRITE) == 0)
        return memory != NULL ? memory + page : NULL;
    gp_own_unmap(memory, all);
    return NULL;
}

void gp_own_touch(void *memory, size_t bytes, bool is_written)
{
    int error = errno;
    uintptr_t first = gp_page_round_up((uintptr_t)memory);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(uintptr_t)(gp_page_bytes() - 1);
    if (first < end)
        madvise((void *)first, end - first, is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    errno = error;
}

void gp_own_unmap(void *memory, size_t bytes)
{
    if (memory == NULL)
        return;
    helper_memory_note((uintptr_t)memory, 0, 0);
    munmap(memory, bytes);
}
