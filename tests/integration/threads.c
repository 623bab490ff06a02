// SPDX-License-Identifier: MIT
// Threads in all their ways of coming and going, and coroutines that move between them.
//   threads migrate | churn | kinds | space
#include "truth.h"

#include "../context.h"
#include <pthread.h>

static void check_error(int error)
{
    if (error != 0) {
        fprintf(stderr, "pthreads: %s\n", strerror(error));
        exit(3);
    }
}

// migrate: 8 coroutines, each with a function of its own, resumed by whichever of 4 threads comes first.

enum { THREADS = 4, COROUTINES = 8, STACK_BYTES = 65536, ROUNDS = 300 };

#define EIGHT(apply) apply(0) apply(1) apply(2) apply(3) apply(4) apply(5) apply(6) apply(7)
#define WORK_OF(n)   WORK(moving_##n)
EIGHT(WORK_OF)
#define NAME_OF(n) work_moving_##n,
static void (*const works[COROUTINES])(uint64_t) = {EIGHT(NAME_OF)};

typedef struct mover {
    ucontext_t context;
    ucontext_t *home; // the context that resumed it; set by the resuming thread
    uint64_t cpu_ns, switches, entered_ns;
    int rounds_left;
    struct mover *next;
} mover_t;

static mover_t movers[COROUTINES];
static mover_t *ready_first, **ready_last = &ready_first;
static int unfinished = COROUTINES;
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;

static void mover_run(int id)
{
    mover_t *self = &movers[id];
    for (;;) {
        works[id]((uint64_t)(id + 1) * 150000);
        self->rounds_left--;
        self->cpu_ns += truth_cpu_ns() - self->entered_ns;
        swapcontext(&self->context, self->home);
    }
}

#define ENTRY_OF(n)                                                                                                    \
    static void entry_##n(void)                                                                                        \
    {                                                                                                                  \
        mover_run(n);                                                                                                  \
    }
EIGHT(ENTRY_OF)
#define ENTRY_NAME(n) entry_##n,
static void (*const entries[COROUTINES])(void) = {EIGHT(ENTRY_NAME)};

static mover_t *take_ready(int *left)
{
    pthread_mutex_lock(&ready_lock);
    mover_t *mover = ready_first;
    *left = unfinished;
    if (mover != NULL) {
        ready_first = mover->next;
        if (ready_first == NULL)
            ready_last = &ready_first;
    }
    pthread_mutex_unlock(&ready_lock);
    return mover;
}

static void put_ready(mover_t *mover)
{
    pthread_mutex_lock(&ready_lock);
    if (mover->rounds_left > 0) {
        mover->next = NULL;
        *ready_last = mover;
        ready_last = &mover->next;
    } else {
        unfinished--;
    }
    pthread_mutex_unlock(&ready_lock);
}

static void *carry(void *unused)
{
    ucontext_t home;
    int left;
    truth_thread_begin();
    do {
        mover_t *mover = take_ready(&left);
        if (mover == NULL) {
            usleep(200);
            continue;
        }
        mover->home = &home;
        mover->switches++;
        mover->entered_ns = truth_cpu_ns();
        swapcontext(&home, &mover->context);
        put_ready(mover);
    } while (left > 0);
    truth_thread_end();
    return unused;
}

static void migrate(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < COROUTINES; i++) {
        mover_t *mover = &movers[i];
        mover->rounds_left = ROUNDS;
        context_on(&mover->context, malloc(STACK_BYTES), STACK_BYTES, NULL);
        makecontext(&mover->context, entries[i], 0);
        put_ready(mover);
    }
    for (int i = 0; i < THREADS; i++)
        check_error(pthread_create(&threads[i], NULL, carry, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
#define EXPECT_OF(n) EXPECT(moving_##n);
    EIGHT(EXPECT_OF)
    for (int i = 0; i < COROUTINES; i++)
        printf("COROUTINE entry_%d %.6f %llu\n", i, truth_seconds(movers[i].cpu_ns),
               (unsigned long long)movers[i].switches);
}

// churn: hundreds of threads that live for a few milliseconds.

enum { CHURN = 400, AT_ONCE = 4 };

WORK(even)
WORK(odd)

static void *short_life(void *number)
{
    truth_thread_begin();
    if ((uintptr_t)number % 2)
        work_odd(3000000);
    else
        work_even(6000000);
    truth_thread_end();
    return NULL;
}

static void churn(void)
{
    pthread_t threads[AT_ONCE];
    for (uintptr_t i = 0; i < CHURN; i += AT_ONCE) {
        for (uintptr_t j = 0; j < AT_ONCE; j++)
            check_error(pthread_create(&threads[j], NULL, short_life, (void *)(i + j)));
        for (int j = 0; j < AT_ONCE; j++)
            pthread_join(threads[j], NULL);
    }
    EXPECT(even);
    EXPECT(odd);
}

// kinds: named, detached, ended by pthread_exit() far down, on a small stack, with a coroutine of its own, cancelled.

WORK(named)
WORK(detached)
WORK(exiting)
WORK(small)
WORK(hosting)
WORK(cancelled)

static int detached_done;

static void *named(void *unused)
{
    truth_thread_begin();
    pthread_setname_np(pthread_self(), "fish");
    work_named(400000000);
    truth_thread_end();
    return unused;
}

static void *detached(void *unused)
{
    truth_thread_begin();
    pthread_detach(pthread_self());
    work_detached(400000000);
    truth_thread_end();
    __atomic_store_n(&detached_done, 1, __ATOMIC_RELEASE);
    return unused;
}

static volatile int leave_returns; // never; the compiler need not know

static TRUTH_OUT_OF_LINE void leave(int depth)
{
    volatile char room[64] = {(char)depth};
    if (depth > 0) {
        leave(depth - 1);
        (void)room[0];
        return;
    }
    work_exiting(400000000);
    truth_thread_end();
    if (!leave_returns)
        pthread_exit(NULL);
}

static void *exiting(void *unused)
{
    truth_thread_begin();
    leave(20);
    return unused;
}

static void *small(void *unused)
{
    truth_thread_begin();
    work_small(400000000);
    truth_thread_end();
    return unused;
}

static ucontext_t host_loop, hosted;

static void hosted_entry(void)
{
    work_hosting(400000000);
}

static void *hosting(void *unused)
{
    static char stack[STACK_BYTES];
    truth_thread_begin();
    context_on(&hosted, stack, sizeof(stack), &host_loop);
    makecontext(&hosted, hosted_entry, 0);
    swapcontext(&host_loop, &hosted);
    truth_thread_end();
    return unused;
}

static void *cancelled(void *unused)
{
    truth_thread_begin();
    work_cancelled(400000000);
    truth_thread_end();
    for (;;)
        pause();
    return unused;
}

static void kinds(void)
{
    pthread_t threads[5], unjoined;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 32768);
    check_error(pthread_create(&threads[0], NULL, named, NULL));
    check_error(pthread_create(&unjoined, NULL, detached, NULL));
    check_error(pthread_create(&threads[1], NULL, exiting, NULL));
    check_error(pthread_create(&threads[2], &attr, small, NULL));
    check_error(pthread_create(&threads[3], NULL, hosting, NULL));
    check_error(pthread_create(&threads[4], NULL, cancelled, NULL));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    while (__atomic_load_n(&cancelled_ns, __ATOMIC_ACQUIRE) == 0 || !__atomic_load_n(&detached_done, __ATOMIC_ACQUIRE))
        usleep(10000);
    usleep(50000);
    pthread_cancel(threads[4]);
    pthread_join(threads[4], NULL);
    EXPECT(named);
    EXPECT(detached);
    EXPECT(exiting);
    EXPECT(small);
    EXPECT(hosting);
    EXPECT(cancelled);
}

// space: threads without allocations: address space of the process with them.

enum { PLAIN = 50 };

static pthread_barrier_t plain_are_there, plain_may_go;

static void *plain(void *unused)
{
    truth_thread_begin();
    work_even(10000000);
    pthread_barrier_wait(&plain_are_there);
    pthread_barrier_wait(&plain_may_go);
    truth_thread_end();
    return unused;
}

static void print_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1)
        exit(3);
    fclose(file);
    printf("SPACE_MB %lu\n", pages * (unsigned long)sysconf(_SC_PAGESIZE) >> 20);
}

static void space(void)
{
    pthread_t ids[PLAIN];
    pthread_barrier_init(&plain_are_there, NULL, PLAIN + 1);
    pthread_barrier_init(&plain_may_go, NULL, PLAIN + 1);
    for (int i = 0; i < PLAIN; i++)
        check_error(pthread_create(&ids[i], NULL, plain, NULL));
    pthread_barrier_wait(&plain_are_there);
    print_space();
    pthread_barrier_wait(&plain_may_go);
    for (int i = 0; i < PLAIN; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "migrate") == 0)
        migrate();
    else if (strcmp(argv[1], "churn") == 0)
        churn();
    else if (strcmp(argv[1], "kinds") == 0)
        kinds();
    else if (strcmp(argv[1], "space") == 0)
        space();
    else
        return 2;
    truth_print_total();
    return 0;
}
