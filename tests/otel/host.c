// SPDX-License-Identifier: MIT
// Coroutines on several threads, among which they migrate, with changing traces and spans; the truth beside them.
//   host THREADS COROUTINES   until its input ends; then: checks that were right, wrong
//   host fork                 a trace, and a child; both wait until their input ends
// At first it says "truth ADDRESS": truth_t[THREADS], for a reader outside.
#include "../context.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <greenprof/trace.h>

enum { THREADS_MAX = 16, STACK_BYTES = 65536, KINDS = 3 };

typedef struct truth {
    volatile int32_t tid;
    volatile int32_t is_changing; // this, or the thread's context: readers pass
    volatile int32_t is_shown;
    volatile unsigned char trace[16], span[8];
    volatile int32_t padding;
} truth_t;

typedef struct expected {
    bool is_shown;
    prof_trace_id_t trace;
    uint64_t span;
} expected_t;

typedef struct coro {
    ucontext_t context;
    unsigned number;
    bool is_over;
    expected_t expected;
    struct coro *next;
} coro_t;

typedef struct record { // Source: OTEP 4947
    unsigned char trace[16], span[8], valid, flags;
    uint16_t attributes_bytes;
} record_t;

static truth_t truths[THREADS_MAX];
static __thread truth_t *own_truth;
static __thread ucontext_t own_loop;
static __thread coro_t *running;
static __thread void *volatile *pointer; // of this thread: otel_thread_ctx_v1

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static coro_t *ready, **ready_end = &ready;
static unsigned alive;
static volatile bool is_ending;
static _Atomic unsigned long right, wrong;

// Out of line: the thread may be another one after each switch.
__attribute__((noinline)) static truth_t *here(void)
{
    return own_truth;
}

__attribute__((noinline)) static coro_t *self(void)
{
    return running;
}

__attribute__((noinline)) static ucontext_t *loop(void)
{
    return &own_loop;
}

__attribute__((noinline)) static const volatile record_t *record(void)
{
    return *pointer;
}

static bool is_right(const expected_t *expected)
{
    const volatile record_t *found = record();
    if (found == NULL || found->valid != 1)
        return !expected->is_shown;
    uint64_t span = __builtin_bswap64(expected->span);
    return expected->is_shown && memcmp((const void *)found->trace, &expected->trace, 16) == 0 &&
           memcmp((const void *)found->span, &span, 8) == 0 && found->flags == 1 && found->attributes_bytes == 0;
}

static void begin_change(void)
{
    here()->is_changing = 1;
}

// The expected record from here on; checked from within, too.
static void end_change(const expected_t *expected)
{
    truth_t *truth = here();
    uint64_t span = __builtin_bswap64(expected->span);
    memcpy((void *)truth->trace, &expected->trace, 16);
    memcpy((void *)truth->span, &span, 8);
    truth->is_shown = expected->is_shown;
    if (is_right(expected))
        right++;
    else if (wrong++ == 0)
        fprintf(stderr, "expected %d %016lx, found %d\n", expected->is_shown, (unsigned long)expected->span,
                record() != NULL ? record()->valid : -1);
    truth->is_changing = 0;
}

static void spin(unsigned rounds)
{
    for (volatile unsigned i = 0; i < rounds * 5000; i++)
        ;
}

static void leave(void)
{
    coro_t *coro = self();
    spin(1 + coro->number % 5);
    begin_change();
    swapcontext(&coro->context, loop());
    end_change(&coro->expected);
}

static void push(coro_t *coro)
{
    pthread_mutex_lock(&lock);
    coro->next = NULL;
    *ready_end = coro;
    ready_end = &coro->next;
    pthread_mutex_unlock(&lock);
}

static coro_t *pop(void)
{
    pthread_mutex_lock(&lock);
    coro_t *coro = ready;
    if (coro != NULL)
        ready = coro->next;
    if (ready == NULL)
        ready_end = &ready;
    pthread_mutex_unlock(&lock);
    return coro;
}

static void make(unsigned number, void (*entry)(void), const expected_t *expected)
{
    coro_t *coro = calloc(1, sizeof(*coro));
    coro->number = number;
    coro->expected = *expected;
    context_on(&coro->context, malloc(STACK_BYTES), STACK_BYTES, NULL);
    makecontext(&coro->context, entry, 0);
    __atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST);
    push(coro);
}

// Does not return: the thread's loop goes on.
static void end(void)
{
    coro_t *coro = self();
    begin_change();
    coro->is_over = true;
    setcontext(loop());
}

static void begin_coroutine(void)
{
    end_change(&self()->expected);
}

// --- what they do

static void do_nothing(void)
{
    begin_coroutine();
    while (!is_ending)
        leave();
    end();
}

static void do_inherit(void)
{
    do_nothing();
}

static prof_trace_id_t id_of(unsigned number, unsigned round)
{
    prof_trace_id_t id = {{1, 2, 3, 4, (uint8_t)(number >> 8), (uint8_t)number}};
    memcpy(id.bytes + 12, &round, sizeof(round));
    return id;
}

static void do_set_traces(void)
{
    coro_t *coro = self();
    begin_coroutine();
    for (unsigned round = 0; !is_ending; round++) {
        begin_change();
        coro->expected.trace = id_of(coro->number, round);
        prof_trace_set(&coro->expected.trace);
        coro->expected.span = prof_span_current();
        coro->expected.is_shown = true;
        end_change(&coro->expected);
        leave();
        leave();
        begin_change();
        prof_trace_clear();
        coro->expected.is_shown = false;
        end_change(&coro->expected);
        leave();
    }
    end();
}

static prof_span_t *begin_span(prof_span_kind_t kind, const prof_span_options_t *options)
{
    coro_t *coro = self();
    begin_change();
    prof_span_t *span = prof_span_begin(kind, "work", options);
    coro->expected.is_shown = true;
    coro->expected.span = prof_span_id(span);
    prof_trace_get(&coro->expected.trace);
    end_change(&coro->expected);
    return span;
}

static void end_span(prof_span_t *span, uint64_t outer)
{
    coro_t *coro = self();
    begin_change();
    prof_span_end(span);
    coro->expected.is_shown = outer != 0;
    coro->expected.span = outer;
    end_change(&coro->expected);
}

static void do_requests(void)
{
    coro_t *coro = self();
    begin_coroutine();
    for (unsigned round = 0; !is_ending; round++) {
        prof_trace_id_t id = id_of(coro->number, round);
        prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
        options.trace = &id;
        prof_span_t *request = begin_span(PROF_SPAN_REST_DISPATCH, &options);
        uint64_t request_id = prof_span_id(request);
        leave();
        prof_span_t *inner = begin_span(PROF_SPAN_DATABASE, NULL);
        if (round == 0)
            make(coro->number, do_inherit, &coro->expected); // it outlives both
        leave();
        end_span(inner, request_id);
        leave();
        end_span(request, 0);
        leave();
    }
    end();
}

// --- threads

static const expected_t nothing;

static void enter_thread(void)
{
    void *library = dlopen("libgreenprof-otel.so.0", RTLD_NOW | RTLD_NOLOAD);
    pointer = library != NULL ? dlsym(library, "otel_thread_ctx_v1") : NULL;
    if (pointer == NULL) {
        puts("no contexts");
        exit(3);
    }
}

static void *run(void *argument)
{
    own_truth = argument;
    own_truth->is_changing = 1;
    own_truth->tid = gettid();
    enter_thread();
    end_change(&nothing);
    while (__atomic_load_n(&alive, __ATOMIC_SEQ_CST) != 0) {
        coro_t *coro = pop();
        if (coro == NULL) {
            sched_yield();
            continue;
        }
        begin_change();
        running = coro;
        swapcontext(&own_loop, &coro->context);
        end_change(&nothing);
        if (!coro->is_over) {
            push(coro);
            continue;
        }
        free(coro->context.uc_stack.ss_sp);
        free(coro);
        __atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
    }
    own_truth->is_changing = 1;
    return NULL;
}

static void wait_for_end_of_input(void)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

static void run_threads(unsigned threads, unsigned coroutines)
{
    static void (*const entries[KINDS])(void) = {do_nothing, do_set_traces, do_requests};
    pthread_t ids[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++)
        truths[i].is_changing = 1;
    for (unsigned i = 0; i < coroutines; i++)
        make(i, entries[i % KINDS], &nothing);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, run, &truths[i]);
    printf("truth %lx\n", (unsigned long)truths);
    fflush(stdout);
    wait_for_end_of_input();
    is_ending = true;
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    printf("%lu %lu\n", right, wrong);
}

static void run_fork(void)
{
    expected_t expected = {.is_shown = true, .trace = id_of(1, 1)};
    own_truth = &truths[0];
    enter_thread();
    prof_trace_set(&expected.trace);
    expected.span = prof_span_current();
    int is_there[2];
    char byte = 0;
    if (pipe(is_there) != 0)
        exit(4);
    pid_t child = fork();
    own_truth->tid = gettid();
    end_change(&expected);
    if (child == 0) {
        (void)!write(is_there[1], &byte, 1);
        wait_for_end_of_input();
        _exit(wrong != 0);
    }
    (void)!read(is_there[0], &byte, 1);
    printf("truth %lx %d\n", (unsigned long)truths, child);
    fflush(stdout);
    int status;
    waitpid(child, &status, 0);
    printf("%lu %lu\n", right, wrong + (status != 0));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "fork") == 0) {
        run_fork();
        return 0;
    }
    unsigned threads = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
    if (threads == 0 || threads > THREADS_MAX)
        return 2;
    run_threads(threads, (unsigned)atoi(argv[2]));
    return 0;
}
