// SPDX-License-Identifier: MIT
// What nearly all events of exact mode go through, inline. Private to where events come in: exact_hook.c, and hooks of
// language runtimes.
//
// An event reads the clock, marks the thread and the shadow stack as busy, charges the time since the event before to
// the call that ran, puts a frame on or takes one off, and ends. The fast way is for an event on the stack of the one
// before, that interrupts no other one, and that one recorder counts, soon after the one before and with the
// coroutine's account as it was then: the time between was on the CPU. Whatever else there is goes the slow way.
//
// The clock comes first: processors finish all that is before a read of the time-stamp counter, so what follows is done
// beside what the program does next. And nothing on the fast way is called, so that no register has to be saved.
#pragma once

#include "exact/exact_stack.h"
#include "signal/slice.h"

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define FAST                inline __attribute__((always_inline))
#define SLOW                __attribute__((noinline, cold))

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

//   previous: busy before.
static FAST void end_event(gp_thread_t *thread, gp_exact_stack_t *stack, gp_exact_stack_t *previous)
{
    atomic_signal_fence(memory_order_seq_cst);
    // Release: partner of the acquire in quiesce(): what was counted is visible.
    atomic_store_explicit(&thread->exact_busy, previous, memory_order_release);
    atomic_store_explicit(&stack->busy, false, memory_order_relaxed);
}

// Was the coroutine on the CPU since the last event?
static FAST bool is_steady(const gp_exact_stack_t *stack, uint64_t now)
{
    return now - stack->last_ticks <= gp_exact_gap_ticks &&
           stack->since == atomic_load_explicit(&stack->coro->since, memory_order_relaxed) &&
           stack->off_ns == atomic_load_explicit(&stack->coro->off_ns, memory_order_relaxed);
}

// The fast way on `stack`, where the thread runs its coroutine, at `now`. Returns false where it is not to be had.
static FAST bool begin(gp_thread_t *thread, gp_exact_stack_t *stack, uintptr_t sp, uint64_t now)
{
    if (UNLIKELY(atomic_load_explicit(&stack->busy, memory_order_relaxed) ||
                 atomic_load_explicit(&thread->exact_busy, memory_order_relaxed) != NULL))
        return false;
    begin_event(thread, stack, sp);
    if (LIKELY(is_fresh(thread, stack) && stack->link_count == 1 && is_steady(stack, now))) {
        uint64_t ticks = now - stack->last_ticks;
        stack->last_ticks = now;
        gp_exact_add(&stack->links->nodes[stack->depth]->own_ticks, ticks);
        return true;
    }
    end_event(thread, stack, NULL);
    return false;
}

// Count a call in the only link there is, now that the frame's other members are set. There is room.
static FAST void push(gp_exact_stack_t *stack, gp_exact_frame_t *frame, gp_exact_node_t *node,
                      const gp_exact_site_t *site)
{
    uint32_t index = stack->depth + 1;
    frame->site = site;
    frame->on_alternate_stack = false;
    gp_exact_add(&node->calls, 1);
    stack->links->nodes[index] = node;
    atomic_signal_fence(memory_order_release); // the holder of the lock reads along
    stack->depth = index;
}

// A link's frames begin where the recorder began to cover the coroutine, or where what it was in then was left.
static FAST void lower_base(gp_exact_link_t *link, uint32_t depth)
{
    if (UNLIKELY(link->base > depth + 1)) {
        link->base = depth + 1;
        link->nodes[depth] = &link->tree->root;
    }
}

static FAST void pop(gp_exact_stack_t *stack)
{
    uint32_t depth = stack->depth - 1;
    lower_base(stack->links, depth);
    stack->depth = depth;
}

typedef const gp_exact_site_t *gp_exact_site_of_t(const void *object);

// The node of a call of `object` at `parent`; NULL = not met there yet.
static FAST gp_exact_node_t *find_call(const gp_exact_stack_t *stack, gp_exact_node_t *parent, const void *object,
                                       gp_exact_site_of_t *site_of)
{
    gp_exact_node_t *node = parent->last;
    if (LIKELY(node->site->object == object))
        return node;
    const gp_exact_site_t *site = site_of(object);
    node = site != NULL ? gp_exact_find(stack->links->tree, parent, site->function) : NULL;
    if (node != NULL)
        node->site = site;
    return node;
}

// A call of a function of a language, which has no frame on the native stack, in the common case. Returns false, and
// counts nothing, in others: gp_exact_enter() and gp_exact_leave() then. Cost: ~5 ns, and the clock.
//   object: of the function, see gp_exact_site_t; site_of: to look up its site, or NULL where it has none yet.
//   now:    gp_ticks()
static FAST bool gp_exact_enter_fast(const void *object, gp_exact_site_of_t *site_of, uint64_t now)
{
    gp_thread_t *thread = gp_thread_self;
    gp_exact_stack_t *stack = LIKELY(thread != NULL) ? thread->exact_stack : NULL;
    if (UNLIKELY(!is_current(thread, stack) || stack->depth + 1 >= stack->room) ||
        UNLIKELY(!begin(thread, stack, (uintptr_t)__builtin_frame_address(0), now)))
        return false;
    gp_exact_frame_t *top = &stack->frames[stack->depth];
    gp_exact_node_t *node = find_call(stack, stack->links->nodes[stack->depth], object, site_of);
    if (LIKELY(node != NULL)) {
        top[1].cfa = top->cfa;
        top[1].physical = top->physical;
        push(stack, &top[1], node, node->site);
    }
    end_event(thread, stack, NULL);
    return node != NULL;
}

static FAST bool gp_exact_leave_fast(const void *object, uint64_t now)
{
    gp_thread_t *thread = gp_thread_self;
    gp_exact_stack_t *stack = LIKELY(thread != NULL) ? thread->exact_stack : NULL;
    if (UNLIKELY(!is_current(thread, stack) || stack->frames[stack->depth].site->object != object) ||
        UNLIKELY(!begin(thread, stack, (uintptr_t)__builtin_frame_address(0), now)))
        return false;
    pop(stack);
    end_event(thread, stack, NULL);
    return true;
}
