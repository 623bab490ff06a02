// SPDX-License-Identifier: MIT
// Coroutines with trace ids: inherited by children, changed in mid-flight, absent in some.
//   traces
#include "truth.h"

#include "../context.h"

#include <greenprof/trace.h>

enum { COUNT = 4, STACK_BYTES = 65536, ROUNDS = 150 };

WORK(red)
WORK(green)
WORK(blue)
WORK(plain)

static const char *const ids[3] = {"4bf92f3577b34da6a3ce929d0e0e4736", "00000000000000000000000000000abc",
                                   "deadbeefdeadbeefdeadbeefdeadbeef"};
static ucontext_t loop, contexts[COUNT + 1];
static int done[COUNT + 1];
static uint64_t entered_ns;
static uint64_t trace_ns[4]; // by trace, the last is none

static void set(const char *text)
{
    prof_trace_id_t id;
    if (prof_trace_parse(text, &id) != 0 || prof_trace_set(&id) != 0)
        exit(3);
}

static void charge(int trace)
{
    uint64_t now = truth_cpu_ns();
    trace_ns[trace] += now - entered_ns;
    entered_ns = now;
}

static void start(int i, void (*entry)(void))
{
    context_on(&contexts[i], malloc(STACK_BYTES), STACK_BYTES, &loop);
    makecontext(&contexts[i], entry, 0);
    done[i] = 0;
}

static void rounds(int i, int trace, void (*work)(uint64_t), uint64_t ns)
{
    for (int n = 0; n < ROUNDS; n++) {
        work(ns);
        charge(trace);
        swapcontext(&contexts[i], &loop);
    }
}

static void child(void)
{
    rounds(COUNT, 0, work_red, 1000000); // inherits
    done[COUNT] = 1;
}

static void first(void)
{
    set(ids[0]);
    start(COUNT, child);
    rounds(0, 0, work_red, 3000000);
    done[0] = 1;
}

static void second(void)
{
    set(ids[1]);
    rounds(1, 1, work_green, 2000000);
    done[1] = 1;
}

// A single coroutine, request after request: the trace changes every time.
static void third(void)
{
    for (int n = 0; n < ROUNDS; n++) {
        set(ids[2]);
        work_blue(1500000);
        charge(2);
        prof_trace_clear();
        work_plain(700000);
        charge(3);
        swapcontext(&contexts[2], &loop);
    }
    done[2] = 1;
}

static void fourth(void)
{
    rounds(3, 3, work_plain, 500000);
    done[3] = 1;
}

int main(void)
{
    static void (*const entries[COUNT])(void) = {first, second, third, fourth};
    int left;
    truth_thread_begin();
    done[COUNT] = 1;
    for (int i = 0; i < COUNT; i++)
        start(i, entries[i]);
    do {
        left = 0;
        for (int i = 0; i <= COUNT; i++) {
            if (done[i])
                continue;
            entered_ns = truth_cpu_ns();
            swapcontext(&loop, &contexts[i]);
            left = 1;
        }
    } while (left);
    for (int i = 0; i < 3; i++)
        printf("TRACE %s %.6f\n", ids[i], truth_seconds(trace_ns[i]));
    printf("NOTRACE %.6f\n", truth_seconds(trace_ns[3]));
    EXPECT(red);
    EXPECT(green);
    EXPECT(blue);
    EXPECT(plain);
    truth_print_total();
    return 0;
}
