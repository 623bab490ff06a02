// SPDX-License-Identifier: MIT
// Threads of greenprof's own: never sampled, and out of the way for a moment where the program must have one thread.
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/own_thread.h"
#include "coro/own_list.h"
#include "coro/threads.h"
#include "coro/tsan_hints.h"
#include "model/own_name.h"
#include "signal/mask.h"
#include "signal/ticks.h"

enum {
    // The program may have made the default stack as small as its own threads need; pages that are not touched cost
    // nothing.
    STACK_BYTES = 1 << 20,
    PATIENCE_NS = 1000000000,
    STEP_NS = 100000,
};

static _Atomic int staying;
static _Atomic uint64_t ended_cpu_ns; // of those that leave or are gone
static _Atomic bool is_ending;
static bool is_forked;

typedef struct returning { // one that has ended, and is to begin anew
    void *(*run)(void *);
    void *argument;
} returning_t;

static pthread_mutex_t returning_lock = PTHREAD_MUTEX_INITIALIZER; // an innermost one
static returning_t returning[GP_OWN_LIST_MAX];
static int returning_count;

// Source: capget(2): of any thread of the process.
static bool helper_threads_rights(pid_t tid, struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3])
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = tid};
    return syscall(SYS_capget, &header, rights) == 0;
}

bool gp_thread_helper_differ(void)
{
    struct __user_cap_data_struct mine[_LINUX_CAPABILITY_U32S_3], its[_LINUX_CAPABILITY_U32S_3];
    int saved = errno;
    bool differ = !helper_threads_rights(0, mine);
    for (int i = 0; i < GP_OWN_LIST_MAX; i++) {
        pid_t tid = gp_own_list_id(i);
        if (tid > 0)
            differ |= !helper_threads_rights(tid, its) || memcmp(mine, its, sizeof(mine)) != 0;
    }
    errno = saved;
    return differ;
}

int gp_thread_helper_staying(void)
{
    return atomic_load_explicit(&staying, memory_order_acquire);
}

uint64_t gp_thread_helper_cpu_ns(void)
{
    uint64_t sum = atomic_load_explicit(&ended_cpu_ns, memory_order_acquire);
    for (int i = 0; i < GP_OWN_LIST_MAX; i++) {
        pid_t tid = gp_own_list_id(i);
        if (tid > 0)
            sum += gp_clock_ns(gp_thread_clock(tid));
    }
    return sum;
}

void gp_thread_forget_own(void)
{
    gp_own_list_forget();
    atomic_store_explicit(&staying, 0, memory_order_relaxed);
    atomic_store_explicit(&ended_cpu_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&is_ending, false, memory_order_relaxed);
    returning_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    returning_count = 0;
    is_forked = true;
}

// A program's ThreadSanitizer hears of what is called here, memcpy() for one, and not of what orders it: this library
// is not instrumented. So it is told to look away; and it must have begun a thread itself to take any call of it. In a
// child of fork() it ends the process where a thread is begun. Source: the dynamic annotations, which gcc's and clang's
// runtimes have.
extern void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
extern void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));

static bool helper_threads_is_checked(void)
{
#ifdef __SANITIZE_THREAD__ // it is instrumented
    return false;
#else
    return gp_tsan_hints_is_there() && AnnotateIgnoreReadsBegin != NULL && AnnotateIgnoreReadsEnd != NULL &&
           AnnotateIgnoreWritesBegin != NULL && AnnotateIgnoreWritesEnd != NULL;
#endif
}

static void *helper_threads_run_unchecked(void *(*run)(void *), void *argument)
{
    if (!helper_threads_is_checked())
        return run(argument);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    void *result = run(argument);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    return result;
}

static _Atomic bool hurries;

void gp_thread_helper_hurry(bool is_urgent)
{
    atomic_store_explicit(&hurries, is_urgent, memory_order_relaxed);
}

// Where more threads want to run than there are processors, a thread with short turns gets them sooner: its work takes
// a fraction of a millisecond, and its share of the processors stays the same. Source: sched_setattr(2), sched_runtime
// of SCHED_OTHER; Linux 6.12, others ignore it.
static void helper_threads_ask_for_short_turns(void)
{
    enum { TURN_NS = 100000 };
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof(attributes)};
    if (atomic_load_explicit(&hurries, memory_order_relaxed) &&
        syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0 && attributes.policy == SCHED_OTHER) {
        attributes.size = sizeof(attributes);
        attributes.flags = 0;
        attributes.runtime = TURN_NS;
        syscall(SYS_sched_setattr, 0, &attributes, 0);
    }
}

static cpu_set_t first_processors; // of the program as it was loaded; none = not known
static int first_nice;

void gp_thread_helper_note(void)
{
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, (id_t)getpid());
    first_nice = errno == 0 ? nice : 0;
    if (sched_getaffinity(getpid(), sizeof(first_processors), &first_processors) != 0)
        CPU_ZERO(&first_processors);
}

// A program may give its thread a processor, real-time priority or a place before others. Greenprof's threads do not
// inherit these: they would keep a pinned thread from its processor, and wait for ever behind real-time priority.
static void helper_threads_stand_back(void)
{
    const struct sched_param none = {0};
    cpu_set_t mine;
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    // First: without priority it may have no turn where it is.
    if (CPU_COUNT(&first_processors) > 0 && sched_getaffinity(0, sizeof(mine), &mine) == 0 &&
        !CPU_EQUAL(&mine, &first_processors))
        sched_setaffinity(0, sizeof(first_processors), &first_processors);
    if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE)
        sched_setscheduler(0, SCHED_OTHER, &none);
    if (getpriority(PRIO_PROCESS, 0) < first_nice) // Linux: of the thread
        setpriority(PRIO_PROCESS, 0, first_nice);
}

static _Atomic bool is_named;

void gp_thread_helper_be_named(bool are_named)
{
    atomic_store_explicit(&is_named, are_named, memory_order_relaxed);
}

// A program's AddressSanitizer is to know of these threads: it gives each a heap of its own, and a stack without the
// marks of a thread that fork() left behind.
extern void __asan_init(void) __attribute__((weak));

typedef struct start {
    void *(*run)(void *);
    void *argument;
    bool stays;
    sem_t started;
} start_t;

// Returns false where it may stay after all.
static bool helper_threads_leaves(const start_t *start)
{
    pthread_mutex_lock(&returning_lock);
    bool leaves = atomic_load_explicit(&is_ending, memory_order_acquire);
    if (leaves && returning_count < GP_OWN_LIST_MAX)
        returning[returning_count++] = (returning_t){start->run, start->argument};
    pthread_mutex_unlock(&returning_lock);
    return leaves;
}

static void *helper_threads_run_own(void *argument)
{
    start_t *start = argument, mine = {.run = start->run, .argument = start->argument, .stays = start->stays};
    pid_t tid = (pid_t)syscall(SYS_gettid);
    gp_own_list_change(0, tid);
    gp_own_list_begins(-1);
    sem_post(&start->started);
    if (atomic_load_explicit(&is_named, memory_order_relaxed))
        syscall(SYS_prctl, PR_SET_NAME, GP_OWN_NAME, 0, 0, 0);
    helper_threads_stand_back();
    helper_threads_ask_for_short_turns();
    gp_thread_hides_what_it_creates(); // a library that looks up a host's name, for one
    void *result;
    do
        result = helper_threads_run_unchecked(mine.run, mine.argument);
    while (result == GP_THREAD_RETURNS && !helper_threads_leaves(&mine));
    if (mine.stays)
        atomic_fetch_sub_explicit(&staying, 1, memory_order_release);
    gp_own_list_change(tid, -tid);
    atomic_fetch_add_explicit(&ended_cpu_ns, gp_clock_ns(CLOCK_THREAD_CPUTIME_ID), memory_order_release);
    return result;
}

static int helper_threads_create(start_t *start, pthread_t *thread)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int error = pthread_attr_init(&attr);
    if (error != 0)
        return error;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    gp_mask_change(SIG_SETMASK, &all, &old);
    error = gp_thread_create_unseen(thread, &attr, helper_threads_run_own, start,
                                    helper_threads_is_checked() || __asan_init != NULL);
    gp_mask_change(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

static int helper_threads_begin(start_t *start, void *pthread_out)
{
    int saved = errno, cancel;
    if (is_forked && helper_threads_is_checked())
        return -ENOTSUP;
    // The new thread works on this stack until it has posted: a cancelled caller must not leave before.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    sem_init(&start->started, 0, 0);
    gp_thread_helper_let_go(); // there is room
    atomic_fetch_add_explicit(&staying, start->stays, memory_order_relaxed);
    gp_own_list_begins(1);
    int error = helper_threads_create(start, pthread_out);
    if (error != 0) {
        gp_own_list_begins(-1);
        atomic_fetch_sub_explicit(&staying, start->stays, memory_order_relaxed);
    }
    // Until it has put its id on the list of own threads it could be taken for one of the program's.
    while (error == 0 && sem_wait(&start->started) < 0)
        errno = saved; // EINTR
    pthread_setcancelstate(cancel, NULL);
    return -error;
}

int gp_thread_start_own(void *(*run)(void *), void *argument, void *pthread_out)
{
    return helper_threads_begin(&(start_t){.run = run, .argument = argument}, pthread_out);
}

int gp_thread_start_staying(void *(*run)(void *), void *argument, void *pthread_out)
{
    return helper_threads_begin(&(start_t){.run = run, .argument = argument, .stays = true}, pthread_out);
}

bool gp_thread_helper_may_stay(void)
{
    return !atomic_load_explicit(&is_ending, memory_order_acquire);
}

bool gp_thread_end_own(void (*wake)(void))
{
    static _Atomic uint32_t never;
    uint64_t start = gp_clock_ns(CLOCK_MONOTONIC);
    int caller = gp_thread_is_own((pid_t)syscall(SYS_gettid));
    atomic_store_explicit(&is_ending, true, memory_order_release);
    while (gp_thread_helper_count() > caller) {
        if (gp_clock_ns(CLOCK_MONOTONIC) - start > PATIENCE_NS)
            return false;
        wake();
        gp_futex_wait(&never, 0, STEP_NS);
    }
    return true;
}

void gp_thread_let_own_begin(void)
{
    returning_t anew[GP_OWN_LIST_MAX];
    pthread_t thread;
    pthread_mutex_lock(&returning_lock);
    atomic_store_explicit(&is_ending, false, memory_order_release);
    int count = returning_count;
    memcpy(anew, returning, sizeof(anew));
    returning_count = 0;
    pthread_mutex_unlock(&returning_lock);
    for (int i = 0; i < count; i++)
        if (gp_thread_start_own(anew[i].run, anew[i].argument, &thread) == 0)
            pthread_detach(thread);
}
