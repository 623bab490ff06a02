// SPDX-License-Identifier: MIT
#include "signal/slice_switch.h"

#include "signal/activity.h"
#include "signal/sleeps.h"
#include "signal/wait_samples.h"

enum { SETTLE_TRIES = 3 };

uint64_t gp_slice_window_ticks;
int64_t gp_slice_long_ticks GP_SWITCH_WORD, gp_slice_long_root_ticks GP_SWITCH_WORD;
static int64_t root_pending_ticks;
_Atomic uint64_t gp_slice_stopped_ns;
static _Atomic uint64_t stop_end, stop_ns; // the latest stop; ticks at which it was over

// Every long slice for hog.h is one here.
static int64_t slice_ticks_below_hogs(uint64_t ns)
{
    uint64_t ticks = gp_ticks_from_ns(ns), hog = gp_ledger_edge_load(&gp_ledger_edge_hog_ticks);
    return (int64_t)(ticks < hog ? ticks : hog);
}

void gp_slice_init(void)
{
    gp_slice_long_ticks = slice_ticks_below_hogs(GP_SLICE_LONG_NS);
    __atomic_store_n(&gp_slice_long_root_ticks, slice_ticks_below_hogs(GP_SLICE_LONG_ROOT_NS), __ATOMIC_RELAXED);
    atomic_thread_fence(memory_order_seq_cst); // whatever the order, gp_slice_nest() has the last word
    if (atomic_load_explicit(&gp_thread_nested, memory_order_relaxed))
        __atomic_store_n(&gp_slice_long_root_ticks, 0, __ATOMIC_RELAXED);
    gp_slice_set_root_pending(GP_SLICE_ROOT_PENDING_NS);
    gp_slice_window_ticks = gp_ticks_from_ns(GP_SLICE_WINDOW_NS);
}

void gp_slice_set_root_pending(uint64_t ns)
{
    __atomic_store_n(&root_pending_ticks, (int64_t)gp_ticks_from_ns(ns), __ATOMIC_RELAXED);
}

void gp_slice_nest(void)
{
    atomic_store_explicit(&gp_thread_nested, true, memory_order_relaxed);
    __atomic_store_n(&gp_slice_long_root_ticks, 0, __ATOMIC_RELEASE);
}

void gp_slice_new_epoch(void)
{
    uint64_t now = gp_ticks();
    gp_ledger_edge_keep_epoch(now);
    gp_ledger_edge_store(&gp_ledger_edge_epoch_ticks, now);
    atomic_fetch_add_explicit(&gp_ledger_edge_epoch, 1, memory_order_release);
    // Number first, then `over`: a thread still in the old epoch must find that one ended, never open.
    atomic_store_explicit(&gp_ledger_edge_epoch_over, UINT64_MAX, memory_order_release);
}

// A coroutine destroyed by others while the hint still names it: the thread stands in for it from when it began on.
__attribute__((noinline)) static void slice_stand_in(gp_thread_t *thread)
{
    uint64_t since = atomic_load_explicit(&thread->slice_start, memory_order_relaxed);
    gp_ledger_edge_enter(thread, thread->root, thread->root_id, since);
    gp_slice_set_current(thread, thread->root, thread->root_id);
}

static inline prof_coro_t *slice_current_of(gp_thread_t *thread)
{
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    if (__builtin_expect(gp_slice_is_live(thread, current), 1))
        return current;
    slice_stand_in(thread);
    return thread->root;
}

// A coarse point: `current` runs, and is settled up to `now`.
static void slice_begin_interval(gp_thread_t *thread, prof_coro_t *current, uint64_t now, uint64_t cpu_ns)
{
    gp_ledger_edge_store(&current->settled, now);
    atomic_store_explicit(&thread->coarse_cpu_ns, cpu_ns, memory_order_relaxed);
    atomic_store_explicit(&thread->coarse_ticks, now, memory_order_relaxed);
    atomic_store_explicit(&thread->slice_start, now, memory_order_relaxed);
    thread->coarse_root_ticks = gp_ledger_edge_load(&thread->root->slice_ticks);
    if (current == thread->root) // will be added when the slice ends
        thread->coarse_root_ticks += now - gp_ledger_edge_load(&current->since);
    thread->root_limit_ticks =
        (int64_t)thread->coarse_root_ticks + __atomic_load_n(&root_pending_ticks, __ATOMIC_RELAXED);
}

// How often the thread had slept when its accounts began, which may be long ago by now. Where that is not known, its
// own stack is taken to have slept since.
static uint64_t slice_sleeps_before(const gp_thread_t *thread, const prof_coro_t *coro)
{
    uint64_t sleeps = gp_sleeps();
    if (thread->start_ticks >= gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks))
        return 0;
    return coro == thread->root ? sleeps - 2 : sleeps;
}

void gp_slice_begin(gp_thread_t *thread, uintptr_t sp)
{
    uint32_t epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_acquire);
    if (thread->epoch == epoch)
        return;
    thread->epoch = epoch;
    thread->debt_ns = 0;
    atomic_store_explicit(&thread->current, NULL, memory_order_relaxed);
    uint64_t id;
    bool outside;
    prof_coro_t *coro = gp_thread_coro_at(thread, sp, &id, &outside);
    gp_slice_set_current(thread, coro, id);
    gp_ledger_edge_touch(coro);
    uint64_t since = gp_ledger_edge_load(&coro->since); // long ago: charged by the CPU clock
    atomic_store_explicit(&gp_coro_timeline(coro)->thread, thread->index, memory_order_relaxed);
    atomic_store_explicit(&coro->running, 1, memory_order_release);
    slice_begin_interval(thread, coro, since, thread->cpu.start_ns);
    atomic_store_explicit(&thread->voluntary_switches, slice_sleeps_before(thread, coro), memory_order_relaxed);
    gp_wait_samples_begin(thread);
    gp_activity_begin(thread);
}

void gp_slice_note_stop(uint64_t ns)
{
    gp_ledger_edge_store(&stop_ns, ns);
    atomic_store_explicit(&stop_end, gp_ticks(), memory_order_release);
    gp_coro_add(&gp_slice_stopped_ns, ns);
}

// Stopped time since `from`, at most `most_ns`.
static uint64_t slice_stopped_since(uint64_t from, uint64_t most_ns)
{
    // Acquire: the length is of this stop, or of a later one.
    uint64_t end = atomic_load_explicit(&stop_end, memory_order_acquire), ns = gp_ledger_edge_load(&stop_ns);
    return end <= from ? 0 : ns < most_ns ? ns : most_ns;
}

// The coroutine that runs was off the CPU for `off_ns` since the last coarse point, which was at `from`: asleep, or
// preempted? A thread's own stack is where event loops wait. A stop counts as one sleep. Returns how much of it was
// preempted.
static uint64_t slice_charge_off_cpu(gp_thread_t *thread, prof_coro_t *coro, uint64_t from, uint64_t off_ns)
{
    uint64_t before = atomic_load_explicit(&thread->voluntary_switches, memory_order_relaxed);
    uint64_t switches = gp_sleeps(), stopped_ns = slice_stopped_since(from, off_ns);
    atomic_store_explicit(&thread->voluntary_switches, switches, memory_order_relaxed);
    if (switches == before || (switches == before + 1 && stopped_ns > off_ns / 2))
        return off_ns;
    gp_coro_add(gp_coro_blocked_ns(coro), off_ns - stopped_ns);
    return stopped_ns;
}

static int64_t slice_ns_between(uint64_t from, uint64_t to)
{
    return to > from ? (int64_t)gp_ticks_to_ns(to - from) : 0;
}

// CPU time of the slice in progress since it was settled, ns. Below zero: those before it were not all on the CPU.
static int64_t slice_unsettled_cpu_ns(gp_thread_t *thread, prof_coro_t *current, uint64_t cpu_ns)
{
    uint64_t coarse_cpu_ns = atomic_load_explicit(&thread->coarse_cpu_ns, memory_order_relaxed);
    int64_t before = slice_ns_between(atomic_load_explicit(&thread->coarse_ticks, memory_order_relaxed),
                                      gp_ledger_edge_settled(current)); // of slices since the last coarse point
    return (int64_t)(cpu_ns - coarse_cpu_ns) - before - thread->debt_ns;
}

// Take `ns` off the accounts of slices since the last coarse point: first of the thread's own.
static void slice_take_back(gp_thread_t *thread, int64_t ns)
{
    int64_t root = slice_ns_between(thread->coarse_root_ticks, gp_ledger_edge_load(&thread->root->slice_ticks));
    int64_t back = ns < root ? ns : root;
    gp_coro_add(&thread->root->off_ns, (uint64_t)back);
    thread->debt_ns = ns - back;
}

uint64_t gp_slice_settle(gp_thread_t *thread, uint64_t now, uint64_t cpu_ns)
{
    prof_coro_t *current = slice_current_of(thread);
    uint64_t settled = gp_ledger_edge_settled(current);
    int64_t wall = slice_ns_between(settled, now), used = slice_unsettled_cpu_ns(thread, current, cpu_ns);
    thread->debt_ns = 0;
    if (used < 0) {
        slice_take_back(thread, -used);
        used = 0;
    }
    gp_coro_add(&current->off_ns, (uint64_t)(wall - used));
    atomic_store_explicit(&thread->exact_ready, NULL, memory_order_relaxed);
    slice_begin_interval(thread, current, now, cpu_ns);
    return wall > used + GP_SLICE_OFF_CPU_NS ? slice_charge_off_cpu(thread, current, settled, (uint64_t)(wall - used))
                                             : 0;
}

static __attribute__((noinline)) void slice_end_long_slice(gp_thread_t *thread, uint64_t now, uint64_t cpu_ns)
{
    int64_t used = slice_unsettled_cpu_ns(thread, slice_current_of(thread), cpu_ns);
    uint64_t settled = gp_ledger_edge_settled(slice_current_of(thread));
    gp_slice_settle(thread, now, cpu_ns);
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uint64_t since = gp_ledger_edge_load(&coro->since), ran = used > 0 ? gp_ticks_from_ns((uint64_t)used) : 0;
    if (now > since && now - since >= gp_ledger_edge_load(&gp_ledger_edge_hog_ticks)) {
        const gp_hog_t hog = {.coro = coro,
                              .coro_id = atomic_load_explicit(&thread->current_id, memory_order_relaxed),
                              .start = since,
                              .end = now,
                              .asleep = settled,
                              .awake = coro->is_loop && now - settled > ran ? now - ran : settled};
        gp_hog_over(thread, &hog);
    }
}

// When the switch was is not known. The moment of the switch is not known. CPU time since the last settlement is taken
// to be the other's; before it the thread slept.
void gp_slice_correct(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now, uint64_t cpu_ns)
{
    prof_coro_t *before = slice_current_of(thread);
    int64_t used = slice_unsettled_cpu_ns(thread, before, cpu_ns);
    uint64_t settled = gp_ledger_edge_settled(before), ran = used > 0 ? gp_ticks_from_ns((uint64_t)used) : 0;
    uint64_t at = now > settled + ran ? now - ran : settled;
    slice_end_long_slice(thread, at, cpu_ns - (used > 0 ? (uint64_t)used : 0));
    gp_ledger_edge_leave(before, at, &(gp_park_t){0});
    atomic_store_explicit(&coro->park_pc, 0, memory_order_relaxed); // it has gone on since
    gp_ledger_edge_enter(thread, coro, id, at);
    gp_slice_set_current(thread, coro, id);
}

// Which coroutine runs? The stack pointer knows better than the hint, which misses switches of other kinds.
static void slice_correct_current(gp_thread_t *thread, uintptr_t sp, uint64_t now)
{
    bool outside;
    uint64_t id;
    prof_coro_t *current = slice_current_of(thread), *coro = gp_thread_coro_at(thread, sp, &id, &outside);
    if (!outside && coro != current)
        gp_slice_correct(thread, coro, id, now, gp_clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

prof_coro_t *gp_slice_prepare(gp_thread_t *thread, uintptr_t sp, uint64_t now)
{
    gp_slice_begin(thread, sp);
    slice_correct_current(thread, sp, now);
    prof_coro_t *from = slice_current_of(thread);
    if ((int64_t)(now - gp_ledger_edge_load(&from->since)) >= gp_slice_longest(thread, from) ||
        gp_slice_is_pending(thread, from))
        slice_end_long_slice(thread, now, gp_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    gp_thread_notify_at_once(thread); // after long on its own stack it may leave it
    return from;
}

void gp_slice_settle_now(gp_thread_t *thread)
{
    if (gp_ledger_edge_load(&gp_ledger_edge_epoch_over) != UINT64_MAX)
        return; // what has passed since then is not recorded
    gp_slice_enter(thread);
    uint64_t now = gp_ticks();
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
    gp_slice_begin(thread, sp);
    slice_correct_current(thread, sp, now);
    gp_slice_settle(thread, now, gp_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    gp_slice_leave(thread);
}

uint64_t gp_slice_settle_open(gp_thread_t *thread, uint64_t now)
{
    if (__builtin_expect(gp_slice_is_settled(thread, now, gp_slice_long_ticks), 1) ||
        atomic_load_explicit(&thread->busy, memory_order_relaxed)) // a handler of the program's, amid a switch
        return now;
    for (int i = 0; i < SETTLE_TRIES; i++) {
        gp_slice_settle_now(thread);
        now = gp_ticks();
        if (gp_slice_is_settled(thread, now, (int64_t)gp_slice_window_ticks))
            break; // else it was preempted meanwhile
    }
    return now;
}

// Is so little open at `now` that no preemption can hide in it?
static bool slice_is_short(const gp_thread_t *thread, const prof_coro_t *coro, uint64_t now)
{
    int64_t window = (int64_t)gp_slice_window_ticks, longest = gp_slice_longest(thread, coro);
    uint64_t coarse = atomic_load_explicit(&thread->coarse_ticks, memory_order_relaxed);
    return (int64_t)(now - coarse) < (longest < window ? longest : window);
}

void gp_slice_settle_as_switch(gp_thread_t *thread, prof_coro_t *coro)
{
    gp_slice_enter(thread);
    uint64_t now = gp_ticks();
    bool is_plain = coro != thread->root && // where short waits are
                    coro == atomic_load_explicit(&thread->current, memory_order_relaxed) &&
                    gp_slice_ends_plainly(thread, (uintptr_t)__builtin_frame_address(0), coro) &&
                    slice_is_short(thread, coro, now) &&
                    atomic_load_explicit(&thread->exact.stack, memory_order_relaxed) == NULL &&
                    atomic_load_explicit(&gp_ledger_edge_epoch_over, memory_order_acquire) == UINT64_MAX;
    if (is_plain) {
        gp_ledger_edge_store(&coro->settled, now);
        atomic_store_explicit(&thread->slice_start, now, memory_order_relaxed);
    }
    gp_slice_leave(thread);
    if (!is_plain)
        gp_slice_settle_now(thread);
}

uint64_t gp_slice_open_ns(gp_thread_t *thread, prof_coro_t **coro)
{
    *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    if (!gp_slice_is_live(thread, *coro))
        *coro = thread->root;
    uint64_t coarse = atomic_load_explicit(&thread->coarse_cpu_ns, memory_order_relaxed);
    int64_t before = slice_ns_between(atomic_load_explicit(&thread->coarse_ticks, memory_order_relaxed),
                                      atomic_load_explicit(&thread->slice_start, memory_order_relaxed));
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    int64_t open = (int64_t)(gp_clock_ns(gp_thread_clock(tid)) - coarse) - before;
    return thread->epoch == atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed) && open > 0
               ? (uint64_t)open
               : 0;
}
