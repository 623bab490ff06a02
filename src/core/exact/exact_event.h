// SPDX-License-Identifier: MIT
// What nearly all events of exact mode go through, inline. Private to where events come in: exact_hook.c, and hooks of
// language runtimes.
//
// An event marks the thread and the shadow stack as busy (begin), reads the clocks, puts a frame on or takes one off,
// and ends. The fast way is for an event on the stack of the one before, that interrupts no other one, and that one
// recorder counts; whatever else there is goes the slow way.
#pragma once

#include "exact/exact_stack.h"
#include "signal/slice.h"

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define FAST                inline __attribute__((always_inline))
#define SLOW                __attribute__((noinline, cold))

// When it was taken in, and where. No function that is not inlined gets a pointer to one: it stays in registers.
typedef struct moment {
    gp_thread_t *thread;
    gp_exact_stack_t *stack;
    gp_exact_stack_t *previous; // busy before
    bool on_alternate_stack;
    uint32_t links; // of the stack: known to be one in the common case
    uint64_t ticks, cpu_ns;
} moment_t;

static FAST bool is_current(gp_thread_t *thread, const gp_exact_stack_t *stack)
{
    return stack != NULL && stack->coro == atomic_load_explicit(&thread->current, memory_order_relaxed) &&
           stack->coro_id == atomic_load_explicit(&thread->current_id, memory_order_relaxed) &&
           stack->coro_id == atomic_load_explicit(&stack->coro->id, memory_order_relaxed);
}

static FAST void begin_event(gp_thread_t *thread, gp_exact_stack_t *stack, uintptr_t sp)
{
    stack->busy_sp = sp;
    atomic_store_explicit(&stack->busy, true, memory_order_relaxed);
    // From here on gp_exact_stop() waits for this event, or this event sees the new epoch: see quiesce() in recorder.c.
    atomic_store_explicit(&thread->exact_busy, stack, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static FAST bool is_fresh(gp_thread_t *thread, const gp_exact_stack_t *stack)
{
    return stack->epoch == atomic_load_explicit(&gp_exact_epoch, memory_order_acquire) && stack->thread == thread;
}

static FAST void end(const moment_t *moment)
{
    atomic_signal_fence(memory_order_seq_cst);
    // Release: partner of the acquire in quiesce(): what was counted is visible.
    atomic_store_explicit(&moment->thread->exact_busy, moment->previous, memory_order_release);
    atomic_store_explicit(&moment->stack->busy, false, memory_order_relaxed);
}

// The fast way on `stack`, where the thread runs its coroutine. Returns false where it is not to be had.
static FAST bool begin(moment_t *moment, gp_thread_t *thread, gp_exact_stack_t *stack, uintptr_t sp)
{
    if (UNLIKELY(atomic_load_explicit(&stack->busy, memory_order_relaxed) ||
                 atomic_load_explicit(&thread->exact_busy, memory_order_relaxed) != NULL))
        return false;
    begin_event(thread, stack, sp);
    *moment = (moment_t){.thread = thread, .stack = stack, .links = 1};
    if (LIKELY(is_fresh(thread, stack) && stack->link_count == 1))
        return true;
    end(moment);
    return false;
}

enum { SETTLE_TRIES = 4 };

// Settle the account of the running coroutine: the thread may have been off the CPU. Returns the ticks then. The thread
// may be preempted once more on the way back: that would be taken off later, of what comes, so it is settled again.
// On an alternate stack of the host's it is not known how much is left, and a wait may be walked there.
static SLOW uint64_t settle(gp_thread_t *thread, prof_coro_t *coro, bool on_alternate_stack)
{
    uint64_t now = gp_ticks();
    if (on_alternate_stack || atomic_load_explicit(&thread->busy, memory_order_relaxed))
        return now;
    for (int i = 0; i < SETTLE_TRIES && now > gp_edge_load(&coro->settled) + gp_exact_gap_ticks; i++) {
        gp_slice_settle_now(thread);
        now = gp_ticks();
    }
    return now;
}

static FAST void read_clocks(moment_t *moment)
{
    gp_exact_stack_t *stack = moment->stack;
    uint64_t now = gp_ticks(), settled = atomic_load_explicit(&stack->coro->settled, memory_order_relaxed);
    uint64_t since = settled > stack->last_ticks ? settled : stack->last_ticks;
    if (UNLIKELY(now > since + gp_exact_gap_ticks))
        now = settle(moment->thread, stack->coro, moment->on_alternate_stack);
    uint64_t cpu_ns =
        LIKELY(!moment->on_alternate_stack) ? gp_edge_cpu_ns(stack->coro, now) : gp_edge_settled_cpu_ns(stack->coro);
    // It may go back when an account is settled, and below zero where a sample settles that of a young coroutine after
    // `now` was read: the time is then taken off what comes.
    moment->cpu_ns = (int64_t)(cpu_ns - stack->last_cpu_ns) > 0 ? cpu_ns : stack->last_cpu_ns;
    moment->ticks = now;
    stack->last_ticks = now;
    stack->last_cpu_ns = moment->cpu_ns;
}

static FAST void add_call(const moment_t *moment, uint32_t index, uint32_t function)
{
    gp_exact_stack_t *stack = moment->stack;
    for (uint32_t i = 0; i < moment->links; i++) {
        gp_exact_link_t *link = &stack->links[i];
        if (UNLIKELY(link->base > index)) { // all that it had was left
            link->base = index;
            link->nodes[index - 1] = &link->tree->root;
        }
        gp_exact_node_t *parent = link->nodes[index - 1], *node = gp_exact_find(link->tree, parent, function);
        if (UNLIKELY(node == NULL))
            node = gp_exact_stack_node(link->tree, parent, function);
        if (LIKELY(node != parent))
            gp_exact_add(&node->calls, 1);
        link->nodes[index] = node;
    }
}

// There is room.
static FAST void push(const moment_t *moment, const gp_exact_site_t *site, uintptr_t cfa, uintptr_t physical)
{
    gp_exact_stack_t *stack = moment->stack;
    uint32_t index = stack->depth + 1;
    gp_exact_frame_t *frame = &stack->frames[index];
    frame->cfa = cfa;
    frame->physical = physical;
    frame->site = site;
    frame->on_alternate_stack = moment->on_alternate_stack;
    frame->enter_ticks = moment->ticks;
    frame->enter_cpu_ns = moment->cpu_ns;
    frame->called_ticks = frame->called_cpu_ns = 0;
    add_call(moment, index, site->function);
    atomic_signal_fence(memory_order_release); // the holder of the lock reads along
    stack->depth = index;
}

static FAST void pop(const moment_t *moment)
{
    gp_exact_stack_t *stack = moment->stack;
    uint32_t index = stack->depth;
    gp_exact_frame_t *frame = &stack->frames[index], *below = frame - 1;
    gp_exact_share_t share =
        gp_exact_frame_share(frame, moment->ticks, moment->cpu_ns, frame->called_ticks, frame->called_cpu_ns);
    for (uint32_t i = 0; i < moment->links; i++)
        if (LIKELY(index >= stack->links[i].base))
            gp_exact_charge(stack->links[i].nodes[index], &share);
    below->called_ticks += share.ticks;
    below->called_cpu_ns += share.cpu_ns;
    stack->depth = index - 1;
}

// A call of a function of a language, which has no frame on the native stack, in the common case. Returns false, and
// does nothing, in others: gp_exact_enter() and gp_exact_leave() then. Cost: ~20 ns.
static FAST bool gp_exact_enter_fast(const gp_exact_site_t *site)
{
    gp_thread_t *thread = gp_thread_self;
    gp_exact_stack_t *stack = LIKELY(thread != NULL) ? thread->exact_stack : NULL;
    moment_t moment;
    if (UNLIKELY(!is_current(thread, stack) || stack->depth + 1 >= stack->room) ||
        UNLIKELY(!begin(&moment, thread, stack, (uintptr_t)__builtin_frame_address(0))))
        return false;
    read_clocks(&moment);
    push(&moment, site, stack->frames[stack->depth].cfa, stack->frames[stack->depth].physical);
    end(&moment);
    return true;
}

//   object: of the function, see gp_exact_site_t.
static FAST bool gp_exact_leave_fast(const void *object)
{
    gp_thread_t *thread = gp_thread_self;
    gp_exact_stack_t *stack = LIKELY(thread != NULL) ? thread->exact_stack : NULL;
    moment_t moment;
    if (UNLIKELY(!is_current(thread, stack) || stack->depth == 0 ||
                 stack->frames[stack->depth].site->object != object) ||
        UNLIKELY(!begin(&moment, thread, stack, (uintptr_t)__builtin_frame_address(0))))
        return false;
    read_clocks(&moment);
    pop(&moment);
    end(&moment);
    return true;
}
