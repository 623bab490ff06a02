// SPDX-License-Identifier: MIT
// Three ucontext coroutines with 60, 30 and 10 % of the work, and one that only yields. No profiler API.
//   coroutines SECONDS ROUNDS
#include "truth.h"

#include <ucontext.h>

enum { COUNT = 4, STACK_BYTES = 65536 };

WORK(alpha)
WORK(beta)
WORK(gamma)

static ucontext_t loop;
static struct {
    ucontext_t context;
    uint64_t entered_ns, cpu_ns, switches;
    int done;
} coro[COUNT];
static int rounds;
static uint64_t slice_ns; // of all three together

static void yield(int id)
{
    coro[id].cpu_ns += truth_cpu_ns() - coro[id].entered_ns;
    swapcontext(&coro[id].context, &loop);
}

static TRUTH_OUT_OF_LINE void common(int id)
{
    if (id == 0)
        work_alpha(slice_ns * 6 / 10);
    else if (id == 1)
        work_beta(slice_ns * 3 / 10);
    else if (id == 2)
        work_gamma(slice_ns / 10);
    __asm__ volatile("");
}

static void run(int id)
{
    for (int i = 0; i < rounds; i++) {
        common(id);
        yield(id);
    }
    coro[id].done = 1;
    coro[id].cpu_ns += truth_cpu_ns() - coro[id].entered_ns;
}

static void entry_alpha(void)
{
    run(0);
}
static void entry_beta(void)
{
    run(1);
}
static void entry_gamma(void)
{
    run(2);
}
static void entry_idle(void)
{
    run(3);
}

static void resume(int id)
{
    coro[id].switches++;
    coro[id].entered_ns = truth_cpu_ns();
    swapcontext(&loop, &coro[id].context);
}

int main(int argc, char **argv)
{
    static void (*const entries[COUNT])(void) = {entry_alpha, entry_beta, entry_gamma, entry_idle};
    static const char *const names[COUNT] = {"entry_alpha", "entry_beta", "entry_gamma", "entry_idle"};
    truth_thread_begin();
    if (argc < 3)
        return 2;
    rounds = atoi(argv[2]);
    slice_ns = (uint64_t)(atof(argv[1]) * 1e9 / rounds);
    for (int i = 0; i < COUNT; i++) {
        getcontext(&coro[i].context);
        coro[i].context.uc_stack.ss_sp = malloc(STACK_BYTES);
        coro[i].context.uc_stack.ss_size = STACK_BYTES;
        coro[i].context.uc_link = &loop;
        makecontext(&coro[i].context, entries[i], 0);
    }
    for (int left = COUNT; left > 0;) {
        left = 0;
        for (int i = 0; i < COUNT; i++) {
            if (!coro[i].done)
                resume(i);
            left += !coro[i].done;
        }
    }
    EXPECT(alpha);
    EXPECT(beta);
    EXPECT(gamma);
    for (int i = 0; i < COUNT; i++)
        printf("COROUTINE %s %.6f %llu\n", names[i], truth_seconds(coro[i].cpu_ns),
               (unsigned long long)coro[i].switches);
    truth_print_total();
    return 0;
}
