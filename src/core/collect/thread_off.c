// SPDX-License-Identifier: MIT
#include "collect/thread_off.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/open_sleep.h"
#include "coro/coro_ledger.h"
#include "coro/task.h"
#include "signal/ledger_edges.h"
#include "signal/slice.h"

enum {
    TRIES = 3,
    STOP_NS = 100000000,     // a wait that ends later than this may have been a stop
    LATE_NS = 1000000,       // and than this: other threads want a processor
    BASE_OLD_NS = 500000000, // else what the collector waited for processors is hardly more than when it was read
};

// The collector's own: how long it waited for processors, as of a moment, and when its last sleep ended.
static struct {
    pid_t tid;
    uint64_t delay_ns, read_ns;
    uint64_t woke_ns, cpu_ns; // CLOCK_MONOTONIC, and its CPU clock
} own;

bool gp_thread_off_is_ordinary(const gp_thread_t *thread)
{
    return gp_ledger_edge_load(&thread->root->switches) == 0 &&
           atomic_load_explicit(&thread->current, memory_order_relaxed) == thread->root;
}

static uint64_t thread_off_not_below_zero(uint64_t ns)
{
    return (int64_t)ns > 0 ? ns : 0;
}

// Preempted time in the account, as far as it is settled. The thread may change it meanwhile.
static uint64_t thread_off_settled_preempted_ns(prof_coro_t *root)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t settled = atomic_load_explicit(&root->settled, memory_order_acquire);
        uint64_t off_ns = atomic_load_explicit(&root->off_ns, memory_order_acquire);
        uint64_t blocked_ns = atomic_load_explicit(gp_coro_blocked_ns(root), memory_order_acquire);
        if (gp_ledger_edge_load(&root->settled) == settled && gp_ledger_edge_load(&root->off_ns) == off_ns)
            return off_ns - blocked_ns;
    }
    return gp_ledger_edge_load(&root->off_ns) - gp_ledger_edge_load(gp_coro_blocked_ns(root));
}

void gp_thread_off_note(gp_thread_t *thread)
{
    uint64_t delay_ns, stops_ns = gp_ledger_edge_load(&gp_slice_stopped_ns);
    uint32_t epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    if (!gp_thread_off_is_ordinary(thread) ||
        !gp_task_run_delay(atomic_load_explicit(&thread->tid, memory_order_relaxed), &delay_ns))
        return;
    uint64_t late_ns = gp_ledger_edge_load(&thread->gil.late_ns), kernel_ns = delay_ns + stops_ns - late_ns,
             account_ns = thread_off_settled_preempted_ns(thread->root);
    if (!thread->off.is_known) // the account is not told by the kernel which of its time was before
        thread->off.base_ns = thread_off_not_below_zero(account_ns) - kernel_ns;
    else if (thread->off.epoch != epoch || kernel_ns < thread->off.kernel_ns)
        thread->off.base_ns += thread->off.kernel_ns - kernel_ns;
    uint64_t preempted_ns = thread->off.base_ns + kernel_ns;
    thread->off.is_known = true;
    thread->off.epoch = epoch;
    thread->off.kernel_ns = kernel_ns;
    thread->off.account_ns = account_ns;
    // The account's own preempted time counts in any case: stops may not show in full in the collector's waits.
    thread->off.preempted_ns = (int64_t)(account_ns - preempted_ns) > 0 ? account_ns : preempted_ns;
}

void gp_thread_off_note_all(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE)
            gp_thread_off_note(thread);
}

static void thread_off_set_preempted(gp_ledger_t *ledger, uint64_t preempted_ns)
{
    uint64_t off_ns = thread_off_not_below_zero(ledger->slice_ns - ledger->cpu_ns);
    ledger->blocked_ns = off_ns - (preempted_ns < off_ns ? preempted_ns : off_ns);
}

bool gp_thread_off_read(gp_thread_t *thread, uint64_t now, gp_ledger_t *ledger)
{
    prof_coro_t *current;
    if (!gp_thread_off_is_ordinary(thread))
        return false;
    gp_thread_off_note(thread);
    gp_ledger_read(thread->root, now, ledger);
    uint64_t used_ns = gp_slice_open_ns(thread, &current);
    if (thread->off.is_known) {
        ledger->cpu_ns += used_ns;
        thread_off_set_preempted(ledger, thread->off.preempted_ns);
    } else {
        ledger->blocked_ns += gp_open_sleep_ns(thread, thread->root, now);
        ledger->cpu_ns += used_ns;
    }
    return true;
}

bool gp_thread_off_apply(const gp_thread_t *thread, gp_ledger_t *ledger)
{
    if (!gp_thread_off_is_ordinary(thread))
        return false;
    uint64_t account_ns = ledger->slice_ns - ledger->cpu_ns - ledger->blocked_ns;
    if (thread->off.is_known)
        thread_off_set_preempted(
            ledger, thread_off_not_below_zero(account_ns - thread->off.account_ns + thread->off.preempted_ns));
    return true;
}

void gp_thread_off_told(gp_thread_t *thread, uint64_t ns)
{
    if (!thread->off.is_known)
        gp_thread_off_note(thread);
    thread->off.told_ns += ns;
}

uint64_t gp_thread_off_untold(const gp_thread_t *thread)
{
    return thread->off.is_known ? thread_off_not_below_zero(thread->off.preempted_ns - thread->off.told_ns) : 0;
}

// How much longer the collector waited for processors since the reading before.
static uint64_t thread_off_own_delay_ns(uint64_t now)
{
    uint64_t before = own.delay_ns;
    if (!gp_task_run_delay(own.tid, &own.delay_ns))
        return UINT64_MAX;
    bool is_first = own.read_ns == 0;
    own.read_ns = now;
    return is_first || own.delay_ns < before ? UINT64_MAX : own.delay_ns - before;
}

// All of its time is sleep that it asked for, CPU time, or waiting for a processor; the rest it was stopped.
void gp_thread_off_slept(uint64_t since, uint64_t asked_ns)
{
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC), cpu_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t slept_ns = now - since < asked_ns ? now - since : asked_ns;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    if (own.tid != tid) {
        memset(&own, 0, sizeof(own));
        own.tid = tid;
        own.woke_ns = now;
    }
    uint64_t late_ns = thread_off_not_below_zero(now - own.woke_ns - slept_ns - (cpu_ns - own.cpu_ns));
    own.woke_ns = now;
    own.cpu_ns = cpu_ns;
    if (asked_ns == UINT64_MAX || (late_ns < LATE_NS && now - own.read_ns < BASE_OLD_NS))
        return;
    uint64_t delay_ns = thread_off_own_delay_ns(now);
    if (late_ns > STOP_NS && delay_ns < late_ns - STOP_NS)
        gp_slice_note_stop(late_ns - delay_ns);
}
