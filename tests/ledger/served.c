// SPDX-License-Identifier: MIT
// Requests of known latency, one after the other on a pooled coroutine. Each computes, waits for a child, and computes.
// The child computes, waits until a hog of no request makes it ready, and for as long as that goes on computing; when
// it has answered, it stays a while. All is booked on the monotonic clock.
//
//   served REQUESTS
//
//   REQUEST trace seconds
//   PATH trace coroutine state seconds     what of it a coroutine is on the critical path
#include <greenprof/coro.h>
#include <greenprof/trace.h>

#include "../integration/truth.h"
#include "../runtimes/shape.h"

enum { STACK_BYTES = 65536, MS = 1000000 };

typedef struct green {
    prof_coro_t *coro;
    void *sp;
    void (*run)(struct green *self);
    uint64_t left_ns, ready_ns, parked_ns, waited_ns, ran_ns, since_ns;
    int is_ready, is_over;
} green_t;

static green_t handler, child, hog, *running;
static void *home;
static int requests;

static uint64_t now_ns(void)
{
    return truth_clock_ns(CLOCK_MONOTONIC);
}

static __attribute__((noreturn)) void trampoline(void)
{
    running->run(running);
    running->is_over = 1;
    prof_coro_switch(NULL);
    shape_swap(&running->sp, home);
    abort();
}

static void make_ready(green_t *green)
{
    prof_coro_ready(green->coro);
    green->ready_ns = now_ns();
    green->is_ready = 1;
}

static void spawn(green_t *green, const char *name, void (*run)(green_t *))
{
    char *stack = aligned_alloc(64, STACK_BYTES); // a few of them, kept to the end
    void **top = (void **)(void *)(stack + STACK_BYTES);
    *--top = NULL;
    *--top = NULL;
    *--top = NULL; // as if called: 8 bytes off alignment at the entry
    *--top = (void *)(uintptr_t)trampoline;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    *green = (green_t){.sp = top, .run = run};
    green->coro = prof_coro_create(stack, STACK_BYTES, name);
    green->left_ns = now_ns();
    make_ready(green);
}

// From the loop.
static void resume(green_t *green)
{
    uint64_t now = now_ns();
    green->parked_ns += green->ready_ns - green->left_ns;
    green->waited_ns += now - green->ready_ns;
    green->is_ready = 0;
    green->since_ns = now;
    running = green;
    prof_coro_switch(green->coro);
    shape_swap(&home, green->sp);
    green->left_ns = now_ns();
    green->ran_ns += green->left_ns - green->since_ns;
}

static TRUTH_OUT_OF_LINE void park(void)
{
    green_t *self = running;
    prof_coro_switch(NULL);
    shape_swap(&self->sp, home);
    __asm__ volatile("");
}

#define COMPUTE(name)                                                                                                  \
    static volatile int calls_of_##name; /* no two of them are the same code */                                        \
    static TRUTH_OUT_OF_LINE void compute_##name(uint64_t ns)                                                          \
    {                                                                                                                  \
        uint64_t start = now_ns();                                                                                     \
        calls_of_##name++;                                                                                             \
        while (now_ns() - start < ns)                                                                                  \
            truth_spin();                                                                                              \
        __asm__ volatile("");                                                                                          \
    }
COMPUTE(parse)
COMPUTE(query)
COMPUTE(answer)
COMPUTE(render)
COMPUTE(other)

static void run_child(green_t *self)
{
    (void)self;
    compute_query(8 * MS);
    make_ready(&hog);
    park();
    compute_answer(4 * MS);
    make_ready(&handler);
    park(); // until the request is over
    compute_other(3 * MS);
}

static void run_hog(green_t *self)
{
    (void)self;
    for (;;) {
        park();
        compute_other(7 * MS);
        make_ready(&child);
        compute_other(9 * MS);
    }
}

static void print_path(const char *trace, const char *coroutine, const char *state, uint64_t ns)
{
    printf("PATH %s %s %s %.6f\n", trace, coroutine, state, (double)ns * 1e-9);
}

static void serve(green_t *self, int number)
{
    prof_trace_id_t id = {.bytes = {[15] = (unsigned char)(number + 1)}};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    char trace[PROF_TRACE_HEX_SIZE];
    options.trace = &id;
    prof_trace_to_hex(&id, trace);
    prof_span_t *span = prof_span_begin(PROF_SPAN_REST_DISPATCH, "GET /known", &options);
    uint64_t start = now_ns(), waited = self->waited_ns;
    compute_parse(6 * MS);
    spawn(&child, "child", run_child);
    uint64_t ran = now_ns() - start;
    park();
    uint64_t back = now_ns();
    waited = self->waited_ns - waited;
    // Up to here the child has run, waited for the hog, and run.
    uint64_t parked = child.parked_ns, ready = child.waited_ns, child_ran = child.ran_ns;
    compute_render(5 * MS);
    uint64_t end = now_ns();
    prof_span_end(span);
    make_ready(&child);
    printf("REQUEST %s %.6f\n", trace, (double)(end - start) * 1e-9);
    print_path(trace, "handler", "running", ran + end - back);
    print_path(trace, "handler", "ready", waited);
    print_path(trace, "child", "running", child_ran);
    print_path(trace, "child", "parked", parked);
    print_path(trace, "child", "ready", ready);
}

static void run_handler(green_t *self)
{
    for (int i = 0; i < requests; i++) {
        serve(self, i);
        prof_coro_idle();
        park();
    }
}

int main(int argc, char **argv)
{
    requests = argc > 1 ? atoi(argv[1]) : 1;
    spawn(&hog, "hog", run_hog);
    resume(&hog); // it waits for its first request
    spawn(&handler, "handler", run_handler);
    while (!handler.is_over) {
        green_t *const all[] = {&hog, &child, &handler};
        int any = 0;
        for (int i = 0; i < 3; i++)
            if (all[i]->is_ready && ++any)
                resume(all[i]);
        if (any == 0) { // the handler is in its pool
            struct timespec pause = {.tv_nsec = 20 * MS};
            nanosleep(&pause, NULL);
            make_ready(&handler);
        }
    }
    return 0;
}
