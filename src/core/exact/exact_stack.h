// SPDX-License-Identifier: MIT
// Shadow stacks: which instrumented functions a coroutine is in, since when, and which recorders count them.
//
// A stack is attached to a coroutine's record and reused with it; only the thread that runs the coroutine changes its
// frames. Arrays (frames, links, their nodes) are exchanged under the lock of exact mode; its holder may
// therefore follow them and read frames along: depth and times may then be a moment old, or of different moments. A
// signal handler of the host that interrupts an event finds the stack busy and works on another one (`interrupt`).
#pragma once

#include "exact/exact_site.h"
#include "exact/recorder.h"

typedef struct gp_exact_frame {
    // The canonical frame address of the function's frame, and the function that the frame is; of a manual_inline
    // call, and of a language's: those of the frame below.
    uintptr_t cfa, physical;
    const gp_exact_site_t *site;
    uint64_t enter_ticks, enter_cpu_ns;
    uint64_t called_ticks, called_cpu_ns; // of that, in functions it called
    bool on_alternate_stack;              // of a signal handler: its CFA says nothing
} gp_exact_frame_t;

typedef struct gp_exact_link { // a recorder that covers the coroutine
    gp_exact_t *recorder;
    gp_exact_tree_t *tree;   // for the thread that runs it
    uint64_t run;            // of the recorder
    uint32_t base;           // frames from here on began while it covered
    uint32_t room;           // of `nodes`: the stack's at least
    gp_exact_node_t **nodes; // [room]: where frames from `base` on are counted; the tree's root at base - 1
} gp_exact_link_t;

typedef struct gp_exact_stack {
    prof_coro_t *coro;
    uint64_t coro_id;
    uintptr_t lo, hi;    // the stack region, of the thread's where it has none of its own
    gp_thread_t *thread; // for which the links hold
    uint64_t epoch;      // and as of when
    _Atomic bool busy;   // an event is being taken in
    uintptr_t busy_sp;   // stack pointer of the reporting code
    struct gp_exact_stack *interrupt;

    gp_exact_frame_t *frames; // [room]; 1..depth are in use
    uint32_t depth, room;
    gp_exact_link_t *links; // [link_room]
    uint32_t link_count, link_room;

    uint64_t last_ticks, last_cpu_ns; // of the last event
    struct gp_exact_stack *next;      // all there are, append-only
} gp_exact_stack_t;

// Latest first. Under the lock.
extern gp_exact_stack_t *gp_exact_stacks;

// The coroutine's stack, made or begun anew if need be; NULL when memory is short. Takes the lock.
gp_exact_stack_t *gp_exact_stack_of(prof_coro_t *coro, uint64_t id, gp_thread_t *thread);

// The stack that takes over while `stack` is busy, or NULL. Takes the lock.
gp_exact_stack_t *gp_exact_stack_interrupt(gp_exact_stack_t *stack, gp_thread_t *thread);

// Look up the recorders that cover the coroutine, now that a recorder started or stopped or another thread runs it.
// Takes the lock.
void gp_exact_stack_refresh(gp_exact_stack_t *stack, gp_thread_t *thread);

// Room for a frame more. Returns false when memory is short. Takes the lock.
bool gp_exact_stack_grow(gp_exact_stack_t *stack);

// Charge the calls in progress that `link` counts with their time until a moment.
//   twins: not to their nodes, but to the twins of those. Caller holds the lock.
void gp_exact_stack_end(const gp_exact_stack_t *stack, const gp_exact_link_t *link, uint64_t ticks, uint64_t cpu_ns,
                        bool twins);

// The node of `function` as called at `parent`, made if need be. Returns `parent` when memory is short: the time is
// the caller's then. Takes the lock if so.
gp_exact_node_t *gp_exact_stack_node(gp_exact_tree_t *tree, gp_exact_node_t *parent, uint32_t function);

// What a call that ends adds to its node, and to its caller's frame.
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

static inline void gp_exact_charge(gp_exact_node_t *node, const gp_exact_share_t *share)
{
    gp_exact_add(&node->own_cpu_ns, share->own_cpu_ns);
    gp_exact_add(&node->own_ticks, share->own_ticks);
}
