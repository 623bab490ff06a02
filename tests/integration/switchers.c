// SPDX-License-Identifier: MIT
// 1,000 coroutines that migrate between 4 threads at every switch, each a request with a trace of its own: coroutine i
// has the id i + 1, written as 32 hex digits, and works in work_<i % 8>() only. In every 100th turn it has a span open
// while it is switched away from.
//   switchers SWITCHES
#include "../context.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <greenprof/trace.h>

enum { COROUTINES = 1000, THREADS = 4, WORKS = 8, STACK_BYTES = 65536, TURNS_A_SPAN = 100, ROUNDS = 200 };

// Each a little different, so that the compiler keeps all of them.
#define WORK(name)                                                                                                     \
    __attribute__((noinline)) static void work_##name(void)                                                            \
    {                                                                                                                  \
        for (volatile int i = 0; i < ROUNDS + (name); i++)                                                             \
            ;                                                                                                          \
    }
WORK(0)
WORK(1)
WORK(2)
WORK(3)
WORK(4)
WORK(5)
WORK(6)
WORK(7)
static void (*const works[WORKS])(void) = {work_0, work_1, work_2, work_3, work_4, work_5, work_6, work_7};

typedef struct coroutine {
    ucontext_t context, *loop;
    bool is_over;
} coroutine_t;

static coroutine_t coroutines[COROUTINES];
static unsigned turns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static coroutine_t *queue[COROUTINES];
static unsigned head, waiting, left = COROUTINES;

static void yield(coroutine_t *self)
{
    swapcontext(&self->context, self->loop);
}

static void one_turn(coroutine_t *self, unsigned i, unsigned turn)
{
    prof_span_t *span = turn % TURNS_A_SPAN == 0 ? prof_span_begin(PROF_SPAN_CACHE, "inner", NULL) : NULL;
    works[i % WORKS]();
    yield(self);
    works[i % WORKS]();
    prof_span_end(span);
}

static void entry(unsigned i)
{
    coroutine_t *self = &coroutines[i];
    prof_trace_id_t id = {{0}};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    id.bytes[14] = (uint8_t)((i + 1) >> 8);
    id.bytes[15] = (uint8_t)(i + 1);
    options.trace = &id;
    prof_span_t *request = prof_span_begin(PROF_SPAN_REQUEST, "outer", &options);
    for (unsigned turn = 0; turn < turns; turn++)
        one_turn(self, i, turn);
    prof_span_end(request);
    self->is_over = true;
    yield(self);
}

// Waits for nothing: where no coroutine is in the queue, others run them.
static coroutine_t *take(bool *is_end)
{
    coroutine_t *taken = NULL;
    pthread_mutex_lock(&lock);
    *is_end = left == 0;
    if (waiting > 0) {
        taken = queue[head];
        head = (head + 1) % COROUTINES;
        waiting--;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static void put(coroutine_t *coroutine)
{
    pthread_mutex_lock(&lock);
    if (coroutine->is_over)
        left--;
    else
        queue[(head + waiting++) % COROUTINES] = coroutine;
    pthread_mutex_unlock(&lock);
}

static void *run(void *unused)
{
    ucontext_t loop;
    bool is_end;
    do {
        coroutine_t *next = take(&is_end);
        if (next == NULL)
            continue;
        next->loop = &loop;
        swapcontext(&loop, &next->context);
        put(next);
    } while (!is_end);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    turns = (unsigned)(argc == 2 ? atoi(argv[1]) : 0) / COROUTINES;
    for (unsigned i = 0; i < COROUTINES; i++) {
        ucontext_t *context = &coroutines[i].context;
        context_on(context, malloc(STACK_BYTES), STACK_BYTES, NULL);
        makecontext(context, (void (*)(void))entry, 1, i);
        queue[waiting++] = &coroutines[i];
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("SPANS %u\n", COROUTINES * (1 + (turns + TURNS_A_SPAN - 1) / TURNS_A_SPAN));
    return 0;
}
