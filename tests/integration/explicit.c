// SPDX-License-Identifier: MIT
// A scheduler that tells greenprof through coro.h, with a switch routine of its own.
//   explicit loop SECONDS | work SECONDS | pool ROUNDS | shared ROUNDS
#include "truth.h"

#include <greenprof/coro.h>

#include "../runtimes/shape.h"

enum { STACK_BYTES = 65536, COUNT = 3 };

WORK(ping)
WORK(pong)
WORK(pang)

typedef struct green {
    prof_coro_t *coro;
    void *sp;
    char *stack;
    uint64_t cpu_ns, switches;
} green_t;

static green_t greens[COUNT];
static void *home;
static int running, round_count;
static volatile int going = 1;

static void enter_green(int id);

static __attribute__((noreturn)) void trampoline(void)
{
    enter_green(running);
    for (;;)
        abort();
}

static void make_green(green_t *green, const char *name)
{
    if (green->stack == NULL)
        green->stack = aligned_alloc(64, STACK_BYTES);
    green->sp = shape_stack(green->stack, STACK_BYTES, trampoline);
    green->coro = prof_coro_create(green->stack, STACK_BYTES, name);
}

static void leave_for(int id)
{
    green_t *self = &greens[running], *next = &greens[id];
    running = id;
    next->switches++;
    prof_coro_switch(next->coro);
    shape_swap(&self->sp, next->sp);
}

static void go_home(void)
{
    prof_coro_switch(NULL);
    shape_swap(&greens[running].sp, home);
}

static void go_to(int id)
{
    running = id;
    greens[id].switches++;
    prof_coro_switch(greens[id].coro);
    shape_swap(&home, greens[id].sp);
}

// A pure switch loop: nothing but switches, round and round.
static uint64_t end_ns;

static void loop_green(int id)
{
    for (unsigned i = 0;; i++) {
        if (id == 0 && i % 1024 == 0 && truth_cpu_ns() > end_ns)
            go_home();
        leave_for((id + 1) % COUNT);
    }
}

static void busy_green(int id)
{
    for (;;) {
        uint64_t start = truth_cpu_ns();
        if (id == 0)
            work_ping(3000000);
        else if (id == 1)
            work_pong(1500000);
        else
            work_pang(500000);
        uint64_t now = truth_cpu_ns();
        greens[id].cpu_ns += now - start;
        if (id == COUNT - 1 && now > end_ns)
            go_home();
        leave_for((id + 1) % COUNT);
    }
}

static void pool_green(int id)
{
    (void)id;
    if (round_count % 2)
        work_ping(2000000);
    else
        work_pong(1000000);
    go_home();
}

static void (*green_body)(int);

static void enter_green(int id)
{
    green_body(id);
}

static void print_coroutines(int with_time)
{
    static const char *const names[COUNT] = {"ping", "pong", "pang"};
    for (int i = 0; i < COUNT; i++) {
        double seconds = truth_seconds(with_time ? greens[i].cpu_ns : prof_coro_cpu_ns(greens[i].coro));
        printf("COROUTINE %s %.6f %llu\n", names[i], seconds, (unsigned long long)greens[i].switches);
    }
}

static void round_robin(double seconds, void (*body)(int))
{
    static const char *const names[COUNT] = {"ping", "pong", "pang"};
    green_body = body;
    end_ns = truth_cpu_ns() + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < COUNT; i++)
        make_green(&greens[i], names[i]);
    go_to(0);
    print_coroutines(body == busy_green);
}

// A single stack, used again and again: each use is another coroutine. Some are destroyed, some just replaced.
static void pool(int rounds)
{
    green_body = pool_green;
    for (round_count = 0; round_count < rounds; round_count++) {
        make_green(&greens[0], round_count % 2 ? "odd" : "even");
        go_to(0);
        if (round_count % 3 == 0)
            prof_coro_destroy(greens[0].coro);
    }
    printf("ROUNDS %d\n", rounds);
}

// Coroutines without a stack of their own: the switch calls alone say which one runs.
static void shared(int rounds)
{
    prof_coro_t *ping = prof_coro_create(NULL, 0, "ping"), *pong = prof_coro_create(NULL, 0, "pong");
    for (int i = 0; i < rounds; i++) {
        prof_coro_switch(ping);
        work_ping(1500000);
        prof_coro_switch(pong);
        work_pong(500000);
        prof_coro_switch(NULL);
        work_pang(200000);
    }
    printf("COROUTINE ping %.6f %d\nCOROUTINE pong %.6f %d\n", truth_seconds(ping_ns), rounds, truth_seconds(pong_ns),
           rounds);
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "loop") == 0)
        round_robin(atof(argv[2]), loop_green);
    else if (strcmp(argv[1], "work") == 0)
        round_robin(atof(argv[2]), busy_green);
    else if (strcmp(argv[1], "pool") == 0)
        pool(atoi(argv[2]));
    else if (strcmp(argv[1], "shared") == 0)
        shared(atoi(argv[2]));
    EXPECT(ping);
    EXPECT(pong);
    EXPECT(pang);
    truth_print_total();
    return 0;
}
