// SPDX-License-Identifier: MIT
#include "coro/spawn.h"

#include <string.h>

#include "coro/helper_memory.h"
#include "coro/lock.h"
#include "signal/language.h"
#include "signal/spare_stack.h"
#include "signal/thread.h"
#include "unwind/unwind.h"

enum {
    SLOTS = 2 * GP_SPAWN_SITES, // a power of two
    ARENA_WORDS = 1 << 20,      // of frames and locations, 8 MiB of address space; touched as it fills
    WALK_BYTES = 12 << 10,      // bytes of stack for a walk and its callers
};

typedef struct table {             // mapped at the first site
    _Atomic uint32_t slots[SLOTS]; // numbers of sites by hash, 0 = free
    gp_spawn_site_t sites[GP_SPAWN_SITES + 1];
    uintptr_t arena[ARENA_WORDS];
} table_t;

_Atomic bool gp_spawn_wanted;
_Atomic uint64_t gp_spawn_lost;
_Atomic uint32_t gp_spawn_every = 1;

static _Atomic(table_t *) table;
static _Atomic uint32_t count;
static size_t arena_used; // words

typedef struct walk {
    gp_thread_t *thread;
    const gp_park_t *caller;
    uintptr_t hi;
    enum gp_unwind_doubt doubt;
    size_t depth;
    unsigned flags;
    uint32_t tag;                  // of a language's frames
    const gp_language_t *language; // NULL = native frames are wanted
} walk_t;

// The thread walks its own frames: nothing moves meanwhile.
static size_t spawn_walk_language(walk_t *walk)
{
    const gp_language_place_t place = {.pc = walk->caller->pc, .sp = walk->caller->sp, .stack_hi = walk->hi};
    walk->tag = walk->language->generation() + 1; // 0: native frames
    return walk->language->walk(&place, walk->thread->parked_frames, GP_SPAWN_DEPTH, &walk->flags);
}

static void spawn_run_walk(void *argument)
{
    walk_t *walk = argument;
    if (walk->language != NULL && (walk->depth = spawn_walk_language(walk)) > 0)
        return;
    walk->tag = 0;
    walk->flags = 0;
    gp_unwind_regs_t regs = {
        .pc = walk->caller->pc, .sp = walk->caller->sp, .fp = walk->caller->fp, .doubt = walk->doubt};
    walk->depth =
        gp_unwind_walk_parked(&regs, regs.sp, walk->hi, walk->thread->parked_frames, GP_SPAWN_DEPTH, &walk->flags);
}

// Coroutines make others, and their stacks may be small.
static bool spawn_walk_here(walk_t *walk, uintptr_t lo)
{
    if (walk->caller->sp - lo >= WALK_BYTES) {
        spawn_run_walk(walk);
        return true;
    }
    return gp_run_on_spare_stack(walk->thread, spawn_run_walk, walk);
}

static uint64_t spawn_hash_of(const uintptr_t *frames, const walk_t *walk)
{
    size_t depth = walk->depth;
    uint64_t hash = depth + ((uint64_t)walk->tag << 32);
    for (size_t i = 0; i < depth; i++)
        hash = (hash ^ frames[i]) * 0x9e3779b97f4a7c15ull ^ hash >> 29;
    return hash ^ hash >> 32;
}

// The slot with these frames, or the free one in their place.
static _Atomic uint32_t *spawn_find_slot(table_t *in, const uintptr_t *frames, const walk_t *walk)
{
    size_t depth = walk->depth;
    for (uint64_t at = spawn_hash_of(frames, walk);; at++) {
        _Atomic uint32_t *slot = &in->slots[at % SLOTS];
        // Acquire: partner of the release in spawn_add_site(): the site is complete.
        uint32_t number = atomic_load_explicit(slot, memory_order_acquire);
        const gp_spawn_site_t *site = &in->sites[number];
        if (number == 0 || (site->depth == depth && site->tag == walk->tag &&
                            memcmp(site->frames, frames, depth * sizeof(*frames)) == 0))
            return slot;
    }
}

// Caller holds gp_registry_lock.
static uint32_t spawn_add_site(table_t *in, _Atomic uint32_t *slot, const uintptr_t *frames, const walk_t *walk)
{
    size_t words = 2 * walk->depth + 2;
    uint32_t number = atomic_load_explicit(&count, memory_order_relaxed) + 1;
    if (number > GP_SPAWN_SITES || arena_used + words > ARENA_WORDS)
        return 0;
    uintptr_t *copy = &in->arena[arena_used];
    arena_used += words;
    memcpy(copy, frames, walk->depth * sizeof(*frames));
    in->sites[number] = (gp_spawn_site_t){
        .depth = (uint32_t)walk->depth,
        .flags = walk->flags,
        .tag = walk->tag,
        .frames = copy,
        .locs = (gp_loc_t *)(copy + walk->depth),
    };
    // Release: partners of the acquires in spawn_find_slot() and gp_spawn_site_count().
    atomic_store_explicit(slot, number, memory_order_release);
    atomic_store_explicit(&count, number, memory_order_release);
    return number;
}

static uint32_t spawn_add_new(const walk_t *walk)
{
    const uintptr_t *frames = walk->thread->parked_frames;
    uint32_t number = 0;
    gp_lock(&gp_registry_lock);
    table_t *in = atomic_load_explicit(&table, memory_order_relaxed);
    if (in == NULL && (in = gp_own_map(sizeof(*in))) != NULL) {
        // Release: partner of the acquires of `table`.
        atomic_store_explicit(&table, in, memory_order_release);
    }
    if (in != NULL) {
        _Atomic uint32_t *slot = spawn_find_slot(in, frames, walk); // another thread may have been faster
        number = atomic_load_explicit(slot, memory_order_relaxed);
        if (number == 0)
            number = spawn_add_site(in, slot, frames, walk);
    }
    gp_unlock(&gp_registry_lock);
    if (number == 0)
        atomic_fetch_add_explicit(&gp_spawn_lost, 1, memory_order_relaxed);
    return number;
}

static uint32_t spawn_site_of(const walk_t *walk)
{
    // Acquire: partner of the release in spawn_add_new().
    table_t *in = atomic_load_explicit(&table, memory_order_acquire);
    uint32_t number = 0;
    if (in != NULL)
        number = atomic_load_explicit(spawn_find_slot(in, walk->thread->parked_frames, walk), memory_order_relaxed);
    return number != 0 ? number : spawn_add_new(walk);
}

uint32_t gp_spawn_site_of(gp_thread_t *thread, size_t depth, unsigned flags, uint32_t tag)
{
    const walk_t walk = {.thread = thread, .depth = depth, .flags = flags, .tag = tag};
    return depth > 0 ? spawn_site_of(&walk) : 0;
}

static uint32_t spawn_site_at(prof_coro_t *coro, const gp_park_t *caller, const gp_language_t *language)
{
    gp_thread_t *thread = gp_thread_self;
    prof_coro_t *stack = coro->lo != coro->hi ? coro : thread->root;
    uintptr_t lo = atomic_load_explicit(&stack->lo, memory_order_relaxed);
    walk_t walk = {.thread = thread,
                   .caller = caller,
                   .hi = atomic_load_explicit(&stack->hi, memory_order_relaxed),
                   .doubt = stack->keeps_stack ? GP_UNWIND_SURE : GP_UNWIND_DOUBTS,
                   .language = language};
    if (caller->sp < lo || caller->sp >= walk.hi || !spawn_walk_here(&walk, lo) || walk.depth == 0)
        return 0;
    return spawn_site_of(&walk);
}

uint32_t gp_spawn_site_here(prof_coro_t *spawner, const gp_park_t *caller)
{
    bool is_wanted = spawner != NULL && gp_thread_self != NULL && gp_spawn_is_wanted();
    return is_wanted ? spawn_site_at(spawner, caller, NULL) : 0;
}

uint32_t gp_spawn_site_of_span(prof_coro_t *coro, const gp_park_t *caller)
{
    // Acquire: partner of the release where it is registered.
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    return gp_thread_self != NULL ? spawn_site_at(coro, caller, language) : 0;
}

// xorshift32. Source: Marsaglia, Xorshift RNGs.
bool gp_spawn_is_drawn(gp_thread_t *thread)
{
    uint32_t every = atomic_load_explicit(&gp_spawn_every, memory_order_relaxed), x = thread->spawn.random;
    if (thread->spawn.left-- != 0) {
        gp_thread_count(thread, GP_COUNTER_SPAWNS_LEFT_OUT);
        return false;
    }
    x = x != 0 ? x : thread->index * 2654435761u | 1;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    thread->spawn.random = x;
    thread->spawn.left = (uint32_t)((uint64_t)x * (2 * every - 1) >> 32); // on average one less than `every`
    return true;
}

uint32_t gp_spawn_site_count(void)
{
    return atomic_load_explicit(&count, memory_order_acquire);
}

gp_spawn_site_t *gp_spawn_site_at(uint32_t number)
{
    return &atomic_load_explicit(&table, memory_order_acquire)->sites[number];
}
