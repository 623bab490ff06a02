// SPDX-License-Identifier: MIT
// 64 concurrent requests, each a ucontext coroutine with a function of its own, profiled by prof_start() and
// prof_stop(). Every fourth spawns a child coroutine that belongs to it. They take turns, and each is dumped on its
// own.
//   requests DIRECTORY [THREADS]
#include "truth.h"

#include "../context.h"
#include <errno.h>
#include <pthread.h>

#include <greenprof/prof.h>

enum { REQUESTS = 64, STACK_BYTES = 65536, SLICES = 20, THREADS_MAX = 8 };
enum { SLICE_NS = 2500000 };

#define EIGHT(apply, n) apply(n##0) apply(n##1) apply(n##2) apply(n##3) apply(n##4) apply(n##5) apply(n##6) apply(n##7)
#define ALL(apply)                                                                                                     \
    EIGHT(apply, 0)                                                                                                    \
    EIGHT(apply, 1) EIGHT(apply, 2) EIGHT(apply, 3) EIGHT(apply, 4) EIGHT(apply, 5) EIGHT(apply, 6) EIGHT(apply, 7)
#define WORK_OF(n) WORK(request_##n)
ALL(WORK_OF)
#define NAME_OF(n) work_request_##n,
static void (*const works[REQUESTS])(uint64_t) = {ALL(NAME_OF)};
#define BOOK_OF(n) &request_##n##_ns,
static uint64_t *const books[REQUESTS] = {ALL(BOOK_OF)};
WORK(between) // in no request

typedef struct job {
    ucontext_t context, *home;
    int id, is_child, done;
    struct job *next;
    uint64_t entered_ns, cpu_ns; // of the request, its child included
} job_t;

static job_t jobs[REQUESTS], children[REQUESTS];
static job_t *ready_first, **ready_last = &ready_first;
static int unfinished = REQUESTS, failures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *directory;

static void fail(const char *what, int error)
{
    fprintf(stderr, "requests: %s: %s\n", what, strerror(error));
    failures++;
}

static void put(job_t *job)
{
    pthread_mutex_lock(&lock);
    if (job->done) {
        unfinished--;
    } else {
        job->next = NULL;
        *ready_last = job;
        ready_last = &job->next;
    }
    pthread_mutex_unlock(&lock);
}

static job_t *take(int *left)
{
    pthread_mutex_lock(&lock);
    job_t *job = ready_first;
    *left = unfinished;
    if (job != NULL && (ready_first = job->next) == NULL)
        ready_last = &ready_first;
    pthread_mutex_unlock(&lock);
    return job;
}

static void yield(job_t *job)
{
    swapcontext(&job->context, job->home);
}

static void start_job(job_t *job, void (*entry)(int), int id)
{
    job->id = id;
    context_on(&job->context, malloc(STACK_BYTES), STACK_BYTES, NULL);
    makecontext(&job->context, (void (*)(void))entry, 1, id);
    put(job);
}

static void child_run(int id)
{
    job_t *job = &children[id];
    for (int i = 0; i < SLICES; i++) {
        works[id](SLICE_NS / 2);
        yield(job);
    }
    job->done = 1;
    __atomic_store_n(&jobs[id].is_child, 0, __ATOMIC_RELEASE);
    for (;;)
        yield(job);
}

static void dump(prof_t *profile, int id)
{
    char path[512];
    int error;
    snprintf(path, sizeof(path), "%s/%02o.folded", directory, id);
    if ((error = prof_dump(profile, "folded", path)) != 0)
        fail(path, -error);
    snprintf(path, sizeof(path), "%s/%02o.prof", directory, id);
    if ((error = prof_dump_stats(profile, path)) != 0)
        fail(path, -error);
}

static void request_run(int id)
{
    job_t *job = &jobs[id];
    prof_options_t options = PROF_OPTIONS_INIT;
    char name[32];
    work_between(300000);
    snprintf(name, sizeof(name), "request %02o", id);
    options.name = name;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        fail("prof_start", errno);
    if (id % 4 == 0) {
        pthread_mutex_lock(&lock);
        unfinished++;
        pthread_mutex_unlock(&lock);
        job->is_child = 1;
        start_job(&children[id], child_run, id);
    }
    for (int i = 0; i < SLICES; i++) {
        works[id](SLICE_NS);
        yield(job);
    }
    while (__atomic_load_n(&job->is_child, __ATOMIC_ACQUIRE))
        yield(job);
    int error = prof_stop(profile);
    if (error != 0)
        fail("prof_stop", -error);
    work_between(300000);
    dump(profile, id);
    prof_free(profile);
    job->done = 1;
    for (;;)
        yield(job);
}

static void *serve(void *unused)
{
    ucontext_t home;
    int left;
    truth_thread_begin();
    do {
        job_t *job = take(&left);
        if (job == NULL) {
            usleep(200);
            continue;
        }
        job->home = &home;
        swapcontext(&home, &job->context);
        put(job);
    } while (left > 0);
    truth_thread_end();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    truth_thread_begin();
    if (argc < 2)
        return 2;
    directory = argv[1];
    int count = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = 0; i < REQUESTS; i++)
        start_job(&jobs[i], request_run, i);
    for (int i = 0; i < count - 1 && i < THREADS_MAX; i++)
        pthread_create(&threads[i], NULL, serve, NULL);
    serve(NULL);
    for (int i = 0; i < count - 1 && i < THREADS_MAX; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < REQUESTS; i++)
        printf("EXPECT work_request_%02o %.6f\n", i, truth_seconds(*books[i]));
    EXPECT(between);
    truth_print_total();
    return failures != 0;
}
