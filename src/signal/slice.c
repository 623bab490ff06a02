#include "signal/slice.h"

#include <sys/resource.h>

#include "signal/span.h"
#include "signal/wait.h"

_Atomic uint32_t gp_edge_epoch;
_Atomic uint64_t gp_edge_epoch_ticks;
uint64_t gp_slice_long_ticks, gp_slice_long_root_ticks, gp_slice_window_ticks;

void gp_slice_init(void)
{
    gp_slice_long_ticks = gp_ticks_from_ns(GP_SLICE_LONG_NS);
    gp_slice_long_root_ticks = gp_ticks_from_ns(GP_SLICE_LONG_ROOT_NS);
    gp_slice_window_ticks = gp_ticks_from_ns(GP_SLICE_WINDOW_NS);
}

void gp_slice_new_epoch(void)
{
    gp_edge_store(&gp_edge_epoch_ticks, gp_ticks());
    atomic_fetch_add_explicit(&gp_edge_epoch, 1, memory_order_release);
}

static prof_coro_t *current_of(gp_thread_t *thread)
{
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uint64_t id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    // A coroutine destroyed by others while the hint still names it: the thread stands in for it.
    return current != NULL && atomic_load_explicit(&current->id, memory_order_relaxed) == id ? current
                                                                                            : thread->root;
}

static void set_current(gp_thread_t *thread, prof_coro_t *coro, uint64_t id)
{
    atomic_store_explicit(&thread->current, coro, memory_order_relaxed);
    atomic_store_explicit(&thread->current_id, id, memory_order_relaxed);
}

static uint64_t voluntary_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

void gp_slice_begin(gp_thread_t *thread, uintptr_t sp)
{
    uint32_t epoch = atomic_load_explicit(&gp_edge_epoch, memory_order_acquire);
    if (thread->epoch == epoch)
        return;
    thread->epoch = epoch;
    atomic_store_explicit(&thread->coarse_cpu_ns, thread->start_cpu_ns, memory_order_relaxed);
    atomic_store_explicit(&thread->pending_ns, 0, memory_order_relaxed);
    thread->pending_root_ns = 0;
    thread->debt_ns = 0;
    atomic_store_explicit(&thread->current, NULL, memory_order_relaxed);
    uint64_t id;
    bool outside;
    prof_coro_t *coro = gp_thread_coro_at(thread, sp, &id, &outside);
    set_current(thread, coro, id);
    atomic_store_explicit(&thread->slice_start, 0, memory_order_relaxed); // long ago: charged by the CPU clock
    gp_edge_touch(coro);
    atomic_store_explicit(&coro->span_thread, thread->index, memory_order_relaxed);
    atomic_store_explicit(&coro->running, 1, memory_order_release);
    thread->voluntary_switches = voluntary_switches();
    gp_wait_begin(thread);
    gp_span_begin(thread);
}

// The coroutine that runs was off the CPU for `off_ns` since the last coarse point: asleep, or preempted? A thread's own
// stack is where event loops wait.
// Returns how much of it was preempted.
static uint64_t charge_off_cpu(gp_thread_t *thread, prof_coro_t *coro, uint64_t off_ns)
{
    uint64_t before = thread->voluntary_switches;
    thread->voluntary_switches = voluntary_switches();
    if (thread->voluntary_switches == before)
        return off_ns;
    gp_coro_add(&coro->blocked_ns, off_ns);
    return 0;
}

// Wall time of the current slice since the last coarse point, ns.
static uint64_t wall_ns(gp_thread_t *thread, prof_coro_t *current, uint64_t now)
{
    uint64_t start = atomic_load_explicit(&thread->slice_start, memory_order_relaxed);
    uint64_t since = gp_edge_load(&current->since), from = start > since ? start : since;
    return now > from ? gp_ticks_to_ns(now - from) : 0;
}

uint64_t gp_slice_settle(gp_thread_t *thread, uint64_t now, uint64_t cpu_ns)
{
    uint64_t before = atomic_load_explicit(&thread->coarse_cpu_ns, memory_order_relaxed);
    int64_t rest = (int64_t)(cpu_ns - before) - atomic_load_explicit(&thread->pending_ns, memory_order_relaxed) -
                   thread->debt_ns;
    prof_coro_t *current = current_of(thread);
    uint64_t wall = wall_ns(thread, current, now), used = rest > 0 ? (uint64_t)rest : 0;
    uint64_t off = wall > used + GP_SLICE_OFF_CPU_NS ? wall - used : 0;
    thread->debt_ns = 0;
    if (rest > 0) {
        gp_coro_add(&current->cpu_ns, (uint64_t)rest);
    } else if (rest < 0) {
        int64_t back = -rest < thread->pending_root_ns ? -rest : thread->pending_root_ns;
        gp_coro_add(&thread->root->cpu_ns, 0 - (uint64_t)back);
        thread->debt_ns = -rest - back;
    }
    if (off > 0)
        off = charge_off_cpu(thread, current, off);
    atomic_store_explicit(&thread->coarse_cpu_ns, cpu_ns, memory_order_relaxed);
    atomic_store_explicit(&thread->pending_ns, 0, memory_order_relaxed);
    thread->pending_root_ns = 0;
    atomic_store_explicit(&thread->slice_start, now, memory_order_relaxed);
    return off;
}

static void end_short_slice(gp_thread_t *thread, prof_coro_t *from, uint64_t ticks)
{
    uint64_t ns = gp_ticks_to_ns(ticks);
    gp_coro_add(&from->cpu_ns, ns);
    int64_t pending = atomic_load_explicit(&thread->pending_ns, memory_order_relaxed);
    atomic_store_explicit(&thread->pending_ns, pending + (int64_t)ns, memory_order_relaxed);
    if (from == thread->root)
        thread->pending_root_ns += (int64_t)ns;
}

#define LIKELY(condition) __builtin_expect(!!(condition), 1)

// The common case of gp_thread_coro_at(): the hint names a live coroutine, and `sp` is on its stack or it has none.
static inline bool hint_is_right(gp_thread_t *thread, uintptr_t sp)
{
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uintptr_t lo = atomic_load_explicit(&current->lo, memory_order_relaxed);
    uintptr_t hi = atomic_load_explicit(&current->hi, memory_order_relaxed);
    bool nested = current == thread->root && atomic_load_explicit(&gp_thread_nested, memory_order_relaxed);
    return atomic_load_explicit(&current->id, memory_order_relaxed) ==
               atomic_load_explicit(&thread->current_id, memory_order_relaxed) &&
           ((sp >= lo && sp < hi) || lo == hi) && !nested;
}

void gp_slice_correct(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uint64_t now)
{
    prof_coro_t *before = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uint64_t before_id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    if (before != NULL && atomic_load_explicit(&before->id, memory_order_relaxed) == before_id) {
        gp_edge_touch(before);
        gp_edge_leave(thread, before, before_id, now, NULL);
    }
    atomic_store_explicit(&coro->park_pc, 0, memory_order_relaxed); // it has gone on since
    gp_edge_enter(thread, coro, id, now);
    set_current(thread, coro, id);
}

// Who is being switched away from: the stack pointer knows better than the hint, which misses switches of other kinds.
__attribute__((noinline)) static void look_up_current(gp_thread_t *thread, uintptr_t sp, uint64_t now)
{
    bool outside;
    uint64_t id;
    prof_coro_t *from = gp_thread_coro_at(thread, sp, &id, &outside);
    if (!outside && from != atomic_load_explicit(&thread->current, memory_order_relaxed))
        gp_slice_correct(thread, from, id, now);
}

static inline void correct_current(gp_thread_t *thread, uintptr_t sp, uint64_t now)
{
    if (!LIKELY(hint_is_right(thread, sp)))
        look_up_current(thread, sp, now);
}

static void enter(gp_thread_t *thread)
{
    atomic_store_explicit(&thread->busy, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static void leave(gp_thread_t *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&thread->busy, false, memory_order_relaxed);
}

void gp_slice_switch(gp_thread_t *thread, const gp_park_t *park, prof_coro_t *to, uint64_t to_id)
{
    enter(thread);
    uint64_t now = gp_ticks();
    if (!LIKELY(thread->epoch == atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed)))
        gp_slice_begin(thread, park->sp);
    correct_current(thread, park->sp, now);
    prof_coro_t *from = current_of(thread);
    uint64_t start = atomic_load_explicit(&thread->slice_start, memory_order_relaxed);
    uint64_t ticks = now > start ? now - start : 0;
    bool is_short = from == thread->root ? ticks < gp_slice_long_root_ticks &&
                                               thread->pending_root_ns < GP_SLICE_ROOT_PENDING_NS
                                         : ticks < gp_slice_long_ticks;
    if (LIKELY(is_short))
        end_short_slice(thread, from, ticks);
    else
        gp_slice_settle(thread, now, gp_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    gp_edge_leave(thread, from, from == thread->root ? thread->root_id : gp_edge_load(&thread->current_id), now, park);
    gp_coro_add(&to->switches, 1);
    gp_edge_enter(thread, to, to_id, now);
    set_current(thread, to, to_id);
    atomic_store_explicit(&thread->slice_start, now, memory_order_relaxed);
    leave(thread);
}

void gp_slice_settle_now(gp_thread_t *thread)
{
    enter(thread);
    uint64_t now = gp_ticks(), cpu_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
    gp_slice_begin(thread, sp);
    correct_current(thread, sp, now);
    gp_slice_settle(thread, now, cpu_ns);
    leave(thread);
}

uint64_t gp_slice_open_ns(gp_thread_t *thread, prof_coro_t **coro)
{
    *coro = current_of(thread);
    uint64_t coarse = atomic_load_explicit(&thread->coarse_cpu_ns, memory_order_relaxed);
    int64_t pending = atomic_load_explicit(&thread->pending_ns, memory_order_relaxed);
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    int64_t open = (int64_t)(gp_clock_ns(gp_thread_clock(tid)) - coarse) - pending;
    return thread->epoch == atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed) && open > 0 ? (uint64_t)open : 0;
}
