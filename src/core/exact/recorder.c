// SPDX-License-Identifier: MIT
#include "exact/recorder.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exact/exact_collect.h"
#include "exact/exact_memory.h"
#include "signal/language.h"
#include "signal/ticks.h"

enum { GAP_NS = 20000, QUIET_SPINS = 64, QUIET_SLEEPS = 200, QUIET_SLEEP_NS = 50000 };

_Atomic uint64_t gp_exact_epoch = GP_EXACT_EPOCH_FIRST;
uint64_t gp_exact_gap_ticks;
gp_exact_t *gp_exact_broad;

static gp_exact_guard_t fork_guard;
static uint64_t last_run;

gp_exact_t *gp_exact_new(prof_scope_t scope)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    gp_exact_t *recorder = gp_exact_alloc(sizeof(*recorder));
    gp_exact_tree_t *total = recorder != NULL ? gp_exact_tree_new(NULL) : NULL;
    if (total != NULL) {
        recorder->scope = scope;
        recorder->total = total;
    } else {
        gp_exact_release(recorder, sizeof(*recorder));
        recorder = NULL;
    }
    gp_exact_unlock(&guard);
    return recorder;
}

static void recorder_free_trees(gp_exact_t *recorder)
{
    while (recorder->trees != NULL) {
        gp_exact_tree_t *tree = recorder->trees;
        recorder->trees = tree->next;
        gp_exact_tree_free(tree);
    }
}

void gp_exact_free(gp_exact_t *recorder)
{
    gp_exact_guard_t guard;
    if (recorder == NULL)
        return;
    gp_exact_lock(&guard);
    recorder_free_trees(recorder);
    gp_exact_tree_free(recorder->total);
    gp_exact_release(recorder, sizeof(*recorder));
    gp_exact_unlock(&guard);
}

static void recorder_begin_run(gp_exact_t *recorder)
{
    recorder->run = last_run += 2;
    recorder->run++;
    if (recorder->scope != PROF_SCOPE_REQUEST) {
        recorder->next = gp_exact_broad;
        gp_exact_broad = recorder;
    }
    __atomic_fetch_add(&prof_exact_active, 1, __ATOMIC_RELAXED);
    atomic_fetch_add_explicit(&gp_language_recorders, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&gp_exact_epoch, 1, memory_order_release);
}

static void recorder_end_run(gp_exact_t *recorder)
{
    recorder->run++;
    for (gp_exact_t **at = &gp_exact_broad; *at != NULL; at = &(*at)->next) {
        if (*at == recorder) {
            *at = recorder->next;
            break;
        }
    }
    __atomic_fetch_sub(&prof_exact_active, 1, __ATOMIC_RELAXED);
    atomic_fetch_sub_explicit(&gp_language_recorders, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&gp_exact_epoch, 1, memory_order_release);
}

void gp_exact_start(gp_exact_t *recorder, uint32_t thread_index)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    gp_exact_gap_ticks = gp_ticks_from_ns(GAP_NS);
    recorder->thread_index = thread_index;
    recorder_begin_run(recorder);
    gp_exact_unlock(&guard);
}

static void recorder_sleep_ns(long ns)
{
    struct timespec time = {.tv_nsec = ns};
    nanosleep(&time, NULL);
}

// A full barrier on every running thread of the process: cheaper than one in every event.
static void recorder_barrier_everywhere(void)
{
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
        syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        return;
    recorder_sleep_ns(QUIET_SLEEP_NS); // no store stays in a processor's buffer for so long
}

// The stack on which `thread` is in an event, or NULL.
static gp_exact_stack_t *recorder_busy_on(gp_thread_t *thread)
{
    gp_exact_stack_t *stack = atomic_load_explicit(&thread->exact.busy, memory_order_acquire);
    if (stack == NULL || !gp_exact_is_busy(stack))
        stack = atomic_load_explicit(&thread->exact.stack, memory_order_acquire);
    return stack != NULL && gp_exact_is_busy(stack) ? stack : NULL;
}

// Wait until no thread is in an event that may have begun before the epoch moved. A preempted one is waited for, within
// limits: a coroutine that a signal handler switched away from in the middle of an event may not come back.
static void recorder_quiesce(void)
{
    recorder_barrier_everywhere();
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (int sleeps = 0; thread != NULL; thread = thread->next) {
        const gp_exact_stack_t *busy = recorder_busy_on(thread), *now = busy;
        if (busy == NULL || thread == gp_thread_self)
            continue;
        for (int spins = 0; now == busy && sleeps < QUIET_SLEEPS; spins++) {
            if (spins < QUIET_SPINS) {
                sched_yield();
            } else {
                recorder_sleep_ns(QUIET_SLEEP_NS);
                sleeps++;
            }
            now = recorder_busy_on(thread);
        }
    }
}

void gp_exact_stop(gp_exact_t *recorder)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    uint64_t run = recorder->run;
    recorder_end_run(recorder);
    gp_exact_unlock(&guard);
    recorder_quiesce();
    gp_exact_lock(&guard);
    gp_exact_sum_run(recorder->total, recorder, run);
    recorder_free_trees(recorder);
    gp_exact_unlock(&guard);
}

void gp_exact_restart(gp_exact_t *recorder)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    recorder_end_run(recorder);
    gp_exact_unlock(&guard);
    recorder_quiesce();
    gp_exact_lock(&guard);
    gp_exact_tree_t *blank = gp_exact_tree_new(NULL);
    if (blank != NULL) {
        gp_exact_tree_free(recorder->total);
        recorder->total = blank;
    }
    recorder_free_trees(recorder);
    recorder_begin_run(recorder);
    gp_exact_unlock(&guard);
}

void gp_exact_before_fork(void)
{
    gp_exact_lock(&fork_guard);
}

void gp_exact_after_fork(bool child)
{
    if (child)
        gp_exact_forget_others();
    gp_exact_unlock(&fork_guard);
}
