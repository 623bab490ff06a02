// SPDX-License-Identifier: MIT
// The fast way of nearly all events of exact mode, inline. Private to where events come in: exact_hook.c, and hooks of
// language runtimes.
//
// An event reads the clock, marks the shadow stack as busy, charges the time since the event before to the call that
// ran, puts a frame on or takes one off, and ends. The fast way is for an event on the stack of the one before, which
// one recorder counts, soon after it and without a change of the coroutine's account: the time between was on the CPU.
// Whatever else there is goes the slow way, and makes the stack ready.
//
// The time between two reads of the clock is that of the longest chain of loads, each waiting for the one before: a
// read of the time-stamp counter ends only after all loads before it. So the way to the stack, of two loads, is gone
// before the clock is read, beside what is left of the event before; what was found is looked at again, which nothing
// waits for. And nothing on the fast way is called, so that no register has to be saved.
#pragma once

#include "base/word.h"
#include "exact/exact_stack.h"
#include "signal/slice.h"

enum { GP_EXACT_BESIDE = 4 }; // calls that are looked at before the tree is asked

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define FAST                inline __attribute__((always_inline))
#define SLOW                __attribute__((noinline, cold))

//   sp: of the reporting code
static FAST void begin_event(gp_exact_stack_t *stack, uintptr_t sp)
{
    atomic_store_explicit(&stack->turn, sp, memory_order_relaxed);
    // From here on gp_exact_stop() waits for this event, or this event sees the new epoch: see quiesce() in recorder.c.
    atomic_signal_fence(memory_order_seq_cst);
}

//   turn: what to leave to the next one.
static FAST void end_event(gp_exact_stack_t *stack, uint64_t turn)
{
    atomic_signal_fence(memory_order_seq_cst);
    // Release: partner of the acquire in gp_exact_is_busy(): what was counted is visible.
    atomic_store_explicit(&stack->turn, turn, memory_order_release);
}

// Findings of the fast way.
typedef struct fast {
    gp_exact_stack_t *stack;
    gp_exact_frame_t *top;
    gp_exact_node_t *node; // of `top`
    gp_exact_node_t *next; // the call that is expected there
    uint64_t turn;         // to be left to the next event
} fast_t;

// An event as it comes in: where it will be counted, if that is so still, and when it came.
typedef struct arrival {
    gp_thread_t *thread;     // NULL: not known yet
    gp_exact_stack_t *stack; // gp_exact_hint before the clock was read
    uint64_t now;            // gp_ticks_counter()
} arrival_t;

// A handler's event that comes meanwhile is told by begin_fast(): only the pointer is from before the clock.
static FAST arrival_t arrive(void)
{
    gp_thread_t *thread = gp_thread_self;
    gp_exact_stack_t *stack = gp_exact_hint;
    __asm__ volatile("" : "+r"(thread), "+r"(stack)); // not later
    return (arrival_t){thread, stack, gp_ticks_counter()};
}

// Is it the coroutine's still? The coroutine may have been destroyed.
static FAST bool is_alive(gp_thread_t *thread, const gp_exact_stack_t *stack)
{
    return gp_word_is(&stack->coro->id, atomic_load_explicit(&thread->current_id, memory_order_relaxed));
}

static FAST void begin_event_here(gp_exact_stack_t *stack)
{
#ifdef GP_ARCH_STORE_SP
    GP_ARCH_STORE_SP(&stack->turn);
#else
    begin_event(stack, (uintptr_t)__builtin_frame_address(0));
#endif
}

// Begin an event on the stack and charge the time. Returns false where it is not for the fast way. An event of a
// handler that comes before the stack is busy is on the stack as well: it is later than `now`, which tells. So what was
// read of the stack before this call holds.
//   is_own: the reporting code is on the coroutine's stack and ends a call begun there: whether the coroutine was
//           destroyed meanwhile does not matter
static FAST bool begin_fast(fast_t *fast, const arrival_t *at, bool is_own)
{
    gp_exact_stack_t *stack = at->stack;
    // A switch, or a sample, may have come before the clock was read.
    if (UNLIKELY(at->thread == NULL || !gp_word_is_pointer(&at->thread->exact_ready, stack)))
        return false;
    uint64_t turn = atomic_load_explicit(&stack->turn, memory_order_relaxed);
    if (UNLIKELY(gp_exact_turn_is_busy(turn))) // a busy stack stays busy
        return false;
    begin_event_here(stack);
    uint64_t ticks = at->now - stack->last_ticks;
    if (UNLIKELY(!gp_word_is(&gp_exact_epoch, turn) || ticks > gp_exact_gap_ticks ||
                 (!is_own && !is_alive(at->thread, stack)))) {
        end_event(stack, GP_EXACT_SLOW);
        return false;
    }
    stack->last_ticks = at->now;
    *fast = (fast_t){stack, stack->top, stack->node, stack->next, turn};
    gp_exact_add(&fast->node->own_ticks, ticks);
    return true;
}

static FAST void end_fast(const fast_t *fast)
{
    end_event(fast->stack, fast->turn);
}

// Count a call, once the new frame above the top has its other members. There is room.
static FAST void push(const fast_t *fast, gp_exact_node_t *node, const gp_exact_site_t *site)
{
    gp_exact_frame_t *frame = fast->top + 1;
    frame->site = site;
    frame->node = node;
    gp_exact_add(&node->calls, 1);
    fast->stack->node = node;
    fast->stack->next = node->last;
    __atomic_store_n(&fast->stack->top, frame, __ATOMIC_RELEASE); // the holder of the lock reads along
}

static FAST void pop(const fast_t *fast)
{
    fast->stack->next = fast->node; // the caller's last call; found without another load
    fast->stack->node = fast->top[-1].node;
    __atomic_store_n(&fast->stack->top, fast->top - 1, __ATOMIC_RELEASE);
}

// Calls of functions of a language, which have no frame on the native stack, in the common case: where these return
// false nothing was counted, and it is for gp_exact_enter() and gp_exact_leave(). Cost: ~4 ns each, and the clock.
//   object: of the function, see gp_exact_site_t
//   at:     arrive()

static FAST void push_language(const fast_t *fast, gp_exact_node_t *node, const void *object)
{
    fast->top[1].cfa = fast->top->cfa;
    fast->top[1].object = object;
    push(fast, node, node->site);
    end_fast(fast);
}

// The call of `object`, where it is the caller's last one, or the one after; else NULL.
static FAST gp_exact_node_t *find_in_turn(const fast_t *fast, const void *object)
{
    gp_exact_node_t *node = fast->next;
    if (LIKELY(node->site->object == object))
        return node;
    node = node->next;
    return node->site->object == object ? fast->node->last = node : NULL;
}

// A call begins. *begun is set where only gp_exact_enter_begun() is left to be tried.
static FAST bool gp_exact_enter_fast(const void *object, const arrival_t *at, gp_exact_stack_t **begun)
{
    fast_t fast;
    if (UNLIKELY(!begin_fast(&fast, at, false)))
        return false;
    gp_exact_node_t *node = find_in_turn(&fast, object);
    if (UNLIKELY(node == NULL || fast.top == at->stack->limit)) {
        *begun = at->stack;
        return false;
    }
    push_language(&fast, node, object);
    return true;
}

// Another call of `object` by the same caller, or NULL: not among the few looked at.
static FAST gp_exact_node_t *find_beside(gp_exact_node_t *parent, const void *object)
{
    gp_exact_node_t *node = parent->last->next;
    for (int i = 1; i < GP_EXACT_BESIDE; i++) {
        node = node->next;
        if (node->site->object == object)
            return parent->last = node;
    }
    return NULL;
}

// The same by the function's site; NULL: it is not known there.
static FAST gp_exact_node_t *find_language(const gp_exact_stack_t *stack, gp_exact_node_t *parent,
                                           const gp_exact_site_t *site)
{
    gp_exact_node_t *node = site != NULL ? gp_exact_find(stack->links->tree, parent, site->function) : NULL;
    if (node != NULL)
        node->site = site;
    return node;
}

// The same where its caller called another function before.
//   site_of: the site of the function that is `object`, or NULL: it was not met before
static FAST bool gp_exact_enter_begun(gp_exact_stack_t *stack, const void *object,
                                      const gp_exact_site_t *(*site_of)(const void *object))
{
    const fast_t fast = {stack, stack->top, stack->node, stack->next, stack->epoch};
    gp_exact_node_t *node = NULL;
    if (LIKELY(fast.top != stack->limit)) {
        node = find_beside(fast.node, object);
        if (node == NULL)
            node = find_language(stack, fast.node, site_of(object));
    }
    if (UNLIKELY(node == NULL)) {
        end_fast(&fast);
        return false;
    }
    push_language(&fast, node, object);
    return true;
}

// A call ends.
static FAST bool gp_exact_leave_fast(const void *object, const arrival_t *at)
{
    fast_t fast;
    if (UNLIKELY(!begin_fast(&fast, at, false)))
        return false;
    bool is_last = LIKELY(fast.top->object == object);
    if (is_last)
        pop(&fast);
    end_fast(&fast);
    return is_last;
}
