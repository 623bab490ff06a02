// SPDX-License-Identifier: MIT
// Shadow stacks: which instrumented functions a coroutine is in, since when, and who counts them.
//
// A stack is attached to a coroutine's record and reused with it; only the thread that runs the coroutine changes its
// frames. Arrays (frames, links, the map of functions) are exchanged under the lock of exact mode, whose holder may
// therefore follow them and read frames along: depth and times may then be a moment old, or of different moments. A
// signal handler of the host that interrupts an event finds the stack busy and works on another one (`interrupt`).
#ifndef GP_EXACT_EXACT_STACK_H
#define GP_EXACT_EXACT_STACK_H

#include "exact/exact_site.h"
#include "exact/recorder.h"

typedef struct gp_exact_frame {
    uintptr_t cfa, physical; // where the frame of the function ends, and whose it is; a loose one's: of the frame below
    const gp_exact_site_t *site;
    uint64_t enter_ticks, enter_cpu_ns;
    uint64_t called_ticks, called_cpu_ns; // of that, in functions it called
    gp_exact_record_t *record;            // where the call was counted for `table`
    const gp_exact_table_t *table;
    uint32_t function; // number; 0 in frame 0, which is nobody's
    uint32_t place;    // in the stack's map
    // Frames below it, 0 = none: the nearest of the same function, the nearest with the same caller too, and the
    // nearest of the same function with another caller.
    uint32_t same, same_edge, other_edge;
    bool foreign; // of a signal handler on an alternate stack: its CFA says nothing
} gp_exact_frame_t;

typedef struct gp_exact_link { // a recorder that covers the coroutine
    gp_exact_t *recorder;
    gp_exact_table_t *table; // for the thread that runs it
    uint64_t run;            // of the recorder
    uint32_t base;           // frames from here on began while it covered
} gp_exact_link_t;

typedef struct gp_exact_last { // the topmost frame of a function. Entries come and go like frames: last in, first out
    uint32_t function, frame;  // function 0: no entry
} gp_exact_last_t;

typedef struct gp_exact_stack {
    prof_coro_t *coro;
    uint64_t coro_id;
    uintptr_t lo, hi;    // the stack region, of the thread's where it has none of its own
    gp_thread_t *thread; // for which the links hold
    uint64_t epoch;      // and as of when
    _Atomic bool busy;   // an event is being taken in
    uintptr_t busy_sp;   // stack pointer of who reported it
    struct gp_exact_stack *interrupt;

    gp_exact_frame_t *frames; // [room]; 1..depth are in use
    uint32_t depth, room;
    gp_exact_link_t *links; // [link_room]
    uint32_t link_count, link_room;
    gp_exact_last_t *map; // open addressing, at most half full
    uint32_t map_mask, map_used;

    uint64_t last_ticks, last_cpu_ns; // of the last event
    struct gp_exact_stack *next;      // all there are, append-only
} gp_exact_stack_t;

// Latest first. Under the lock.
extern gp_exact_stack_t *gp_exact_stacks;

// The coroutine's stack, made or begun anew if need be; NULL when memory is short. Takes the lock.
gp_exact_stack_t *gp_exact_stack_of(prof_coro_t *coro, uint64_t id, gp_thread_t *thread);

// The stack that takes over while `stack` is busy, or NULL. Takes the lock.
gp_exact_stack_t *gp_exact_stack_interrupt(gp_exact_stack_t *stack, gp_thread_t *thread);

// Look up who covers the coroutine, now that a recorder started or stopped or another thread runs it. Takes the lock.
void gp_exact_stack_refresh(gp_exact_stack_t *stack, gp_thread_t *thread);

// Room for a frame more. Returns false when memory is short. Takes the lock.
bool gp_exact_stack_grow(gp_exact_stack_t *stack);

// An event was left half-way by a signal handler that jumped away: make the stack consistent.
void gp_exact_stack_repair(gp_exact_stack_t *stack);

// The record of `key` in the table, made if need be. Takes the lock if so.
gp_exact_record_t *gp_exact_stack_record(gp_exact_table_t *table, uint64_t key);

static inline uint32_t gp_exact_map_place(const gp_exact_stack_t *stack, uint32_t function)
{
    uint32_t place = (function * 0x9e3779b1u) >> 7 & stack->map_mask;
    while (stack->map[place].function != 0 && stack->map[place].function != function)
        place = (place + 1) & stack->map_mask;
    return place;
}

// Put the frame `index`, whose function is set, on the map and find its likes below.
static inline void gp_exact_stack_enter(gp_exact_stack_t *stack, uint32_t index)
{
    gp_exact_frame_t *frames = stack->frames, *frame = &frames[index];
    uint32_t place = gp_exact_map_place(stack, frame->function), caller = frames[index - 1].function;
    gp_exact_last_t *last = &stack->map[place];
    frame->place = place;
    frame->same = frame->same_edge = frame->other_edge = 0;
    if (last->function == 0) {
        last->function = frame->function;
        stack->map_used++;
    } else {
        uint32_t at = frame->same = last->frame;
        if (frames[at - 1].function == caller) {
            frame->same_edge = at;
            frame->other_edge = frames[at].other_edge;
        } else {
            frame->other_edge = at;
            while (at != 0 && frames[at - 1].function != caller)
                at = frames[at].other_edge; // skips frames with the same caller
            frame->same_edge = at;
        }
    }
    last->frame = index;
}

// Take the topmost frame off the map.
static inline void gp_exact_stack_leave(gp_exact_stack_t *stack, const gp_exact_frame_t *frame)
{
    gp_exact_last_t *last = &stack->map[frame->place];
    last->frame = frame->same;
    if (frame->same == 0) {
        last->function = 0;
        stack->map_used--;
    }
}

// What a call that ends adds to its record.
typedef struct gp_exact_share {
    uint64_t own_cpu_ns, own_ticks; // in the function itself
    uint64_t cpu_ns, ticks;         // in all
} gp_exact_share_t;

// `called_*`: of that, in functions it called.
static inline gp_exact_share_t gp_exact_frame_share(const gp_exact_frame_t *frame, uint64_t ticks, uint64_t cpu_ns,
                                                    uint64_t called_ticks, uint64_t called_cpu_ns)
{
    gp_exact_share_t share = {0};
    share.ticks = ticks > frame->enter_ticks ? ticks - frame->enter_ticks : 0;
    share.cpu_ns = cpu_ns > frame->enter_cpu_ns ? cpu_ns - frame->enter_cpu_ns : 0;
    share.own_ticks = share.ticks > called_ticks ? share.ticks - called_ticks : 0;
    share.own_cpu_ns = share.cpu_ns > called_cpu_ns ? share.cpu_ns - called_cpu_ns : 0;
    return share;
}

// `base`: frames from here on count for who counts.
static inline void gp_exact_charge(gp_exact_record_t *record, const gp_exact_frame_t *frame, uint32_t base,
                                   const gp_exact_share_t *share)
{
    gp_exact_add(&record->own_cpu_ns, share->own_cpu_ns);
    gp_exact_add(&record->own_ticks, share->own_ticks);
    if (frame->same < base) {
        gp_exact_add(&record->cpu_ns, share->cpu_ns);
        gp_exact_add(&record->ticks, share->ticks);
    } else if (frame->same_edge <= base) { // who called the first one was not seen
        gp_exact_add(&record->edge_cpu_ns, share->cpu_ns);
        gp_exact_add(&record->edge_ticks, share->ticks);
    }
}

// Whom frame `index` was called by, as seen by a link.
static inline uint64_t gp_exact_frame_key(const gp_exact_frame_t *frames, uint32_t index, uint32_t base)
{
    return GP_EXACT_KEY(index > base ? frames[index - 1].function : 0, frames[index].function);
}

#endif
