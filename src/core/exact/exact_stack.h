// SPDX-License-Identifier: MIT
// Shadow stacks: which instrumented functions a coroutine is in, since when, and which recorders count them.
//
// A stack is attached to a coroutine's record and reused with it; only the thread that runs the coroutine changes its
// frames. Arrays (frames, links, their nodes) are exchanged under the lock of exact mode; its holder may
// therefore follow them and read frames along: depth and times may then be a moment old, or of different moments. A
// signal handler of the host amid an event finds the stack busy and works on another one (`interrupt`).
//
// gp_thread_t.exact_ready is the stack of the coroutine that runs, set by an event; switches and settlements reset it.
//
// A frame's node is a child of that of the frame below. Without memory for a child, or room in the tree, the node is
// another, and the frame has an object of nothing: only an event on the slow way ends it.
#pragma once

#include "exact/exact_site.h"
#include "exact/recorder.h"

typedef struct gp_exact_frame {
    // The canonical frame address of the function's frame; of a manual_inline call, and of a language's: that of the
    // frame below.
    uintptr_t cfa;
    const gp_exact_site_t *site;
    gp_exact_node_t *node;   // where the first link counts it, from `base` on; the tree's root below that
    const void *object;      // see gp_exact_site_t; of none where the first link does not count it, or not there
    bool on_alternate_stack; // of a signal handler: its CFA says nothing. False above the top frame
} gp_exact_frame_t;

typedef struct gp_exact_link { // a recorder that covers the coroutine
    gp_exact_t *recorder;
    gp_exact_tree_t *tree;   // for the thread that runs it
    uint64_t run;            // of the recorder
    uint32_t base;           // frames from here on began while it covered; depth + 1 at most
    uint32_t room;           // of `nodes`: the stack's at least
    gp_exact_node_t **nodes; // [room]: where frames from `base` on are counted; the tree's root at base - 1. The first
                             // link's are in the frames, see gp_exact_node_at()
} gp_exact_link_t;

#define GP_EXACT_SLOW UINT64_MAX // events go the slow way

typedef struct gp_exact_stack {
    // The fast way's fields, one cache line.
    // GP_EXACT_SLOW; `epoch`: events may go the fast way, see exact_event.h; or an address, the stack pointer of the
    // reporting code: an event is being taken in.
    _Atomic uint64_t turn;
    uint64_t last_ticks; // of the last event
    prof_coro_t *coro;
    // Frames, 1 and up are in use, 0 is of no function. gp_exact_stack_aim() sets these.
    gp_exact_frame_t *top, *limit; // limit: there is no room above
    gp_exact_node_t *node, *next;  // of `top`; and of the call that is expected there. Counts go to these

    uintptr_t lo, hi; // the stack region, of the thread's where it has none of its own
    uint64_t coro_id;
    uint64_t lag_ns;     // what the coroutine's CPU time was behind the clock at the last event
    gp_thread_t *thread; // for which the links hold
    uint64_t epoch;      // and as of when

    gp_exact_frame_t *frames; // [room]
    gp_exact_link_t *links;   // [link_room]
    uint32_t room, link_count, link_room;

    struct gp_exact_stack *interrupt;
    struct gp_exact_stack *older; // all there are, append-only
} gp_exact_stack_t;

// How many frames there are.
static inline uint32_t gp_exact_depth(const gp_exact_stack_t *stack)
{
    return (uint32_t)(__atomic_load_n(&stack->top, __ATOMIC_ACQUIRE) - stack->frames);
}

// An address, and no epoch?
static inline bool gp_exact_turn_is_busy(uint64_t turn)
{
    return turn < GP_EXACT_EPOCH_FIRST;
}

static inline bool gp_exact_is_busy(gp_exact_stack_t *stack)
{
    // Acquire: partner of the release in end_event().
    return gp_exact_turn_is_busy(atomic_load_explicit(&stack->turn, memory_order_acquire));
}

// Where the link has the node of a frame.
static inline gp_exact_node_t **gp_exact_node_at(const gp_exact_stack_t *stack, const gp_exact_link_t *link,
                                                 uint32_t index)
{
    return link == stack->links ? &stack->frames[index].node : &link->nodes[index];
}

// Is the frame's node of another path? See above. There is a frame below.
static inline void gp_exact_frame_check(gp_exact_frame_t *frame)
{
    if (frame->node->parent != frame[-1].node)
        frame->object = gp_exact_no_site.object;
}

// Make `depth` the number of frames. A link's frames begin where the recorder began to cover the coroutine, or where
// what it was in then was left.
static inline void gp_exact_stack_aim(gp_exact_stack_t *stack, uint32_t depth)
{
    for (uint32_t i = 0; i < stack->link_count; i++) {
        gp_exact_link_t *link = &stack->links[i];
        if (link->base > depth + 1) {
            link->base = depth + 1;
            *gp_exact_node_at(stack, link, depth) = &link->tree->root;
        }
    }
    stack->limit = stack->frames + stack->room - 1;
    stack->node = stack->frames[depth].node;
    stack->next = stack->link_count > 0 ? stack->node->last : NULL;
    __atomic_store_n(&stack->top, stack->frames + depth, __ATOMIC_RELEASE);
}

extern gp_exact_stack_t gp_exact_no_stack; // of no coroutine; its region is empty, and it is never ready

// The calling thread's latest `exact_ready`, two loads away from any code; gp_exact_no_stack before.
extern __thread gp_exact_stack_t *gp_exact_hint __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Latest first. Under the lock.
extern gp_exact_stack_t *gp_exact_stacks;

// The coroutine's stack, made or begun anew if need be; NULL when memory is short. Takes the lock.
gp_exact_stack_t *gp_exact_stack_of(prof_coro_t *coro, uint64_t id, gp_thread_t *thread);

// The stack that takes over while `stack` is busy, or NULL. Takes the lock.
gp_exact_stack_t *gp_exact_stack_interrupt(gp_exact_stack_t *stack, gp_thread_t *thread);

// Look up the recorders of the coroutine, after a recorder started or stopped or another thread runs it. Takes the
// lock.
void gp_exact_stack_refresh(gp_exact_stack_t *stack, gp_thread_t *thread);

// Room for a frame more. Returns false when memory is short. Takes the lock.
bool gp_exact_stack_grow(gp_exact_stack_t *stack);

// The node of `function` as called at `parent`, made if need be. Returns `parent` when memory is short: the time is
// the caller's then. Takes the lock if so.
gp_exact_node_t *gp_exact_stack_node(gp_exact_tree_t *tree, gp_exact_node_t *parent, uint32_t function);

// Time passed since an event.
typedef struct gp_exact_span {
    uint64_t ticks;
    uint64_t off_ns; // of that, not on the CPU; may be a little below zero
} gp_exact_span_t;

// The coroutine's CPU time at its last event.
static inline uint64_t gp_exact_stack_cpu_ns(const gp_exact_stack_t *stack)
{
    return gp_ticks_to_ns(stack->last_ticks) - stack->lag_ns;
}

// The time since the last event, until a moment at which the coroutine had `cpu_ns` of CPU time. That may go back when
// an account is settled: the time is then taken off what comes.
static inline gp_exact_span_t gp_exact_stack_span(const gp_exact_stack_t *stack, uint64_t ticks, uint64_t cpu_ns)
{
    uint64_t from = stack->last_ticks, to = ticks > from ? ticks : from;
    int64_t cpu = (int64_t)(cpu_ns - gp_exact_stack_cpu_ns(stack));
    return (gp_exact_span_t){to - from, gp_ticks_to_ns(to) - gp_ticks_to_ns(from) - (uint64_t)(cpu > 0 ? cpu : 0)};
}

static inline void gp_exact_charge(gp_exact_node_t *node, const gp_exact_span_t *span)
{
    gp_exact_add(&node->own_ticks, span->ticks);
    gp_exact_add(&node->off_ns, span->off_ns);
}
