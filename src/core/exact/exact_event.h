// SPDX-License-Identifier: MIT
// What nearly all events of exact mode go through, inline. Private to where events come in: exact_hook.c, and hooks of
// language runtimes.
//
// An event reads the clock, marks the shadow stack as busy, charges the time since the event before to the call that
// ran, puts a frame on or takes one off, and ends. The fast way is for an event on the stack of the one before, which
// one recorder counts, soon after it and without a change of the coroutine's account: the time between was on the CPU.
// Whatever else there is goes the slow way, and makes the stack ready.
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

//   sp: of the reporting code
static FAST void begin_event(gp_exact_stack_t *stack, uintptr_t sp)
{
    stack->busy_sp = sp;
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&stack->turn, GP_EXACT_BUSY, memory_order_relaxed);
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

// What the fast way has found out.
typedef struct fast {
    gp_exact_stack_t *stack;
    gp_exact_node_t **node_at, *node; // of the top frame
} fast_t;

static FAST gp_exact_stack_t *ready_stack(gp_thread_t *thread)
{
    return LIKELY(thread != NULL) ? atomic_load_explicit(&thread->exact_ready, memory_order_relaxed) : NULL;
}

// Begin an event at `now` on the thread's ready stack, and charge the time. Returns false where it is not for the fast
// way. An event of a handler that comes before the stack is busy is on the stack as well: it is later than `now`, which
// tells. So what was read of the stack before this call holds.
static FAST bool begin_fast(fast_t *fast, gp_thread_t *thread, gp_exact_stack_t *stack, uintptr_t sp, uint64_t now)
{
    uint64_t turn = atomic_load_explicit(&stack->turn, memory_order_relaxed);
    if (UNLIKELY(turn == GP_EXACT_BUSY))
        return false;
    begin_event(stack, sp);
    uint64_t ticks = now - stack->last_ticks;
    if (UNLIKELY(turn != atomic_load_explicit(&gp_exact_epoch, memory_order_acquire) ||
                 atomic_load_explicit(&thread->current_id, memory_order_relaxed) !=
                     atomic_load_explicit(&stack->coro->id, memory_order_relaxed) ||
                 ticks > gp_exact_gap_ticks)) {
        end_event(stack, GP_EXACT_SLOW);
        return false;
    }
    stack->last_ticks = now;
    *fast = (fast_t){stack, stack->node_at, *stack->node_at};
    gp_exact_add(&fast->node->own_ticks, ticks);
    return true;
}

static FAST void end_fast(const fast_t *fast)
{
    end_event(fast->stack, fast->stack->epoch);
}

// Count a call, now that the frame above the top one has its other members. There is room.
static FAST void push(const fast_t *fast, gp_exact_node_t *node, const gp_exact_site_t *site)
{
    gp_exact_stack_t *stack = fast->stack;
    gp_exact_frame_t *frame = stack->top + 1;
    frame->site = site;
    gp_exact_add(&node->calls, 1);
    fast->node_at[1] = node;
    stack->node_at = fast->node_at + 1;
    __atomic_store_n(&stack->top, frame, __ATOMIC_RELEASE); // the holder of the lock reads along
}

// Is the top frame one that the recorder counts? Others are left the slow way.
static FAST bool is_counted(const fast_t *fast)
{
    return fast->node_at != fast->stack->base;
}

static FAST void pop(const fast_t *fast)
{
    fast->stack->node_at = fast->node_at - 1;
    __atomic_store_n(&fast->stack->top, fast->stack->top - 1, __ATOMIC_RELEASE);
}

// Calls of functions of a language, which have no frame on the native stack, in the common case: where these return
// false nothing was counted, and it is for gp_exact_enter() and gp_exact_leave(). Cost: ~4 ns each, and the clock.
//   object: of the function, see gp_exact_site_t
//   now:    gp_ticks_counter()

static FAST void push_language(const fast_t *fast, gp_exact_node_t *node, const gp_exact_site_t *site)
{
    gp_exact_frame_t *top = fast->stack->top;
    top[1].cfa = top->cfa;
    top[1].physical = top->physical;
    push(fast, node, site);
    end_fast(fast);
}

// A call begins. *begun is set where only gp_exact_enter_begun() is left to be tried.
static FAST bool gp_exact_enter_fast(const void *object, uint64_t now, gp_exact_stack_t **begun)
{
    gp_thread_t *thread = gp_thread_self;
    gp_exact_stack_t *stack = ready_stack(thread);
    fast_t fast;
    if (UNLIKELY(stack == NULL || !begin_fast(&fast, thread, stack, (uintptr_t)__builtin_dwarf_cfa(), now)))
        return false;
    gp_exact_node_t *node = fast.node->last;
    const gp_exact_site_t *site = node->site;
    if (UNLIKELY(site->object != object || stack->top == stack->limit)) {
        *begun = stack;
        return false;
    }
    push_language(&fast, node, site);
    return true;
}

// The same where its caller called another function before.
//   site: the function's, or NULL: not met before
static FAST bool gp_exact_enter_begun(gp_exact_stack_t *stack, const gp_exact_site_t *site)
{
    const fast_t fast = {stack, stack->node_at, *stack->node_at};
    gp_exact_node_t *node = NULL;
    if (LIKELY(site != NULL && stack->top != stack->limit))
        node = gp_exact_find(stack->links->tree, fast.node, site->function);
    if (UNLIKELY(node == NULL)) {
        end_fast(&fast);
        return false;
    }
    node->site = site;
    push_language(&fast, node, site);
    return true;
}

// A call ends.
static FAST bool gp_exact_leave_fast(const void *object, uint64_t now)
{
    gp_thread_t *thread = gp_thread_self;
    gp_exact_stack_t *stack = ready_stack(thread);
    fast_t fast;
    if (UNLIKELY(stack == NULL || !begin_fast(&fast, thread, stack, (uintptr_t)__builtin_dwarf_cfa(), now)))
        return false;
    if (UNLIKELY(stack->top->site->object != object || !is_counted(&fast))) {
        end_fast(&fast);
        return false;
    }
    pop(&fast);
    end_fast(&fast);
    return true;
}
