// SPDX-License-Identifier: MIT
#include "interpreter/gil.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "collect/lock_words.h"
#include "coro/threads.h"
#include "interpreter/frame_walk.h"
#include "interpreter/locks.h"
#include "interpreter/redirect.h"
#include "signal/gil_wait.h"
#include "signal/handler.h"

enum {
    LAST_HOLDER = 24, // before the condition variable of take_gil(): PyThreadState *
    LOCKED = 16,      // int
    GIVES = 64,
};

static uintptr_t runtime_lo, runtime_bytes;
static uintptr_t lock; // the condition variable of take_gil(), once it was waited for

typedef struct give {
    uint64_t ticks;
    uint32_t thread; // index of the one that gave the lock back
} give_t;

static give_t gives[GIVES];              // the latest ones, under the lock's mutex
static uint32_t give_count;              // in all
static _Atomic uint64_t given, switched; // ticks at which a thread that waits was woken up last, by either variable

static bool gil_is_locked(uintptr_t cond)
{
    return __atomic_load_n((const int *)(cond - LOCKED), __ATOMIC_RELAXED) == 1; // NOLINT(performance-no-int-to-ptr)
}

// The thread with the lock, which cannot end while the caller has the lock's mutex. 0 = none, or it is not known.
static uint32_t gil_taken_by(uintptr_t cond)
{
    // NOLINTBEGIN(performance-no-int-to-ptr)
    uintptr_t state = __atomic_load_n((const uintptr_t *)(cond - LAST_HOLDER), __ATOMIC_RELAXED);
    if (!gil_is_locked(cond) || state == 0)
        return 0;
    unsigned long tid = *(const unsigned long *)(state + gp_cpython_runtime.layout->state_native_id);
    // NOLINTEND(performance-no-int-to-ptr)
    const gp_thread_t *thread = gp_thread_find((pid_t)tid);
    return thread != NULL && thread != gp_thread_self ? thread->index : 0;
}

// Who had it longest in [since, now), going back from one that gave it to the one before. Under its mutex.
static uint32_t gil_holder(uintptr_t cond, uint64_t since, uint64_t now)
{
    uint32_t holder = gil_taken_by(cond), best = 0;
    uint64_t upto = now, longest = 0;
    for (uint32_t i = 0; i <= GIVES && upto > since; i++) {
        const give_t *give = &gives[(give_count - 1 - i) % GIVES];
        uint64_t from = i < GIVES && give->ticks > since ? give->ticks : since;
        if (holder != 0 && from < upto && upto - from > longest) {
            longest = upto - from;
            best = holder;
        }
        upto = from < upto ? from : upto;
        holder = give->thread;
    }
    return best;
}

static void gil_sample(gp_thread_t *thread, uint64_t now)
{
    uintptr_t *frames = thread->parked_frames;
    unsigned flags = 0;
    size_t first = thread->gil.holder != 0, max = atomic_load_explicit(&gp_handler_depth, memory_order_relaxed);
    if (first != 0)
        frames[0] = gp_lock_word_thread(thread->gil.holder);
    size_t depth = gp_cpython_walk_own(frames + first, max - first, &flags);
    gp_gil_wait_sample(thread, now, frames, depth + first, flags);
}

// The calling thread, where its waits are recorded; NULL = they are not, or it waits for something else.
static gp_thread_t *gil_waiting_thread(const void *cond, const void *mutex)
{
    bool is_lock =
        (uintptr_t)cond - runtime_lo < runtime_bytes && (uintptr_t)mutex - (uintptr_t)cond == sizeof(pthread_cond_t);
    gp_thread_t *thread =
        is_lock && atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed) ? gp_thread_self : NULL;
    return thread != NULL && thread->root != NULL ? thread : NULL;
}

// How long ago the thread could have gone on, ticks: a processor was not free, or its timer was late.
static uint64_t gil_late(const gp_thread_t *thread, uint64_t now, uint64_t woken, const struct timespec *timed_out)
{
    uint64_t since = atomic_load_explicit(&thread->gil.since, memory_order_relaxed);
    if (timed_out == NULL)
        return woken > since && woken < now ? now - woken : 0;
    uint64_t now_ns = gp_clock_ns(CLOCK_MONOTONIC),
             due_ns = (uint64_t)timed_out->tv_sec * 1000000000u + (uint64_t)timed_out->tv_nsec;
    uint64_t late = now_ns > due_ns ? gp_ticks_from_ns(now_ns - due_ns) : 0;
    return late < now - since ? late : now - since;
}

static void gil_over(gp_thread_t *thread, const gp_gil_wait_t *wait)
{
    if (gp_gil_wait_end(thread, wait) && gp_cpython_runtime.is_trusted)
        gil_sample(thread, wait->now);
}

static int gil_on_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    gp_thread_t *thread = gil_waiting_thread(cond, mutex);
    if (thread == NULL)
        return pthread_cond_timedwait(cond, mutex, until);
    uint64_t since = gp_ticks();
    lock = (uintptr_t)cond;
    gp_gil_wait_begin(thread, since);
    int result = pthread_cond_timedwait(cond, mutex, until);
    gp_gil_wait_t wait = {.now = gp_ticks(), .goes_on = result == ETIMEDOUT && gil_is_locked(lock)};
    wait.late = gil_late(thread, wait.now, gp_ledger_edge_load(&given), result == ETIMEDOUT ? until : NULL);
    wait.holder = gil_holder(lock, since, wait.now);
    gil_over(thread, &wait);
    return result;
}

// In drop_gil(): its caller goes on once another thread has the lock.
static int gil_on_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    gp_thread_t *thread = gil_waiting_thread(cond, mutex);
    if (thread == NULL)
        return pthread_cond_wait(cond, mutex);
    gp_gil_wait_begin(thread, gp_ticks());
    int result = pthread_cond_wait(cond, mutex);
    gp_gil_wait_t wait = {.now = gp_ticks()};
    wait.late = gil_late(thread, wait.now, gp_ledger_edge_load(&switched), NULL);
    gil_over(thread, &wait);
    return result;
}

static int gil_on_signal(pthread_cond_t *cond)
{
    if ((uintptr_t)cond - runtime_lo >= runtime_bytes ||
        !atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed))
        return pthread_cond_signal(cond);
    uint64_t now = gp_ticks();
    gp_ledger_edge_store((uintptr_t)cond == lock ? &given : &switched, now);
    if ((uintptr_t)cond == lock)
        gives[give_count++ % GIVES] = (give_t){now, gp_thread_self != NULL ? gp_thread_self->index : 0};
    return pthread_cond_signal(cond);
}

void gp_gil_follow(bool is_attached)
{
    static const gp_redirection_t in[] = {
        {"pthread_cond_timedwait", (void *)(uintptr_t)gil_on_timedwait},
        {"pthread_cond_wait", (void *)(uintptr_t)gil_on_wait},
        {"pthread_cond_signal", (void *)(uintptr_t)gil_on_signal},
    };
    static const gp_redirection_t out[] = {
        {"pthread_cond_timedwait", (void *)(uintptr_t)pthread_cond_timedwait},
        {"pthread_cond_wait", (void *)(uintptr_t)pthread_cond_wait},
        {"pthread_cond_signal", (void *)(uintptr_t)pthread_cond_signal},
    };
    if (runtime_bytes == 0)
        return;
    gp_locks_follow(is_attached);
    gp_redirect((const void *)gp_cpython_runtime.loop, // NOLINT(performance-no-int-to-ptr)
                is_attached ? in : out, sizeof(in) / sizeof(in[0]));
}

void gp_gil_watch(const void *runtime)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    if (runtime_bytes != 0 || runtime == NULL || dladdr1(runtime, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 ||
        symbol == NULL)
        return;
    runtime_lo = (uintptr_t)runtime;
    runtime_bytes = symbol->st_size;
    gp_gil_follow(true);
}
