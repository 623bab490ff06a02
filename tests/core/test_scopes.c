// SPDX-License-Identifier: MIT
// Request profiles on ucontext coroutines: 64 overlapping requests each get their own work, also what they spawn and
// also when coroutines migrate between threads.
#include "../context.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../measured.h"
#include "cmocka_all.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"
#include "greenprof/trace.h"
#include "work.h"

enum { REQUESTS = 64, SLICES = 20, STACK = 65536, SLICE_NS = 300000 };

typedef struct request {
    ucontext_t context, child;
    ucontext_t *volatile loop;
    prof_t *profile;
    uint64_t used_ns, total_ns;
    int index, done;
    char *stack, *child_stack;
    prof_trace_id_t trace, seen_by_child;
} request_t;

static request_t requests[REQUESTS];

static void *make_stack(void)
{
    return mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void pause_request(request_t *request)
{
    swapcontext(&request->context, request->loop);
}

static void child_entry(int index)
{
    request_t *request = &requests[index];
    prof_trace_get(&request->seen_by_child);
    for (int i = 0; i < 3; i++) {
        request->used_ns += burn(SLICE_NS);
        swapcontext(&request->child, request->loop);
    }
}

static void entry(int index)
{
    request_t *request = &requests[index];
    memset(request->trace.bytes, index + 1, sizeof(request->trace.bytes));
    prof_trace_set(&request->trace);
    request->profile = prof_start(NULL);
    context_on(&request->child, request->child_stack = make_stack(), STACK, NULL);
    makecontext(&request->child, (void (*)(void))child_entry, 1, index);
    for (int i = 0; i < SLICES; i++) {
        request->used_ns += burn((uint64_t)SLICE_NS * (1 + (uint64_t)index % 4));
        pause_request(request);
    }
    prof_stop(request->profile);
    request->total_ns = prof_total_ns(request->profile);
    request->done = 1;
    pause_request(request);
}

static void make_requests(void)
{
    memset(requests, 0, sizeof(requests));
    for (int i = 0; i < REQUESTS; i++) {
        requests[i].index = i;
        context_on(&requests[i].context, requests[i].stack = make_stack(), STACK, NULL);
        makecontext(&requests[i].context, (void (*)(void))entry, 1, i);
    }
}

static void step(request_t *request, ucontext_t *loop, int round)
{
    if (request->done)
        return;
    request->loop = loop;
    swapcontext(loop, &request->context);
    if (round >= 5 && round < 8 && !request->done) // its child runs in between
        swapcontext(loop, &request->child);
}

static void check_requests(void)
{
    int far_off =
        0; // what it does between burns is in the total, and on some virtual machines a signal may take a millisecond
    for (int i = 0; i < REQUESTS; i++) {
        request_t *request = &requests[i];
        assert_int_equal(request->done, 1);
        far_off += !close_to(request->total_ns, request->used_ns, 0.03, 1000000);
        if (far_off > REQUESTS / 16 || !close_to(request->total_ns, request->used_ns, 0.03, 5000000))
            print_message("request %d: total %lu, used %lu\n", i, (unsigned long)request->total_ns,
                          (unsigned long)request->used_ns);
        assert_measured(far_off <= REQUESTS / 16 && close_to(request->total_ns, request->used_ns, 0.03, 5000000));
        assert_memory_equal(&request->seen_by_child, &request->trace, sizeof(request->trace));
        prof_free(request->profile);
        munmap(request->stack, STACK);
        munmap(request->child_stack, STACK);
    }
}

static void each_request_gets_its_own(void **state)
{
    (void)state;
    ucontext_t loop;
    make_requests();
    for (int round = 0; round <= SLICES; round++)
        for (int i = 0; i < REQUESTS; i++)
            step(&requests[i], &loop, round);
    check_requests();
}

// Two threads take turns with each request: round r of request i runs on thread (r + i) % 2.
static pthread_barrier_t barrier;

static void *migrating_loop(void *number)
{
    ucontext_t loop;
    int me = (int)(intptr_t)number;
    for (int round = 0; round <= SLICES; round++) {
        for (int i = 0; i < REQUESTS; i++)
            if ((round + i) % 2 == me)
                step(&requests[i], &loop, round);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void migration_loses_nothing(void **state)
{
    (void)state;
    pthread_t threads[2];
    make_requests();
    pthread_barrier_init(&barrier, NULL, 2);
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, migrating_loop, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    check_requests();
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request_gets_its_own),
        cmocka_unit_test(migration_loses_nothing),
    };
    return measured_status(cmocka_run_group_tests(tests, NULL, NULL), argv);
}
