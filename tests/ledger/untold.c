// SPDX-License-Identifier: MIT
// 20 ucontext coroutines in a ring, of which nothing says when they become ready: a few keep the thread for 100 ms of
// CPU time now and then. The first takes its turn before the others are made.
//
//   SLICES 4 0.412345     how often, and for how long by the clock
#include "../integration/truth.h"

#include "../context.h"

enum { COROUTINES = 20, STACK_BYTES = 65536, ROUNDS = 40, EVERY = 10 };
enum { KEEPS_NS = 100000000, WAITS_US = 2000 };

static ucontext_t loop, contexts[COROUTINES];
static char stacks[COROUTINES][STACK_BYTES];
static uint64_t kept_ns, kept_wall_ns;
static int now_id, round_number, keeps;

TRUTH_OUT_OF_LINE static void layout_table(void)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + KEEPS_NS, &kept_ns);
    __asm__ volatile("");
}

TRUTH_OUT_OF_LINE static void render_pdf(void)
{
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC);
    layout_table();
    kept_wall_ns += truth_clock_ns(CLOCK_MONOTONIC) - start;
    keeps++;
}

static void entry(void)
{
    int id = now_id;
    for (;;) {
        if (id == 0 && round_number % EVERY == EVERY - 1)
            render_pdf();
        swapcontext(&contexts[id], &loop);
    }
}

int main(void)
{
    for (int i = 0; i < COROUTINES; i++) {
        context_on(&contexts[i], stacks[i], STACK_BYTES, NULL);
        makecontext(&contexts[i], entry, 0);
    }
    for (; round_number < ROUNDS; round_number++) {
        for (now_id = 0; now_id < COROUTINES; now_id++)
            swapcontext(&loop, &contexts[now_id]);
        usleep(WAITS_US);
    }
    printf("SLICES %d %.6f\n", keeps, (double)kept_wall_ns / 1e9);
    return 0;
}
