// SPDX-License-Identifier: MIT
// A service of one thread, with requests on coroutines, eight at a time, which knows the slow ones of them.
//   flight REQUESTS SLOW SEED MS   so many requests, of which SLOW at random places take MS; prints "SLOW TRACE NS"
//                                  for each that took two thirds of MS, and goes on for 2 s without a request
//   flight hang SECONDS            one of them never ends: it waits in wait_for_reply(); each hundredth takes 20 ms
//   flight hold SECONDS            one of them holds the loop, in hold_the_loop()
//   flight doze SECONDS            one of them sleeps on the thread, in doze_off()
#include <greenprof/coro.h>
#include <greenprof/trace.h>

#include "../context.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 8, STACK_BYTES = 65536, SHORT_NS = 200000, A_WHILE_NS = 20000000, WORK_NS = 20000 };

typedef struct task {
    ucontext_t context;
    uint64_t wakes_ns;
    int is_over;
} task_t;

static ucontext_t loop;
static task_t tasks[WIDTH], *current;
static unsigned long requests, served, slow_count, slow_ms, *slow_ones;
static uint64_t end_ns;
static const char *mode;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void wait_ns(uint64_t ns)
{
    task_t *own = current;
    own->wakes_ns = now_ns() + ns;
    swapcontext(&own->context, &loop);
    current = own;
}

__attribute__((noinline)) static void wait_for_database(void)
{
    wait_ns(slow_ms * UINT64_C(1000000));
    __asm__ volatile("");
}

__attribute__((noinline)) static void wait_for_reply(void)
{
    wait_ns(UINT64_C(3600000000000));
    __asm__ volatile("");
}

__attribute__((noinline)) static void hold_the_loop(uint64_t until_ns)
{
    while (now_ns() < until_ns)
        ;
}

__attribute__((noinline)) static void doze_off(uint64_t until_ns)
{
    while (now_ns() < until_ns)
        sleep(1000);
}

__attribute__((noinline)) static void work(void)
{
    for (uint64_t until = now_ns() + WORK_NS; now_ns() < until;)
        ;
}

static int is_slow(unsigned long number)
{
    for (unsigned long i = 0; i < slow_count; i++)
        if (slow_ones[i] == number)
            return 1;
    return 0;
}

static void make_trace(unsigned long number, prof_trace_id_t *trace)
{
    uint64_t words[2] = {UINT64_C(0xf11947), number + 1};
    memcpy(trace->bytes, words, sizeof(words));
}

__attribute__((noinline)) static void handle(unsigned long number)
{
    work();
    wait_ns(SHORT_NS);
    if (is_slow(number))
        wait_for_database();
    if (number % 100 == 1 && strcmp(mode, "hang") == 0)
        wait_ns(A_WHILE_NS);
    if (number == requests / 2 && strcmp(mode, "hang") == 0)
        wait_for_reply();
    if (number == requests / 2 && strcmp(mode, "hold") == 0)
        hold_the_loop(end_ns);
    if (number == requests / 2 && strcmp(mode, "doze") == 0)
        doze_off(end_ns);
    work();
}

static void serve(unsigned long number)
{
    prof_trace_id_t trace;
    char hex[PROF_TRACE_HEX_SIZE];
    make_trace(number, &trace);
    prof_trace_to_hex(&trace, hex);
    const prof_span_options_t options = {.size = sizeof(options), .trace = &trace};
    uint64_t start = now_ns();
    prof_span_t *span = prof_span_begin(PROF_SPAN_REQUEST, "GET /item", &options);
    handle(number);
    prof_span_end(span);
    uint64_t took = now_ns() - start;
    if (slow_ms > 0 && took >= slow_ms * UINT64_C(1000000) * 2 / 3)
        printf("SLOW %s %lu\n", hex, (unsigned long)took);
}

static void run_task(void)
{
    task_t *own = current;
    while (served < requests && now_ns() < end_ns) {
        serve(served++);
        wait_ns(SHORT_NS);
    }
    own->is_over = 1;
    setcontext(&loop);
}

static void run_loop(void)
{
    for (int left = WIDTH; left > 0;) {
        left = 0;
        for (int i = 0; i < WIDTH; i++) {
            left += !tasks[i].is_over;
            if (tasks[i].is_over || tasks[i].wakes_ns > now_ns())
                continue;
            current = &tasks[i];
            swapcontext(&loop, &tasks[i].context);
        }
        if (now_ns() > end_ns)
            break;
        usleep(50);
    }
}

int main(int argc, char **argv)
{
    mode = argc > 1 ? argv[1] : "";
    int is_counted = argc > 4;
    requests = is_counted ? strtoul(argv[1], NULL, 10) : 1000000;
    slow_count = is_counted ? strtoul(argv[2], NULL, 10) : 0;
    slow_ms = is_counted ? strtoul(argv[4], NULL, 10) : 0;
    end_ns = is_counted ? UINT64_MAX : now_ns() + (uint64_t)(argc > 2 ? atof(argv[2]) * 1e9 : 0);
    if (!is_counted)
        requests = 2000; // a half second of them before it happens
    slow_ones = calloc(slow_count + 1, sizeof(*slow_ones));
    srandom(is_counted ? (unsigned)atoi(argv[3]) : 1);
    for (unsigned long i = 0; i < slow_count; i++)
        slow_ones[i] = (unsigned long)random() % requests;
    for (int i = 0; i < WIDTH; i++) {
        context_on(&tasks[i].context, malloc(STACK_BYTES), STACK_BYTES, &loop);
        makecontext(&tasks[i].context, run_task, 0);
    }
    run_loop();
    printf("SERVED %lu\n", served);
    fflush(stdout);
    if (is_counted)
        sleep(2);
    return 0;
}
