// SPDX-License-Identifier: MIT
// 1,000 coroutines, each with a trace id of its own, switched to in turn by 4 threads: whichever is free takes the next
// one. The functions on each coroutine's stack spell its number in binary, so that a sample's stack says which trace it
// belongs to. Trace ids are the number and 1, as the first and the last two bytes.
//   crossing SWITCHES
#include "truth.h"

#include "../context.h"
#include <pthread.h>

#include <greenprof/trace.h>

enum { COUNT = 1000, LETTERS = 10, THREADS = 4, STACK_BYTES = 32768 };

typedef struct coroutine {
    ucontext_t context, *home;
    struct coroutine *next;
} coroutine_t;

static coroutine_t coroutines[COUNT];
static coroutine_t *first, **last = &first;
static unsigned long left; // to switch
static uint64_t work_ns;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static TRUTH_OUT_OF_LINE void take_turns(coroutine_t *coroutine)
{
    for (;;) {
        truth_spin();
        swapcontext(&coroutine->context, coroutine->home);
    }
}

static void letter_0(unsigned id, unsigned bits);
static void letter_1(unsigned id, unsigned bits);

static inline __attribute__((always_inline)) void spell(unsigned id, unsigned bits)
{
    if (bits == 0)
        take_turns(&coroutines[id]);
    else if (id >> (bits - 1) & 1)
        letter_1(id, bits - 1);
    else
        letter_0(id, bits - 1);
}

// The assembler's text differs, so no compiler makes one function of the two.
#define LETTER(digit)                                                                                                  \
    static TRUTH_OUT_OF_LINE void letter_##digit(unsigned id, unsigned bits)                                           \
    {                                                                                                                  \
        spell(id, bits);                                                                                               \
        __asm__ volatile("# " #digit);                                                                                 \
    }
LETTER(0)
LETTER(1)

static void entry(int id)
{
    prof_trace_id_t trace = {{0}};
    trace.bytes[0] = trace.bytes[14] = (uint8_t)(id >> 8);
    trace.bytes[1] = trace.bytes[15] = (uint8_t)id;
    trace.bytes[8] = 1; // no id is all zeros
    if (prof_trace_set(&trace) != 0)
        exit(3);
    spell((unsigned)id, LETTERS);
}

static void put(coroutine_t *coroutine)
{
    coroutine->next = NULL;
    *last = coroutine;
    last = &coroutine->next;
}

// Puts the coroutine behind all others, and takes the next. Returns NULL at the end.
static coroutine_t *exchange(coroutine_t *had)
{
    coroutine_t *next = NULL;
    pthread_mutex_lock(&lock);
    if (had != NULL)
        put(had);
    if (left > 0) {
        left--;
        next = first;
        first = next->next;
        if (first == NULL)
            last = &first;
    }
    pthread_mutex_unlock(&lock);
    return next;
}

static TRUTH_OUT_OF_LINE void *serve(void *unused)
{
    ucontext_t home;
    coroutine_t *coroutine = NULL;
    uint64_t start = truth_cpu_ns();
    while ((coroutine = exchange(coroutine)) != NULL) {
        coroutine->home = &home;
        swapcontext(&home, &coroutine->context);
    }
    truth_book(&work_ns, truth_cpu_ns() - start);
    return unused;
}

static void make(int id)
{
    ucontext_t *context = &coroutines[id].context;
    context_on(context, malloc(STACK_BYTES), STACK_BYTES, NULL);
    if (context->uc_stack.ss_sp == NULL)
        exit(3);
    makecontext(context, (void (*)(void))entry, 1, id);
    put(&coroutines[id]);
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc != 2)
        return 2;
    left = strtoul(argv[1], NULL, 10);
    for (int i = 0; i < COUNT; i++)
        make(i);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, serve, NULL) != 0)
            return 3;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("WORK %.6f\n", truth_seconds(work_ns));
    return 0;
}
