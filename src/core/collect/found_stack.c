// SPDX-License-Identifier: MIT
#include "collect/found_stack.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/maps.h"
#include "base/memory.h"
#include "coro/registry.h"
#include "model/kinds.h"
#include "not_known.h"
#include "signal/ledger_edges.h"
#include "signal/region.h"
#include "signal/ticks.h"

// Where there are very many mappings, looking takes long: at most 1/SHARE of the time, but for BURST_NS of CPU time at
// once.
enum { BURST_NS = 50000000, SHARE = 20 };

enum {
    LOOKS_A_CALL = 64,
    IDLE_LOOKS = 4, // in a row, before a stack that is not mapped is taken to be gone
};

typedef struct found {
    prof_coro_t *coro;
    uint64_t id;
    uint64_t edge; // when it ran last, as far as it is known
    unsigned idle; // looks since then
} found_t;

static found_t *known; // guarded by the drain lock
static size_t known_count, known_room, next_look;

// `image_end`: where the last mapping of a file, and what adjoins it, ends: behind it is .bss.
static uint32_t found_stack_kind_of(const gp_mapping_t *mapping, const gp_mapping_t *below, uintptr_t image_end)
{
    bool guarded = below->hi == mapping->lo && below->protection == PROT_NONE;
    bool is_image = mapping->inode != 0 || mapping->lo == image_end;
    return (guarded ? (uint32_t)GP_REGION_GUARDED : 0) | (mapping->is_heap ? (uint32_t)GP_REGION_HEAP : 0) |
           (is_image && !guarded && !mapping->is_heap ? (uint32_t)GP_REGION_FILE : 0);
}

typedef struct search {
    uintptr_t sp, image_end;
    uintptr_t free; // what may be used below, while nothing else is mapped there
    gp_mapping_t below;
    gp_coro_birth_t birth;
    bool found;
} search_t;

static bool found_stack_visit(const gp_mapping_t *mapping, void *argument)
{
    search_t *search = argument;
    search->found = search->sp >= mapping->lo && search->sp < mapping->hi;
    if (search->found) {
        search->birth.lo = mapping->lo;
        search->birth.hi = mapping->hi;
        search->birth.region_kind = found_stack_kind_of(mapping, &search->below, search->image_end);
        search->free = search->below.hi;
    }
    if (mapping->inode != 0)
        search->image_end = mapping->hi;
    search->below = *mapping;
    return !search->found;
}

// Find a known stack that has grown to the mapping: the main thread's, after its limit was raised, or another stack
// allowed to grow by the kernel. Returns NULL where there is none.
static prof_coro_t *found_stack_grow(gp_thread_t *thread, const search_t *search, uint64_t *id)
{
    const gp_coro_birth_t *now = &search->birth;
    if (thread->root->hi == now->hi) {
        uintptr_t more = now->hi - now->lo, room = now->lo - search->free; // so that not each page of it is news
        *id = thread->root_id;
        gp_coro_grow(thread->root, *id, now->lo - (more < room ? more : room));
        return thread->root;
    }
    prof_coro_t *coro = gp_region_find(now->hi - 1, id);
    if (coro == NULL || coro->kind != GP_CORO_FOUND || coro->hi != now->hi)
        return NULL;
    gp_coro_grow(coro, *id, now->lo);
    return coro;
}

// The runtime is not known, or not in this form.
static void found_stack_tell(void)
{
    static gp_not_known_t fact;
    gp_not_known_tell(&fact, "stacks that no hook announced: of their coroutines no names, switches and waits");
}

// No coroutine is made where there is no memory to keep it in mind.
static prof_coro_t *found_stack_make(gp_thread_t *thread, uintptr_t sp, uint64_t *id)
{
    search_t search = {.sp = sp, .birth = {.kind = GP_CORO_FOUND}};
    gp_maps_each(found_stack_visit, &search);
    if (!search.found)
        return NULL;
    prof_coro_t *coro = found_stack_grow(thread, &search, id);
    if (coro != NULL || gp_grow(&known, &known_room, known_count, sizeof(*known)) != 0)
        return coro;
    coro = gp_coro_new(&search.birth);
    if (coro == NULL)
        return NULL;
    *id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    found_stack_tell();
    known[known_count++] = (found_t){.coro = coro, .id = *id};
    return coro;
}

// Returns whether the collector has time to look.
static bool found_stack_may_look(int64_t *credit_ns)
{
    static uint64_t last_ns; // guarded by the drain lock, as is the credit
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC);
    int64_t credit = *credit_ns + (int64_t)((now - last_ns) / SHARE);
    last_ns = now;
    *credit_ns = credit < BURST_NS ? credit : BURST_NS;
    return *credit_ns > 0;
}

prof_coro_t *gp_found_stack(gp_thread_t *thread, uintptr_t sp, uint64_t *id)
{
    static int64_t credit_ns;
    bool is_own = gp_region_holds(thread->root, thread->root_id, sp); // by now
    prof_coro_t *coro = is_own ? thread->root : gp_region_find(sp, id);
    *id = is_own ? thread->root_id : *id;
    if (coro != NULL || !found_stack_may_look(&credit_ns))
        return coro;
    uint64_t before = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    coro = found_stack_make(thread, sp, id);
    credit_ns -= (int64_t)(gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - before);
    return coro;
}

// Is all of it mapped? The call does nothing else (msync(2), MS_ASYNC).
static bool found_stack_is_mapped(uintptr_t lo, uintptr_t hi)
{
    int saved = errno;
    bool mapped = msync((void *)lo, hi - lo, MS_ASYNC) == 0 || errno != ENOMEM;
    errno = saved;
    return mapped;
}

// Returns whether it is to be kept in mind.
static bool found_stack_look(found_t *found)
{
    prof_coro_t *coro = found->coro;
    if (atomic_load_explicit(&coro->id, memory_order_acquire) != found->id)
        return false; // another coroutine's by now
    uint64_t edge = gp_ledger_edge_load(&coro->since) + gp_ledger_edge_load(&coro->settled);
    found->idle = edge == found->edge ? found->idle + 1 : 0;
    found->edge = edge;
    if (found->idle < IDLE_LOOKS || found_stack_is_mapped(coro->lo, coro->hi))
        return true;
    gp_coro_retire(coro);
    return false;
}

void gp_found_stacks_look(void)
{
    for (size_t i = 0; i < LOOKS_A_CALL && i < known_count; i++) {
        next_look = next_look < known_count ? next_look : 0;
        if (found_stack_look(&known[next_look]))
            next_look++;
        else
            known[next_look] = known[--known_count];
    }
}
