// SPDX-License-Identifier: MIT
// Where instrumented functions report: __cyg_profile_func_enter() and prof_enter(), and their counterparts.
//
// An event finds the running coroutine, by the thread's hint and the stack pointer; charges the time since the last
// event to the call that ran; takes dead frames off the shadow stack; then puts a frame on and counts the call, or
// takes it off. CPU time is what the coroutine's account says (slice.c) plus the time since it was last settled; after
// a gap, in which the thread may have slept, the account is settled first.
#include "greenprof/exact.h"

#include "collect/collector.h"
#include "coro/threads.h"
#include "exact/exact_event.h"
#include "exact/exact_time.h"
#include "signal/host_stack.h"
#include "signal/region.h"
#include "signal/slice.h"

int prof_exact_active;

typedef struct event {
    uintptr_t function;
    uintptr_t sp;  // stack pointer where the hook returns to
    uintptr_t fp;  // frame pointer there
    bool tail;     // an exit that the function jumped to: its frame is gone
    bool language; // of a function of a language: the running coroutine is known
    uint64_t now;  // gp_ticks_counter(); 0: to be read
} event_t;

// On the slow way: where it was taken in.
typedef struct moment {
    gp_thread_t *thread;
    gp_exact_stack_t *stack;
    gp_exact_stack_t *previous; // busy before
    bool on_alternate_stack;
    bool is_steady; // see gp_exact_charge_time()
} moment_t;

static __thread bool attaching __attribute__((tls_model("initial-exec")));

// The host's malloc, which attaching calls, may be instrumented itself.
static SLOW gp_thread_t *exact_hook_attach(void)
{
    if (attaching)
        return NULL;
    attaching = true;
    gp_thread_t *thread = gp_thread_attach();
    attaching = false;
    return thread;
}

// --- Which stack?

// Is `sp` on the stack of the coroutine, which runs?
//   thread: NULL: not known yet
static FAST bool exact_hook_holds(const gp_thread_t *thread, const gp_exact_stack_t *stack, uintptr_t sp)
{
    return sp >= stack->lo && sp < stack->hi &&
           !(UNLIKELY(atomic_load_explicit(&gp_thread_nested, memory_order_relaxed)) &&
             (thread == NULL || stack->coro == thread->root));
}

static bool exact_hook_is_current(gp_thread_t *thread, const gp_exact_stack_t *stack)
{
    return stack != NULL && stack->coro == atomic_load_explicit(&thread->current, memory_order_relaxed) &&
           stack->coro_id == atomic_load_explicit(&thread->current_id, memory_order_relaxed) &&
           stack->coro_id == atomic_load_explicit(&stack->coro->id, memory_order_relaxed);
}

static bool exact_hook_is_on_alternate_stack(void)
{
    stack_t alternate;
    return gp_host_stack_change(NULL, &alternate) == 0 && (alternate.ss_flags & SS_ONSTACK);
}

// A stack pointer on no known stack: a coroutine that no hook announced. The collector makes a record of it.
static void exact_hook_note_unknown(gp_thread_t *thread, uintptr_t sp)
{
    if (atomic_exchange_explicit(&thread->unknown_sp, sp, memory_order_relaxed) != 0)
        return;
    gp_thread_notify(thread);
    gp_collector_kick();
}

static SLOW gp_exact_stack_t *exact_hook_look_up_stack(gp_thread_t *thread, uintptr_t sp, bool *on_alternate_stack)
{
    uint64_t id, current_id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    prof_coro_t *coro = gp_thread_coro_at(thread, sp, &id, on_alternate_stack);
    bool alternate = exact_hook_is_on_alternate_stack(); // whatever region that is in
    if (*on_alternate_stack && !alternate)
        exact_hook_note_unknown(thread, sp);
    *on_alternate_stack |= alternate;
    // The handler goes on where it began, whatever a sample taken meanwhile made of its stack pointer.
    gp_exact_stack_t *last = atomic_load_explicit(&thread->exact.stack, memory_order_relaxed);
    if (alternate && last != NULL && (gp_exact_is_busy(last) || last->top->on_alternate_stack))
        return last;
    if (*on_alternate_stack) {
        // A sample may have taken the alternate stack for a coroutine of its own.
        bool usable = current != NULL && !gp_region_holds(current, current_id, sp) &&
                      atomic_load_explicit(&current->id, memory_order_acquire) == current_id;
        coro = usable ? current : thread->root;
        id = usable ? current_id : thread->root_id;
    } else if (coro != current && !atomic_load_explicit(&thread->busy, memory_order_relaxed)) {
        gp_slice_settle_now(thread); // a switch that no hook saw: corrects the hint
    }
    return gp_exact_stack_of(coro, id, thread);
}

// The stack is busy: its event was interrupted by a handler of the host, or left by one.
static SLOW gp_exact_stack_t *exact_hook_free_stack(gp_exact_stack_t *stack, uintptr_t sp, gp_thread_t *thread,
                                                    bool on_alternate_stack, gp_exact_stack_t **previous)
{
    while (stack != NULL && gp_exact_is_busy(stack)) {
        uintptr_t busy_sp = atomic_load_explicit(&stack->turn, memory_order_relaxed);
        if (!on_alternate_stack && sp >= busy_sp) { // the interrupted event is gone
            *previous = NULL;
            return stack;
        }
        stack = gp_exact_stack_interrupt(stack, thread);
    }
    return stack;
}

static gp_exact_stack_t *exact_hook_current_stack(gp_thread_t *thread)
{
    uint64_t id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    bool usable = coro != NULL && atomic_load_explicit(&coro->id, memory_order_acquire) == id;
    return gp_exact_stack_of(usable ? coro : thread->root, usable ? id : thread->root_id, thread);
}

// The stack with an event in progress, interrupted by the present one. NULL: none.
static gp_exact_stack_t *exact_hook_interrupted_stack(gp_thread_t *thread)
{
    gp_exact_stack_t *stack = atomic_load_explicit(&thread->exact.busy, memory_order_relaxed);
    if (stack == NULL || !gp_exact_is_busy(stack))
        stack = atomic_load_explicit(&thread->exact.stack, memory_order_relaxed);
    return stack != NULL && gp_exact_is_busy(stack) ? stack : NULL;
}

// All events. Returns false where no recorder counts, or memory is short.
static FAST bool exact_hook_begin_any(moment_t *moment, const event_t *event)
{
    uintptr_t sp = event->sp;
    gp_thread_t *thread = gp_thread_self;
    if (thread == NULL && (thread = exact_hook_attach()) == NULL)
        return false;
    gp_exact_stack_t *stack = atomic_load_explicit(&thread->exact.stack, memory_order_relaxed);
    gp_exact_stack_t *previous = exact_hook_interrupted_stack(thread);
    bool on_alternate_stack = false;
    if (event->language)
        stack = exact_hook_current_stack(thread);
    else if (!exact_hook_is_current(thread, stack) || !exact_hook_holds(thread, stack, sp))
        stack = exact_hook_look_up_stack(thread, sp, &on_alternate_stack);
    atomic_store_explicit(&thread->exact.stack, stack, memory_order_relaxed);
    if (stack != NULL && gp_exact_is_busy(stack))
        stack = exact_hook_free_stack(stack, sp, thread, on_alternate_stack, &previous);
    if (stack == NULL) {
        gp_exact_lose();
        return false;
    }
    atomic_store_explicit(&thread->exact.busy, stack, memory_order_relaxed);
    begin_event(stack, sp);
    if (stack->epoch != atomic_load_explicit(&gp_exact_epoch, memory_order_acquire) || stack->thread != thread)
        gp_exact_stack_refresh(stack, thread);
    *moment = (moment_t){thread, stack, previous, on_alternate_stack, false};
    return true;
}

static void exact_hook_end(const moment_t *moment)
{
    gp_exact_stack_t *stack = moment->stack;
    bool is_fast = moment->is_steady && stack->link_count == 1 && gp_ticks_scale.counter;
    end_event(stack, is_fast ? stack->epoch : GP_EXACT_SLOW);
    atomic_store_explicit(&moment->thread->exact.busy, moment->previous, memory_order_release);
}

// --- Frames

static FAST uintptr_t exact_hook_frame_end(const gp_exact_site_t *site, uintptr_t sp, uintptr_t fp)
{
    switch (site->cfa) {
    case GP_EXACT_CFA_SP:
        return sp + (uintptr_t)(intptr_t)site->offset;
    case GP_EXACT_CFA_FP:
        return fp + (uintptr_t)(intptr_t)site->offset;
    default:
        return *(const uintptr_t *)(fp + (uintptr_t)(intptr_t)site->offset);
    }
}

// The function that the frame is.
static uintptr_t exact_hook_physical_of(const gp_exact_frame_t *frame)
{
    while (frame->site->manual_inline)
        frame--;
    return frame->site->physical;
}

// Is the top frame dead: can its function not have called one whose frame ends at `cfa`?
static FAST bool exact_hook_is_gone(const gp_exact_frame_t *top, const gp_exact_site_t *site, uintptr_t cfa)
{
    return top->cfa < cfa || (top->cfa == cfa && (site->first || exact_hook_physical_of(top) != site->physical));
}

// Was the same entered before? Inlined functions and prof_enter() share one frame: what comes in by the same place
// again has left.
static bool exact_hook_is_entered(const gp_exact_stack_t *stack, const gp_exact_site_t *site, uintptr_t cfa)
{
    if (site->first || site->manual_inline)
        return false;
    for (const gp_exact_frame_t *frame = stack->top; frame->cfa == cfa; frame--)
        if (frame->site == site)
            return true;
    return false;
}

static void exact_hook_pop_any(gp_exact_stack_t *stack)
{
    stack->top->on_alternate_stack = false; // as in all above the top: the fast way does not set it
    gp_exact_stack_aim(stack, gp_exact_depth(stack) - 1);
}

// A handler's frames on an alternate stack are compared among themselves; any event elsewhere says that it is over.
static bool exact_hook_is_over(const gp_exact_frame_t *top, const moment_t *moment, const gp_exact_site_t *site,
                               uintptr_t cfa)
{
    return top->on_alternate_stack != moment->on_alternate_stack ? !moment->on_alternate_stack
                                                                 : exact_hook_is_gone(top, site, cfa);
}

static void exact_hook_pop_dead(const moment_t *moment, const gp_exact_site_t *site, uintptr_t cfa)
{
    gp_exact_stack_t *stack = moment->stack;
    while (stack->top > stack->frames && exact_hook_is_over(stack->top, moment, site, cfa))
        exact_hook_pop_any(stack);
    while (exact_hook_is_entered(stack, site, cfa))
        exact_hook_pop_any(stack);
}

static void exact_hook_add_call(gp_exact_stack_t *stack, gp_exact_link_t *link, uint32_t index, uint32_t function)
{
    gp_exact_node_t *parent = *gp_exact_node_at(stack, link, index - 1);
    gp_exact_node_t *node = gp_exact_find(link->tree, parent, function);
    if (node == NULL)
        node = gp_exact_stack_node(link->tree, parent, function);
    if (node != parent)
        gp_exact_add(&node->calls, 1);
    *gp_exact_node_at(stack, link, index) = node;
}

static void exact_hook_enter(const event_t *event, const moment_t *moment, const gp_exact_site_t *site)
{
    gp_exact_stack_t *stack = moment->stack;
    uintptr_t cfa = exact_hook_frame_end(site, event->sp, event->fp);
    exact_hook_pop_dead(moment, site, cfa);
    if (stack->top == stack->limit && !gp_exact_stack_grow(stack)) {
        gp_exact_lose();
        return;
    }
    uint32_t index = gp_exact_depth(stack) + 1;
    const gp_exact_frame_t *top = stack->top;
    stack->frames[index] = (gp_exact_frame_t){.cfa = site->manual_inline ? top->cfa : cfa,
                                              .site = site,
                                              .object = site->object,
                                              .on_alternate_stack = moment->on_alternate_stack};
    for (uint32_t i = 0; i < stack->link_count; i++)
        exact_hook_add_call(stack, &stack->links[i], index, site->function);
    gp_exact_frame_check(&stack->frames[index]);
    gp_exact_stack_aim(stack, index);
}

static void exact_hook_count_enter(event_t event, const gp_exact_site_t *site)
{
    moment_t moment;
    if (!exact_hook_begin_any(&moment, &event))
        return;
    if (moment.stack->link_count > 0) {
        moment.is_steady = gp_exact_charge_time(moment.stack, moment.thread, moment.on_alternate_stack, event.now);
        exact_hook_enter(&event, &moment, site);
    }
    exact_hook_end(&moment);
}

static __attribute__((noinline)) void exact_hook_take_enter_slowly(uintptr_t function, uintptr_t pc, uintptr_t sp,
                                                                   uintptr_t fp, bool manual, uint64_t now)
{
    const gp_exact_site_t *site = gp_exact_site_find(function, pc);
    if (site == NULL) {
        site = gp_exact_site_add(function, pc, manual);
        now = 0; // that took a while
    }
    if (site != NULL)
        exact_hook_count_enter((event_t){.function = function, .sp = sp, .fp = fp, .now = now}, site);
    else
        gp_exact_lose();
}

// Put a frame on and count the call, where the stack is begun.
static FAST void exact_hook_push_native(const fast_t *fast, gp_exact_node_t *node, const gp_exact_site_t *site,
                                        uintptr_t cfa, uintptr_t function)
{
    fast->top[1].cfa = cfa;
    fast->top[1].object = (const void *)function;
    push(fast, node, site);
    end_fast(fast);
}

// Is the frame's end told by one register? Such sites are kept in nodes, where the next call is looked for first.
static bool exact_hook_is_plain(const gp_exact_site_t *site)
{
    return site->cfa != GP_EXACT_CFA_REALIGN && !site->manual_inline;
}

static bool exact_hook_enter_begun(const fast_t *fast, const gp_exact_site_t *site, uintptr_t sp, uintptr_t fp)
{
    const gp_exact_stack_t *stack = fast->stack;
    const gp_exact_frame_t *top = fast->top;
    uintptr_t cfa = exact_hook_frame_end(site, sp, fp);
    if (top == stack->limit || exact_hook_is_gone(top, site, cfa) || exact_hook_is_entered(stack, site, cfa))
        return false;
    gp_exact_node_t *node = gp_exact_find(stack->links->tree, fast->node, site->function);
    if (node == NULL)
        return false;
    if (exact_hook_is_plain(site))
        node->site = site;
    exact_hook_push_native(fast, node, site, site->manual_inline ? top->cfa : cfa, site->address);
    return true;
}

// The stack is begun and the time charged; the call is none that the caller made last.
static __attribute__((noinline)) void exact_hook_take_enter_begun(uintptr_t function, uintptr_t pc, uintptr_t sp,
                                                                  uintptr_t fp, bool manual, gp_exact_stack_t *stack)
{
    const fast_t fast = {stack, stack->top, stack->node, stack->next, stack->epoch};
    const gp_exact_site_t *site = gp_exact_site_find(function, pc);
    if (LIKELY(site != NULL && exact_hook_enter_begun(&fast, site, sp, fp)))
        return;
    end_fast(&fast);
    exact_hook_take_enter_slowly(function, pc, sp, fp, manual, 0);
}

// The call, where it is the caller's last one, or the one after; else NULL.
static FAST gp_exact_node_t *exact_hook_find_called(const fast_t *fast, uintptr_t function, uintptr_t pc)
{
    gp_exact_node_t *node = fast->next;
    if (LIKELY(gp_exact_site_is(node->site, function, pc)))
        return node;
    node = node->next;
    return gp_exact_site_is(node->site, function, pc) ? fast->node->last = node : NULL;
}

// All calls of functions are the last thing that is done, with the parameters in the registers in which they are.
static FAST void exact_hook_take_enter(uintptr_t function, uintptr_t pc, uintptr_t sp, uintptr_t fp, bool manual)
{
    const arrival_t at = arrive();
    gp_exact_stack_t *stack = at.stack;
    fast_t fast;
    if (UNLIKELY(!exact_hook_holds(at.thread, stack, sp) || !begin_fast(&fast, &at, false))) {
        exact_hook_take_enter_slowly(function, pc, sp, fp, manual, at.now);
        return;
    }
    gp_exact_node_t *node = exact_hook_find_called(&fast, function, pc);
    if (UNLIKELY(node == NULL || fast.top == stack->limit)) {
        exact_hook_take_enter_begun(function, pc, sp, fp, manual, stack);
        return;
    }
    const gp_exact_site_t *site = node->site;
    uintptr_t cfa = (site->cfa == GP_EXACT_CFA_SP ? sp : fp) + (uintptr_t)(intptr_t)site->offset;
    if (UNLIKELY(fast.top->cfa <= cfa)) // another call in the same frame, or the top frame is gone
        exact_hook_take_enter_begun(function, pc, sp, fp, manual, stack);
    else
        exact_hook_push_native(&fast, node, site, cfa, function);
}

// The frame that an exit is about, or 0: it was entered before calls were counted.
static uint32_t exact_hook_find_frame(const gp_exact_stack_t *stack, uintptr_t function)
{
    for (uint32_t i = gp_exact_depth(stack); i > 0; i--)
        if (stack->frames[i].site->address == function)
            return i;
    return 0;
}

static void exact_hook_leave(const event_t *event, const moment_t *moment)
{
    gp_exact_stack_t *stack = moment->stack;
    while (stack->top > stack->frames) {
        const gp_exact_frame_t *top = stack->top;
        if (top->on_alternate_stack != moment->on_alternate_stack ? moment->on_alternate_stack : top->cfa > event->sp)
            break;
        exact_hook_pop_any(stack);
    }
    if (event->tail) // the frame ended at the stack pointer: it went with those
        return;
    if (moment->on_alternate_stack && !stack->top->on_alternate_stack)
        return;
    uint32_t index = exact_hook_find_frame(stack, event->function);
    while (index != 0 && gp_exact_depth(stack) >= index)
        exact_hook_pop_any(stack);
}

static void exact_hook_count_exit(event_t event)
{
    moment_t moment;
    if (!exact_hook_begin_any(&moment, &event))
        return;
    if (moment.stack->link_count > 0) {
        moment.is_steady = gp_exact_charge_time(moment.stack, moment.thread, moment.on_alternate_stack, event.now);
        exact_hook_leave(&event, &moment);
    }
    exact_hook_end(&moment);
}

static __attribute__((noinline)) void exact_hook_take_exit_slowly(uintptr_t function, uintptr_t sp, bool tail,
                                                                  uint64_t now)
{
    exact_hook_count_exit((event_t){.function = function, .sp = sp, .tail = tail, .now = now});
}

static FAST bool exact_hook_leave_fast(uintptr_t function, uintptr_t sp, bool tail, const arrival_t *at)
{
    fast_t fast;
    if (UNLIKELY(!exact_hook_holds(at->thread, at->stack, sp)))
        return false;
    const gp_exact_frame_t *top = at->stack->top;
    // After a jump the frame is gone, with all frames of the same end.
    bool is_last = tail ? top->cfa == sp && top[-1].cfa > sp : top->cfa > sp;
    if (UNLIKELY(top->object != (const void *)function || !is_last || !begin_fast(&fast, at, true)))
        return false;
    pop(&fast);
    end_fast(&fast);
    return true;
}

static FAST void exact_hook_take_exit(uintptr_t function, uintptr_t sp, bool tail)
{
    const arrival_t at = arrive();
    if (UNLIKELY(!exact_hook_leave_fast(function, sp, tail, &at)))
        exact_hook_take_exit_slowly(function, sp, tail, at.now);
}

static event_t exact_hook_event_at(const gp_exact_site_t *site, const void *frame, uint64_t now)
{
    return (event_t){.function = site->address, .sp = (uintptr_t)frame, .language = true, .now = now};
}

void gp_exact_enter(const gp_exact_site_t *site, uint64_t now)
{
    exact_hook_count_enter(exact_hook_event_at(site, __builtin_frame_address(0), now), site);
}

void gp_exact_leave(const gp_exact_site_t *site, uint64_t now)
{
    exact_hook_count_exit(exact_hook_event_at(site, __builtin_frame_address(0), now));
}

// In the hook that was called itself: its frame tells where the caller's ends.
#define CALLER_PC ((uintptr_t)__builtin_return_address(0))
#define CALLER_SP ((uintptr_t)__builtin_dwarf_cfa())
#define CALLER_FP (*(const uintptr_t *)__builtin_frame_address(0))

PROF_API void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)call_site;
    if (LIKELY(__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0))
        return;
    exact_hook_take_enter((uintptr_t)function, CALLER_PC, CALLER_SP, CALLER_FP, false);
}

PROF_API void __cyg_profile_func_exit(void *function, void *call_site)
{
    if (LIKELY(__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0))
        return;
    // An exit that the function jumped to returns to where the function would have returned.
    exact_hook_take_exit((uintptr_t)function, CALLER_SP, __builtin_return_address(0) == call_site);
}

PROF_API void prof_enter_hook(void *function)
{
    exact_hook_take_enter((uintptr_t)function, CALLER_PC, CALLER_SP, CALLER_FP, true);
}

PROF_API void prof_exit_hook(void *function)
{
    exact_hook_take_exit((uintptr_t)function, CALLER_SP, false);
}
