// SPDX-License-Identifier: MIT
#include "signal/region.h"

#include <stdbool.h>

#include "model/kinds.h"

typedef gp_region_link_t bucket_t;

_Atomic(gp_coro_chunk_t *) gp_coro_chunks[GP_CORO_CHUNKS];

enum { LINE_LOG2 = 4 };
_Static_assert(sizeof(bucket_t) << LINE_LOG2 == 64, "a cache line");

static _Alignas(64) bucket_t buckets[1u << GP_REGION_BUCKETS_LOG2];
static _Atomic uint64_t classes; // bit k: a region of class k has been linked
_Atomic uint64_t gp_region_version;

static prof_coro_t *region_coro_of(uint32_t link)
{
    return gp_coro_numbered(link >> 1);
}

static gp_region_link_t *region_next_of(uint32_t link)
{
    return &region_coro_of(link)->links[link & 1];
}

static unsigned region_class_of(uintptr_t lo, uintptr_t hi)
{
    uint64_t size = hi - lo;
    unsigned k = size > 1 ? 64u - (unsigned)__builtin_clzll(size - 1) : 0;
    return k < GP_REGION_MIN_CLASS ? GP_REGION_MIN_CLASS : k;
}

// Neighbours are in one cache line, in an order of its own: few coroutines take few pages of the table, and pools with
// gaps between their stacks use all of it.
static bucket_t *region_bucket_of(unsigned k, uintptr_t block)
{
    uint64_t hash = ((block >> LINE_LOG2) * 64 + k) * 0x9e3779b97f4a7c15ull;
    uint64_t line = hash >> (64 - GP_REGION_BUCKETS_LOG2 + LINE_LOG2), place = block ^ hash >> 32;
    return &buckets[line << LINE_LOG2 | (place & ((1u << LINE_LOG2) - 1))];
}

// The younger of two is right where stacks were reused; but a region that was only found, a whole mapping perhaps,
// never hides an announced one.
static bool region_outranks(const prof_coro_t *coro, uint64_t id, const prof_coro_t *best, uint64_t best_id)
{
    if (best != NULL && (coro->kind == GP_CORO_FOUND) != (best->kind == GP_CORO_FOUND))
        return id != 0 && best->kind == GP_CORO_FOUND;
    return id > best_id;
}

static prof_coro_t *region_find_in_bucket(bucket_t *bucket, uintptr_t address, prof_coro_t *best, uint64_t *best_id)
{
    // Acquire: partner of the release in region_link_in().
    uint32_t link = atomic_load_explicit(bucket, memory_order_acquire);
    for (int steps = 0; link != 0 && steps < GP_REGION_CHAIN_MAX; steps++) {
        prof_coro_t *coro = region_coro_of(link);
        uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire);
        if (region_outranks(coro, id, best, *best_id) && gp_region_holds(coro, id, address)) {
            best = coro;
            *best_id = id;
        }
        link = atomic_load_explicit(region_next_of(link), memory_order_acquire);
    }
    return best;
}

prof_coro_t *gp_region_find(uintptr_t address, uint64_t *id)
{
    for (int tries = 0;; tries++) {
        prof_coro_t *best = NULL;
        *id = 0;
        // Acquire: partner of the releases in region_begin_change() and region_end_change().
        uint64_t before = atomic_load_explicit(&gp_region_version, memory_order_acquire);
        uint64_t mask = atomic_load_explicit(&classes, memory_order_relaxed);
        for (; mask != 0; mask &= mask - 1) {
            unsigned k = (unsigned)__builtin_ctzll(mask);
            best = region_find_in_bucket(region_bucket_of(k, address >> k), address, best, id);
        }
        // A find is right whatever happened meanwhile; only a miss may be an accident.
        if (best != NULL || tries == GP_REGION_TRIES)
            return best;
        atomic_thread_fence(memory_order_acquire);
        if (!(before & 1) && atomic_load_explicit(&gp_region_version, memory_order_relaxed) == before)
            return NULL;
    }
}

// Its only writer holds the registry's lock: no locked instruction is needed.
static void region_count_change(void)
{
    uint64_t version = atomic_load_explicit(&gp_region_version, memory_order_relaxed);
    atomic_store_explicit(&gp_region_version, version + 1, memory_order_release);
}

static void region_begin_change(void)
{
    region_count_change();
    atomic_thread_fence(memory_order_release);
}

static void region_end_change(void)
{
    region_count_change();
}

void gp_region_renew(prof_coro_t *coro, uint64_t id)
{
    region_begin_change();
    // Release: partner of the acquires of `id` by handlers.
    atomic_store_explicit(&coro->id, id, memory_order_release);
    region_end_change();
}

static void region_link_in(uint32_t link, bucket_t *bucket)
{
    atomic_store_explicit(region_next_of(link), atomic_load_explicit(bucket, memory_order_relaxed),
                          memory_order_relaxed);
    // Release: partner of the acquire in region_find_in_bucket(): the record is complete before it can be found.
    atomic_store_explicit(bucket, link, memory_order_release);
}

// No-op where it is not linked.
static void region_unlink_from(uint32_t link, bucket_t *bucket)
{
    gp_region_link_t *place = bucket;
    for (uint32_t at; (at = atomic_load_explicit(place, memory_order_relaxed)) != 0; place = region_next_of(at)) {
        if (at == link) {
            // The link keeps its own way on: a reader that stands on it goes on along the chain.
            atomic_store_explicit(place, atomic_load_explicit(region_next_of(link), memory_order_relaxed),
                                  memory_order_release);
            return;
        }
    }
}

// The one or two links of a record, each with its bucket.
static void region_each_link(prof_coro_t *coro, unsigned k, void (*change)(uint32_t link, bucket_t *bucket))
{
    uintptr_t lo = coro->lo, last = coro->hi - 1;
    change(coro->number << 1, region_bucket_of(k, lo >> k));
    if (lo >> k != last >> k)
        change(coro->number << 1 | 1, region_bucket_of(k, last >> k));
}

void gp_region_insert(prof_coro_t *coro)
{
    unsigned k = region_class_of(coro->lo, coro->hi);
    region_begin_change();
    atomic_fetch_or_explicit(&classes, 1ull << k, memory_order_relaxed);
    region_each_link(coro, k, region_link_in);
    region_end_change();
}

void gp_region_remove(prof_coro_t *coro)
{
    region_begin_change();
    region_each_link(coro, region_class_of(coro->lo, coro->hi), region_unlink_from);
    region_end_change();
}

prof_coro_t *gp_region_overlap(uintptr_t lo, uintptr_t hi)
{
    unsigned k = region_class_of(lo, hi);
    for (uintptr_t block = lo >> k; block <= (hi - 1) >> k; block++) {
        uint32_t link = atomic_load_explicit(region_bucket_of(k, block), memory_order_relaxed);
        for (; link != 0; link = atomic_load_explicit(region_next_of(link), memory_order_relaxed)) {
            prof_coro_t *coro = region_coro_of(link);
            if (coro->id != 0 && coro->lo < hi && lo < coro->hi)
                return coro;
        }
    }
    return NULL;
}
