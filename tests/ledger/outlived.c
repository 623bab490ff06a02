// SPDX-License-Identifier: MIT
// A request of 100 ms spawns a coroutine that outlives it, waits for longer than any request, and is killed so.
//
//   REQUEST trace seconds
#include <greenprof/trace.h>

#include "../integration/truth.h"

#include "../context.h"
#include <signal.h>

enum { STACK_BYTES = 65536 };
enum { REQUEST_US = 100000, OUTLIVES_US = 6500000 };

static ucontext_t home, handler, child;
static char handler_stack[STACK_BYTES], child_stack[STACK_BYTES];

static void make(ucontext_t *context, char *stack, void (*entry)(void))
{
    context_on(context, stack, STACK_BYTES, &home);
    makecontext(context, entry, 0);
}

static void wait_for_good(void)
{
    swapcontext(&child, &handler);
    abort();
}

static void handle(void)
{
    char hex[PROF_TRACE_HEX_SIZE];
    prof_trace_id_t trace;
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    prof_span_t *span = prof_span_begin(PROF_SPAN_REQUEST, "outlived", NULL);
    make(&child, child_stack, wait_for_good);
    swapcontext(&handler, &child);
    usleep(REQUEST_US);
    prof_trace_get(&trace);
    prof_span_end(span);
    prof_trace_to_hex(&trace, hex);
    printf("REQUEST %s %.6f\n", hex, (double)(truth_clock_ns(CLOCK_MONOTONIC) - start) / 1e9);
}

int main(void)
{
    make(&handler, handler_stack, handle);
    swapcontext(&home, &handler);
    fflush(stdout);
    usleep(OUTLIVES_US);
    return raise(SIGKILL);
}
