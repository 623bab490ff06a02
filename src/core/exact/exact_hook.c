// SPDX-License-Identifier: MIT
// Where instrumented functions report: __cyg_profile_func_enter() and prof_enter(), and their counterparts.
//
// An event finds the coroutine that runs, by the thread's hint and the stack pointer; takes frames that are gone off
// its shadow stack; then puts one on and counts the call, or takes one off and adds its times. CPU time is what the
// coroutine's account says (slice.c) plus the time since it was last settled; after a gap, in which the thread may have
// slept, the account is settled first.
#include "greenprof/exact.h"

#include "collect/collector.h"
#include "coro/threads.h"
#include "exact/exact_stack.h"
#include "signal/region.h"
#include "signal/slice.h"

#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define FAST                static inline __attribute__((always_inline))
#define SLOW                static __attribute__((noinline, cold))

int prof_exact_active;

typedef struct event {
    uintptr_t function;
    uintptr_t sp; // stack pointer where the hook returns to
    uintptr_t fp; // frame pointer there
    bool tail;    // an exit that the function jumped to: its frame is gone
} event_t;

// When it was taken in, and where. No function that is not inlined gets a pointer to one: it stays in registers.
typedef struct moment {
    gp_thread_t *thread;
    gp_exact_stack_t *stack;
    gp_exact_stack_t *previous; // busy before
    bool foreign;
    uint32_t links; // of the stack: known to be one in the common case
    uint64_t ticks, cpu_ns;
} moment_t;

static __thread bool attaching __attribute__((tls_model("initial-exec")));

// The host's malloc, which attaching calls, may be instrumented itself.
SLOW gp_thread_t *attach(void)
{
    if (attaching)
        return NULL;
    attaching = true;
    gp_thread_t *thread = gp_thread_attach();
    attaching = false;
    return thread;
}

// --- Which stack?

FAST bool is_stack_of(gp_thread_t *thread, const gp_exact_stack_t *stack, uintptr_t sp)
{
    return stack != NULL && sp >= stack->lo && sp < stack->hi &&
           stack->coro == atomic_load_explicit(&thread->current, memory_order_relaxed) &&
           stack->coro_id == atomic_load_explicit(&thread->current_id, memory_order_relaxed) &&
           stack->coro_id == atomic_load_explicit(&stack->coro->id, memory_order_relaxed) &&
           !(stack->coro == thread->root && atomic_load_explicit(&gp_thread_nested, memory_order_relaxed));
}

static bool is_on_alternate_stack(void)
{
    stack_t alternate;
    return sigaltstack(NULL, &alternate) == 0 && (alternate.ss_flags & SS_ONSTACK);
}

// A stack pointer on no known stack: a coroutine that nobody announced. The collector makes a record of it.
static void note_unknown(gp_thread_t *thread, uintptr_t sp)
{
    if (atomic_exchange_explicit(&thread->unknown_sp, sp, memory_order_relaxed) == 0)
        gp_collector_kick();
}

SLOW gp_exact_stack_t *look_up_stack(gp_thread_t *thread, uintptr_t sp, bool *foreign)
{
    uint64_t id, current_id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    prof_coro_t *coro = gp_thread_coro_at(thread, sp, &id, foreign);
    bool alternate = is_on_alternate_stack(); // whatever region that is in
    if (*foreign && !alternate)
        note_unknown(thread, sp);
    *foreign |= alternate;
    // The handler goes on where it began, whatever a sample taken meanwhile made of its stack pointer.
    gp_exact_stack_t *last = thread->exact_stack;
    if (alternate && last != NULL &&
        (atomic_load_explicit(&last->busy, memory_order_relaxed) || last->frames[last->depth].foreign))
        return last;
    if (*foreign) {
        // A sample may have taken the alternate stack for a coroutine of its own.
        bool usable = current != NULL && !gp_region_holds(current, current_id, sp) &&
                      atomic_load_explicit(&current->id, memory_order_acquire) == current_id;
        coro = usable ? current : thread->root;
        id = usable ? current_id : thread->root_id;
    } else if (coro != current && !atomic_load_explicit(&thread->busy, memory_order_relaxed)) {
        gp_slice_settle_now(thread); // a switch that no hook saw: corrects the hint
    }
    gp_exact_stack_t *stack = gp_exact_stack_of(coro, id, thread);
    thread->exact_stack = stack;
    return stack;
}

// The stack is busy: its event was interrupted by a handler of the host, or left by one.
SLOW gp_exact_stack_t *free_stack(gp_exact_stack_t *stack, uintptr_t sp, gp_thread_t *thread, bool foreign,
                                  gp_exact_stack_t **previous)
{
    while (stack != NULL && atomic_load_explicit(&stack->busy, memory_order_relaxed)) {
        if (!foreign && sp >= stack->busy_sp) { // what it interrupted is not there any more
            gp_exact_stack_repair(stack);
            *previous = NULL;
            return stack;
        }
        stack = gp_exact_stack_interrupt(stack, thread);
    }
    return stack;
}

FAST void begin_event(gp_thread_t *thread, gp_exact_stack_t *stack, uintptr_t sp)
{
    stack->busy_sp = sp;
    atomic_store_explicit(&stack->busy, true, memory_order_relaxed);
    // From here on gp_exact_stop() waits for this event, or this event sees the new epoch: see quiesce() in exact.c.
    atomic_store_explicit(&thread->exact_busy, stack, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

FAST bool is_fresh(gp_thread_t *thread, const gp_exact_stack_t *stack)
{
    return stack->epoch == atomic_load_explicit(&gp_exact_epoch, memory_order_acquire) && stack->thread == thread;
}

// Nearly all events: on the stack of the one before, in nobody's midst, and one profile counts them.
FAST bool begin(moment_t *moment, uintptr_t sp)
{
    gp_thread_t *thread = gp_thread_self;
    if (UNLIKELY(thread == NULL))
        return false;
    gp_exact_stack_t *stack = thread->exact_stack;
    if (UNLIKELY(!is_stack_of(thread, stack, sp) || atomic_load_explicit(&stack->busy, memory_order_relaxed) ||
                 atomic_load_explicit(&thread->exact_busy, memory_order_relaxed) != NULL))
        return false;
    begin_event(thread, stack, sp);
    *moment = (moment_t){.thread = thread, .stack = stack, .links = 1};
    if (LIKELY(is_fresh(thread, stack) && stack->link_count == 1))
        return true;
    atomic_store_explicit(&thread->exact_busy, NULL, memory_order_release);
    atomic_store_explicit(&stack->busy, false, memory_order_relaxed);
    return false;
}

// All events. Returns false where nobody counts, or memory is short.
FAST bool begin_any(moment_t *moment, uintptr_t sp)
{
    gp_thread_t *thread = gp_thread_self;
    if (thread == NULL && (thread = attach()) == NULL)
        return false;
    gp_exact_stack_t *stack = thread->exact_stack;
    gp_exact_stack_t *previous = atomic_load_explicit(&thread->exact_busy, memory_order_relaxed);
    bool foreign = false;
    if (!is_stack_of(thread, stack, sp))
        stack = look_up_stack(thread, sp, &foreign);
    if (stack != NULL && atomic_load_explicit(&stack->busy, memory_order_relaxed))
        stack = free_stack(stack, sp, thread, foreign, &previous);
    if (stack == NULL) {
        gp_exact_lose();
        return false;
    }
    begin_event(thread, stack, sp);
    if (!is_fresh(thread, stack))
        gp_exact_stack_refresh(stack, thread);
    *moment = (moment_t){
        .thread = thread, .stack = stack, .previous = previous, .foreign = foreign, .links = stack->link_count};
    return true;
}

FAST void end(const moment_t *moment)
{
    atomic_signal_fence(memory_order_seq_cst);
    // Release: partner of the acquire in quiesce(): what was counted is visible.
    atomic_store_explicit(&moment->thread->exact_busy, moment->previous, memory_order_release);
    atomic_store_explicit(&moment->stack->busy, false, memory_order_relaxed);
}

// --- When?

// Not on an alternate stack: of the host's, nobody knows how much is left, and a wait may be walked there.
SLOW void settle(gp_thread_t *thread, bool foreign)
{
    if (!foreign && !atomic_load_explicit(&thread->busy, memory_order_relaxed))
        gp_slice_settle_now(thread);
}

FAST void read_clocks(moment_t *moment)
{
    gp_exact_stack_t *stack = moment->stack;
    uint64_t now = gp_ticks(), settled = atomic_load_explicit(&stack->coro->settled, memory_order_relaxed);
    uint64_t since = settled > stack->last_ticks ? settled : stack->last_ticks;
    if (UNLIKELY(now > since + gp_exact_gap_ticks)) {
        settle(moment->thread, moment->foreign);
        now = gp_ticks();
    }
    uint64_t cpu_ns = LIKELY(!moment->foreign) ? gp_edge_cpu_ns(stack->coro, now) : gp_edge_settled_cpu_ns(stack->coro);
    // It may go back a little when an account is settled: the time is then taken off what comes.
    moment->cpu_ns = cpu_ns > stack->last_cpu_ns ? cpu_ns : stack->last_cpu_ns;
    moment->ticks = now;
    stack->last_ticks = now;
    stack->last_cpu_ns = moment->cpu_ns;
}

// --- Frames

FAST void add_call(const moment_t *moment, uint32_t index)
{
    gp_exact_stack_t *stack = moment->stack;
    gp_exact_frame_t *frame = &stack->frames[index];
    frame->record = NULL;
    frame->table = NULL;
    for (uint32_t i = 0; i < moment->links; i++) {
        gp_exact_link_t *link = &stack->links[i];
        if (link->base > index)
            link->base = index; // all that it had was left
        uint64_t key = gp_exact_frame_key(stack->frames, index, link->base);
        gp_exact_record_t *record = gp_exact_find(link->table, key);
        if (UNLIKELY(record == NULL) && (record = gp_exact_stack_record(link->table, key)) == NULL)
            continue;
        gp_exact_add(&record->calls, 1);
        if (frame->same >= link->base)
            gp_exact_add(&record->nested, 1);
        if (frame->same_edge > link->base)
            gp_exact_add(&record->same_edge, 1);
        if (i == 0) {
            frame->record = record;
            frame->table = link->table;
        }
    }
}

FAST void pop(const moment_t *moment)
{
    gp_exact_stack_t *stack = moment->stack;
    uint32_t index = stack->depth;
    gp_exact_frame_t *frame = &stack->frames[index], *below = frame - 1;
    gp_exact_share_t share =
        gp_exact_frame_share(frame, moment->ticks, moment->cpu_ns, frame->called_ticks, frame->called_cpu_ns);
    for (uint32_t i = 0; i < moment->links; i++) {
        const gp_exact_link_t *link = &stack->links[i];
        if (index < link->base)
            continue;
        gp_exact_record_t *record = frame->record;
        if (UNLIKELY(frame->table != link->table || record == NULL))
            record = gp_exact_stack_record(link->table, gp_exact_frame_key(stack->frames, index, link->base));
        if (LIKELY(record != NULL))
            gp_exact_charge(record, frame, link->base, &share);
    }
    gp_exact_stack_leave(stack, frame);
    below->called_ticks += share.ticks;
    below->called_cpu_ns += share.cpu_ns;
    stack->depth = index - 1;
}

FAST uintptr_t frame_end(const event_t *event, const gp_exact_site_t *site)
{
    switch (site->cfa) {
    case GP_EXACT_CFA_SP:
        return event->sp + (uintptr_t)(intptr_t)site->offset;
    case GP_EXACT_CFA_FP:
        return event->fp + (uintptr_t)(intptr_t)site->offset;
    default:
        return *(const uintptr_t *)(event->fp + (uintptr_t)(intptr_t)site->offset);
    }
}

// Is the top frame that of a function that a new one, whose frame ends at `cfa`, cannot have been called from?
FAST bool is_gone(const gp_exact_frame_t *top, const gp_exact_site_t *site, uintptr_t cfa)
{
    return top->cfa < cfa || (top->cfa == cfa && (site->first || top->physical != site->physical));
}

// A handler's frames on an alternate stack are compared among themselves; any event elsewhere says that it is over.
FAST bool is_over(const gp_exact_frame_t *top, const moment_t *moment, const gp_exact_site_t *site, uintptr_t cfa)
{
    return UNLIKELY(top->foreign != moment->foreign) ? !moment->foreign : is_gone(top, site, cfa);
}

// Inlined functions and prof_enter() have entered the same frame before: one that comes in by the same place has left.
SLOW void pop_same_site(moment_t copy, const gp_exact_site_t *site, uintptr_t cfa)
{
    const moment_t *moment = &copy;
    const gp_exact_stack_t *stack = moment->stack;
    for (uint32_t i = stack->depth; i > 0 && stack->frames[i].cfa == cfa; i--) {
        if (stack->frames[i].site == site) {
            while (stack->depth >= i)
                pop(moment);
            return;
        }
    }
}

SLOW void pop_gone(moment_t copy, const gp_exact_site_t *site, uintptr_t cfa)
{
    const moment_t *moment = &copy;
    const gp_exact_stack_t *stack = moment->stack;
    while (stack->depth > 0 && is_over(&stack->frames[stack->depth], moment, site, cfa))
        pop(moment);
}

FAST void pop_dead(const moment_t *moment, const gp_exact_site_t *site, uintptr_t cfa)
{
    const gp_exact_stack_t *stack = moment->stack;
    if (UNLIKELY(stack->depth > 0 && is_over(&stack->frames[stack->depth], moment, site, cfa)))
        pop_gone(*moment, site, cfa);
    if (UNLIKELY(!site->first && stack->frames[stack->depth].cfa == cfa && !site->loose))
        pop_same_site(*moment, site, cfa);
}

FAST void enter(const event_t *event, const moment_t *moment, const gp_exact_site_t *site)
{
    gp_exact_stack_t *stack = moment->stack;
    uintptr_t cfa = frame_end(event, site);
    pop_dead(moment, site, cfa);
    if (UNLIKELY(stack->depth + 1 >= stack->room || (stack->map_used + 1) * 2 > stack->map_mask) &&
        !gp_exact_stack_grow(stack)) {
        gp_exact_lose();
        return;
    }
    uint32_t index = stack->depth + 1;
    gp_exact_frame_t *frame = &stack->frames[index];
    frame->cfa = site->loose ? frame[-1].cfa : cfa;
    frame->physical = site->loose ? frame[-1].physical : site->physical;
    frame->site = site;
    frame->function = site->function;
    frame->foreign = moment->foreign;
    frame->enter_ticks = moment->ticks;
    frame->enter_cpu_ns = moment->cpu_ns;
    frame->called_ticks = frame->called_cpu_ns = 0;
    gp_exact_stack_enter(stack, index);
    stack->depth = index;
    add_call(moment, index);
}

static __attribute__((noinline)) void take_enter_slowly(event_t event, const gp_exact_site_t *site)
{
    moment_t moment;
    if (!begin_any(&moment, event.sp))
        return;
    if (moment.links > 0) {
        read_clocks(&moment);
        enter(&event, &moment, site);
    }
    end(&moment);
}

static __attribute__((noinline)) void take_enter(uintptr_t function, uintptr_t pc, uintptr_t sp, uintptr_t fp,
                                                 bool manual)
{
    const event_t event = {.function = function, .sp = sp, .fp = fp};
    moment_t moment;
    // Before the clocks are read: a site's first time takes a while.
    const gp_exact_site_t *site = gp_exact_site_find(function, pc);
    if (UNLIKELY(site == NULL) && (site = gp_exact_site_add(function, pc, manual)) == NULL) {
        gp_exact_lose();
    } else if (LIKELY(begin(&moment, sp))) {
        read_clocks(&moment);
        enter(&event, &moment, site);
        end(&moment);
    } else {
        take_enter_slowly(event, site);
    }
}

// The frame that an exit is about, or 0: it was entered before anybody counted.
static uint32_t find_frame(const gp_exact_stack_t *stack, uintptr_t function)
{
    for (uint32_t i = stack->depth; i > 0; i--)
        if (stack->frames[i].site->address == function)
            return i;
    return 0;
}

SLOW void leave_slowly(event_t event, moment_t copy)
{
    const moment_t *moment = &copy;
    const gp_exact_stack_t *stack = moment->stack;
    while (stack->depth > 0) {
        const gp_exact_frame_t *top = &stack->frames[stack->depth];
        if (top->foreign != moment->foreign ? moment->foreign : top->cfa > event.sp)
            break;
        pop(moment);
    }
    if (event.tail) // the frame ended at the stack pointer: it went with those
        return;
    if (moment->foreign && !stack->frames[stack->depth].foreign)
        return;
    uint32_t index = find_frame(stack, event.function);
    while (index != 0 && stack->depth >= index)
        pop(moment);
}

FAST void leave(const event_t *event, const moment_t *moment)
{
    const gp_exact_stack_t *stack = moment->stack;
    const gp_exact_frame_t *top = &stack->frames[stack->depth];
    if (LIKELY(stack->depth > 0 && top->foreign == moment->foreign && top->cfa > event->sp && !event->tail &&
               top->site->address == event->function))
        pop(moment);
    else
        leave_slowly(*event, *moment);
}

static __attribute__((noinline)) void take_exit_slowly(event_t event)
{
    moment_t moment;
    if (!begin_any(&moment, event.sp))
        return;
    if (moment.links > 0) {
        read_clocks(&moment);
        leave(&event, &moment);
    }
    end(&moment);
}

static __attribute__((noinline)) void take_exit(uintptr_t function, uintptr_t sp, bool tail)
{
    const event_t event = {.function = function, .sp = sp, .tail = tail};
    moment_t moment;
    if (LIKELY(begin(&moment, sp))) {
        read_clocks(&moment);
        leave(&event, &moment);
        end(&moment);
    } else {
        take_exit_slowly(event);
    }
}

// In the hook that was called itself: its frame tells where the caller's ends. The work is done elsewhere, with all
// that is known in registers, so that hooks at rest do nothing but look.
#define CALLER_PC ((uintptr_t)__builtin_return_address(0))
#define CALLER_SP ((uintptr_t)__builtin_dwarf_cfa())
#define CALLER_FP (*(const uintptr_t *)__builtin_frame_address(0))

PROF_API void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)call_site;
    if (LIKELY(__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0))
        return;
    take_enter((uintptr_t)function, CALLER_PC, CALLER_SP, CALLER_FP, false);
}

PROF_API void __cyg_profile_func_exit(void *function, void *call_site)
{
    if (LIKELY(__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) == 0))
        return;
    // An exit that the function jumped to returns to where the function would have returned.
    take_exit((uintptr_t)function, CALLER_SP, __builtin_return_address(0) == call_site);
}

PROF_API void prof_enter_hook(void *function)
{
    take_enter((uintptr_t)function, CALLER_PC, CALLER_SP, CALLER_FP, true);
}

PROF_API void prof_exit_hook(void *function)
{
    take_exit((uintptr_t)function, CALLER_SP, false);
}
