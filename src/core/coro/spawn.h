// SPDX-License-Identifier: MIT
// Where coroutines are created: a table of the creators' distinct stacks.
//
// Model: while a capture is being written, the stack of each creation is walked and looked up in the table by its
// program counters, or by the frame words of its language; the new record keeps the number. The collector turns the
// counters of new sites into locations, once. Nothing is ever removed: the table is bounded instead, and what does not
// fit is counted.
#pragma once

#include <stdbool.h>

#include "model/kinds.h"
#include "signal/coro_record.h"

enum {
    GP_SPAWN_DEPTH = 128,     // frames kept of a site: of a deeper stack, its leaf and its root end
    GP_SPAWN_SITES = 1 << 14, // distinct ones
};

typedef struct gp_spawn_site {
    uint32_t depth, flags;   // frames, enum gp_unwind_flag
    uint32_t tag;            // of a language's frames: with another one, the same words may mean something else
    const uintptr_t *frames; // [depth], innermost first, as gp_unwind_walk_parked() gives them
    gp_loc_t *locs;          // room for depth + 2; the collector's
    uint32_t loc_depth;      // the collector's: how many of them, 0 = not yet located
    uint32_t loc_flags;      // enum gp_stack_flag
} gp_spawn_site_t;

// Are they wanted? Set while a capture is written.
extern _Atomic bool gp_spawn_wanted;

// Sites for which there was no room, by creations.
extern _Atomic uint64_t gp_spawn_lost;

struct gp_thread;
bool gp_spawn_is_drawn(struct gp_thread *thread);

// A creation in so many is looked at, as a budget asks for it; 1 = each.
extern _Atomic uint32_t gp_spawn_every;

// Is the calling thread's next creation to be looked at? If not, that is counted (GP_COUNTER_SPAWNS_LEFT_OUT). Which
// ones are is drawn, as programs create in rounds.
static inline bool gp_spawn_is_due(struct gp_thread *thread)
{
    bool draws = atomic_load_explicit(&gp_spawn_every, memory_order_relaxed) > 1;
    return __builtin_expect(!draws, 1) || gp_spawn_is_drawn(thread);
}

// The number of the site that `caller` is at, on the calling thread, which runs `spawner`. 0: not wanted,
// it cannot be walked, or there is no room. Takes gp_registry_lock where the site is a new one. Signals: not
// safe. Cost: ~0.1 us at depth 10, ~0.3 us at depth 50.
uint32_t gp_spawn_site_here(prof_coro_t *spawner, const gp_park_t *caller);

// The same of a span, whether or not a capture is written: the frames of the language, where the thread runs one.
uint32_t gp_spawn_site_of_span(prof_coro_t *coro, const gp_park_t *caller);

// The same of a stack that a language has walked.
//   depth, flags: what gp_language_t.walk() has left in thread->parked_frames, at most GP_SPAWN_DEPTH of them.
uint32_t gp_spawn_site_of(struct gp_thread *thread, size_t depth, unsigned flags, uint32_t tag);

// Is walking worth while?
static inline bool gp_spawn_is_wanted(void)
{
    return atomic_load_explicit(&gp_spawn_wanted, memory_order_relaxed) &&
           __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED);
}

// How many sites there are: numbers are 1..count. Acquire.
uint32_t gp_spawn_site_count(void);
gp_spawn_site_t *gp_spawn_site_at(uint32_t number);

// Where the function that this is used in goes on once it has returned.
static inline __attribute__((always_inline)) gp_park_t gp_spawn_caller(void)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    return (gp_park_t){.pc = (uintptr_t)__builtin_return_address(0), .sp = GP_ARCH_CALLER_SP(), .fp = frame[0]};
}
