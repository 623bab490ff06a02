// SPDX-License-Identifier: MIT
// Threads that the program creates while greenprof is loaded: pthread_create is interposed, so that each has its
// alternate stack before its first coroutine runs. And greenprof's own threads, which are never sampled.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coro/registry.h"
#include "coro/threads.h"
#include "signal/mask.h"
#include "signal/ticks.h"

typedef int create_t(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// The program may have made the default stack as small as its own threads need; pages that are not touched cost
// nothing.
enum { OWN_STACK_BYTES = 1 << 20 };

static create_t *real_create;
static _Atomic pid_t own_threads[GP_THREADS_OWN_MAX];
static _Atomic uint64_t ended_cpu_ns; // of own threads that are gone

void gp_thread_own_stack(uintptr_t *lo, uintptr_t *hi)
{
    pthread_attr_t attr;
    void *address = NULL;
    size_t size = 0;
    *lo = *hi = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    pthread_attr_getstack(&attr, &address, &size);
    pthread_attr_destroy(&attr);
    *lo = (uintptr_t)address;
    *hi = (uintptr_t)address + size;
}

void gp_thread_hook_init(void)
{
    if (real_create == NULL)
        real_create = (create_t *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
}

bool gp_thread_is_own(pid_t tid)
{
    for (int i = 0; i < GP_THREADS_OWN_MAX; i++)
        if (atomic_load_explicit(&own_threads[i], memory_order_acquire) == tid)
            return true;
    return false;
}

int gp_thread_own_count(void)
{
    int count = 0;
    for (int i = 0; i < GP_THREADS_OWN_MAX; i++)
        count += atomic_load_explicit(&own_threads[i], memory_order_acquire) != 0;
    return count;
}

void gp_thread_own_ids(pid_t tids[GP_THREADS_OWN_MAX])
{
    for (int i = 0; i < GP_THREADS_OWN_MAX; i++)
        tids[i] = atomic_load_explicit(&own_threads[i], memory_order_acquire);
}

uint64_t gp_thread_own_cpu_ns(void)
{
    uint64_t sum = atomic_load_explicit(&ended_cpu_ns, memory_order_acquire);
    for (int i = 0; i < GP_THREADS_OWN_MAX; i++) {
        pid_t tid = atomic_load_explicit(&own_threads[i], memory_order_acquire);
        if (tid != 0)
            sum += gp_clock_ns(gp_thread_clock(tid));
    }
    return sum;
}

void gp_thread_forget_own(void)
{
    for (int i = 0; i < GP_THREADS_OWN_MAX; i++)
        atomic_store_explicit(&own_threads[i], 0, memory_order_relaxed);
    atomic_store_explicit(&ended_cpu_ns, 0, memory_order_relaxed);
}

static void own_set(pid_t from, pid_t to)
{
    for (int i = 0; i < GP_THREADS_OWN_MAX; i++) {
        pid_t expected = from;
        if (atomic_compare_exchange_strong_explicit(&own_threads[i], &expected, to, memory_order_acq_rel,
                                                    memory_order_relaxed))
            return;
    }
}

typedef struct own_start {
    void *(*run)(void *);
    void *argument;
    sem_t started;
} own_start_t;

static void *run_own(void *argument)
{
    own_start_t *start = argument;
    void *(*run)(void *) = start->run;
    void *run_argument = start->argument;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    own_set(0, tid);
    sem_post(&start->started);
    void *result = run(run_argument);
    own_set(tid, 0);
    atomic_fetch_add_explicit(&ended_cpu_ns, gp_clock_ns(CLOCK_THREAD_CPUTIME_ID), memory_order_release);
    return result;
}

static int create_own(own_start_t *start, pthread_t *thread)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int error = pthread_attr_init(&attr);
    if (error != 0)
        return error;
    pthread_attr_setstacksize(&attr, OWN_STACK_BYTES);
    sigfillset(&all);
    gp_mask_change(SIG_SETMASK, &all, &old);
    error = real_create(thread, &attr, run_own, start);
    gp_mask_change(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

int gp_thread_start_own(void *(*run)(void *), void *argument, void *pthread_out)
{
    gp_thread_hook_init();
    if (real_create == NULL)
        return -ENOSYS;
    own_start_t start = {.run = run, .argument = argument};
    int saved = errno, cancel;
    // The new thread works on this stack until it has posted: a cancelled caller must not leave before.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    sem_init(&start.started, 0, 0);
    int error = create_own(&start, pthread_out);
    // Until it has put its id on the list of own threads it could be taken for one of the program's.
    while (error == 0 && sem_wait(&start.started) < 0)
        errno = saved; // EINTR
    pthread_setcancelstate(cancel, NULL);
    return -error;
}

// A small allocation per thread start, from a list of reused cells: the host's malloc may itself create threads.
typedef struct cell {
    struct cell *next;
    void *(*run)(void *);
    void *argument;
    uint64_t mask_believed; // inherited, as the mask itself
} cell_t;

static cell_t cells[256], *free_cells;
static unsigned used_cells;
static pthread_mutex_t cells_lock = PTHREAD_MUTEX_INITIALIZER; // an innermost one

static cell_t *take_cell(void)
{
    gp_lock(&cells_lock);
    cell_t *cell = free_cells;
    if (cell != NULL)
        free_cells = cell->next;
    else if (used_cells < sizeof(cells) / sizeof(cells[0]))
        cell = &cells[used_cells++];
    gp_unlock(&cells_lock);
    return cell;
}

static void give_cell(cell_t *cell)
{
    gp_lock(&cells_lock);
    cell->next = free_cells;
    free_cells = cell;
    gp_unlock(&cells_lock);
}

void gp_threads_hold_starts(void)
{
    gp_lock(&cells_lock);
}

void gp_threads_let_starts_go(void)
{
    gp_unlock(&cells_lock);
}

GP_ENTRY_CODE static void *run_sampled(void *argument)
{
    cell_t cell = *(cell_t *)argument;
    give_cell(argument);
    gp_mask_believed = cell.mask_believed;
    gp_thread_attach();
    return cell.run(cell.argument);
}

extern const char __start_gp_thread_entry[], __stop_gp_thread_entry[]; // made by the linker

bool gp_thread_is_entry(uintptr_t pc)
{
    return pc >= (uintptr_t)__start_gp_thread_entry && pc < (uintptr_t)__stop_gp_thread_entry;
}

PROF_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument)
{
    gp_thread_hook_init();
    if (real_create == NULL)
        return ENOSYS;
    cell_t *cell = take_cell();
    if (cell == NULL) // hundreds of threads are just starting: this one is found at its first switch or by the sampler
        return real_create(thread, attr, run, argument);
    cell->run = run;
    cell->argument = argument;
    cell->mask_believed = gp_mask_believed;
    int error = real_create(thread, attr, run_sampled, cell);
    if (error != 0)
        give_cell(cell);
    return error;
}
