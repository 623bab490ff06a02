// SPDX-License-Identifier: MIT
// The coroutines on a shape (shape.h): the usual ones, each of which books its CPU time and its switches.
//   shape_program [--shape NAME] SECONDS ROUNDS      NAME: where the program has several
#include "shape.h"
#include "shares.h"

static struct {
    uint64_t entered_ns, cpu_ns, switches;
    int done;
} coro[SHARES_COUNT];

static void book(int id)
{
    coro[id].cpu_ns += truth_cpu_ns() - coro[id].entered_ns;
}

__attribute__((weak)) void shape_end(int id)
{
    shape_leave(id);
}

__attribute__((weak)) int shape_choose(const char *name)
{
    (void)name;
    return 0;
}

static inline __attribute__((always_inline)) void run(int id)
{
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        book(id);
        shape_leave(id);
    }
    coro[id].done = 1;
    book(id);
    shape_end(id);
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

static void enter(int id)
{
    coro[id].switches++;
    coro[id].entered_ns = truth_cpu_ns();
    shape_enter(id);
}

int main(int argc, char **argv)
{
    static void (*const entries[])(void) = {entry_alpha, entry_beta, entry_gamma, entry_idle};
    static const char *const names[] = {"alpha", "beta", "gamma", "idle"};
    int has_name = argc > 2 && strcmp(argv[1], "--shape") == 0;
    if ((has_name && !shape_choose(argv[2])) || shares_begin(argc - 2 * has_name, argv + 2 * has_name) < 0)
        return 2;
    for (int id = 0; id < SHARES_COUNT; id++)
        shape_make(id, entries[id]);
    for (int left = SHARES_COUNT; left > 0;) {
        left = 0;
        for (int id = 0; id < SHARES_COUNT; id++) {
            if (!coro[id].done)
                enter(id);
            left += !coro[id].done;
        }
    }
    for (int id = 0; id < SHARES_COUNT; id++)
        printf("COROUTINE entry_%s %.6f %llu\n", names[id], truth_seconds(coro[id].cpu_ns),
               (unsigned long long)coro[id].switches);
    return shares_end();
}
