// SPDX-License-Identifier: MIT
// A coroutine service with known waits: an event loop with timers, requests that park in three places, wait for the
// loop, compute, sleep in the kernel, and are preempted. The service books each part itself, on the monotonic clock and
// the thread's CPU clock, and prints the sums.
//
//   service waits SECONDS | whole SECONDS | hog MS VICTIMS TIMES crunch|doze | yields ROUNDS | profile SECONDS FORMAT
//   PATH
//
//   CORO name wall cpu off ready parked waiting switches     seconds, as booked
//   LEDGER name wall cpu off ready parked waiting switches   the same, as prof_coro_ledger() says
//   SITE function seconds                                    booked time parked under that function
//   HOG seconds victims                                      booked
#include <greenprof/coro.h>
#include <greenprof/prof.h>

#include <stdbool.h>

#include "../integration/truth.h"
#include "../runtimes/shape.h"

enum { STACK_BYTES = 65536, GREENS_MAX = 2048, HOG_NS = 10000000 };

typedef struct green {
    prof_coro_t *coro;
    void *sp;
    char name[32];
    void (*run)(struct green *self);
    uint64_t wake_ns;  // when its timer goes off; 0 = none
    uint64_t ready_ns; // when it became ready; 0 = it waits
    uint64_t switched_ns, switched_cpu_ns;
    uint64_t cpu_ns, slice_ns, parked_ns, waited_ready_ns, blind_ns, switches;
    uint64_t *site;
    int tells, over;
} green_t;

static green_t greens[GREENS_MAX], *running;
static int count;
static void *home;
static uint64_t site_db, site_rpc, site_lock, end_ns;
static uint64_t hog_ns; // slices of HOG_NS or more

static uint64_t now_ns(void)
{
    return truth_clock_ns(CLOCK_MONOTONIC);
}

static __attribute__((noreturn)) void trampoline(void)
{
    running->run(running);
    running->over = 1;
    prof_coro_switch(NULL);
    shape_swap(&running->sp, home);
    abort();
}

static green_t *spawn(const char *name, void (*run)(green_t *), int tells)
{
    green_t *green = &greens[count++];
    char *stack = aligned_alloc(64, STACK_BYTES);
    void **top = (void **)(void *)(stack + STACK_BYTES);
    *--top = NULL; // two words: calls on this stack are not aligned as the ABI has it, as in programs that err there
    *--top = NULL;
    *--top = (void *)(uintptr_t)trampoline;
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    green->sp = top;
    green->run = run;
    green->tells = tells;
    snprintf(green->name, sizeof(green->name), "%s", name);
    green->coro = prof_coro_create(stack, STACK_BYTES, name);
    green->switched_ns = now_ns();
    return green;
}

// From the loop: let a coroutine that is ready run.
static void resume(green_t *green)
{
    uint64_t now = now_ns();
    uint64_t since = green->switched_ns;
    if (green->switches == 0) { // it could have run since it was made
        green->waited_ready_ns += now - since;
    } else if (!green->tells) {
        green->blind_ns += now - since;
    } else {
        uint64_t ready = green->ready_ns > since ? green->ready_ns : since;
        green->parked_ns += ready - since;
        green->waited_ready_ns += now - ready;
    }
    if (green->site != NULL)
        *green->site += now - since;
    green->ready_ns = 0;
    green->wake_ns = 0;
    green->switches++;
    green->switched_ns = now;
    green->switched_cpu_ns = truth_cpu_ns();
    running = green;
    prof_coro_switch(green->coro);
    shape_swap(&home, green->sp);
    now = now_ns();
    green->cpu_ns += truth_cpu_ns() - green->switched_cpu_ns;
    green->slice_ns += now - green->switched_ns;
    hog_ns += now - green->switched_ns >= HOG_NS ? now - green->switched_ns : 0;
    green->switched_ns = now;
    running = NULL;
}

static void mark_ready(green_t *green)
{
    if (green->tells)
        prof_coro_ready(green->coro);
    green->ready_ns = now_ns();
}

// From a coroutine: give the loop back until the timer goes off.
static TRUTH_OUT_OF_LINE void park(uint64_t ns, uint64_t *site)
{
    green_t *self = running;
    self->wake_ns = now_ns() + ns;
    self->site = site;
    prof_coro_switch(NULL);
    shape_swap(&self->sp, home);
    __asm__ volatile("");
}

#define SITE(name)                                                                                                     \
    static TRUTH_OUT_OF_LINE void wait_##name(uint64_t ns)                                                             \
    {                                                                                                                  \
        park(ns, &site_##name);                                                                                        \
        __asm__ volatile("");                                                                                          \
    }
SITE(db)
SITE(rpc)
SITE(lock)

static TRUTH_OUT_OF_LINE void compute(uint64_t ns)
{
    uint64_t start = truth_cpu_ns();
    while (truth_cpu_ns() - start < ns)
        truth_spin();
}

static TRUTH_OUT_OF_LINE void block(uint64_t ns)
{
    struct timespec time = {.tv_nsec = (long)ns};
    nanosleep(&time, NULL);
}

static void loop(int rest_when_idle)
{
    for (int live = 1; live > 0;) {
        uint64_t now = now_ns();
        live = 0;
        for (int i = 0; i < count; i++) { // first make them ready, then let them run: the last waits for all before
            green_t *green = &greens[i];
            if (!green->over && green->ready_ns == 0 && green->wake_ns <= now)
                mark_ready(green);
        }
        int ran = 0;
        for (int i = 0; i < count; i++) {
            if (!greens[i].over && greens[i].ready_ns != 0) {
                resume(&greens[i]);
                ran++;
            }
            live += !greens[i].over;
        }
        if (ran == 0 && rest_when_idle)
            block(50000);
    }
}

static void request(green_t *self)
{
    while (now_ns() < end_ns) {
        compute(300000);
        wait_db(7000000);
        compute(200000);
        wait_rpc(3000000);
        if (self - greens == 1)
            block(2000000);
        wait_lock(1000000);
    }
}

static void asleep(green_t *self)
{
    (void)self;
    wait_lock(UINT64_MAX / 2);
}

static void book(const green_t *green)
{
    uint64_t off = green->slice_ns > green->cpu_ns ? green->slice_ns - green->cpu_ns : 0;
    uint64_t wall = green->slice_ns + green->waited_ready_ns + green->parked_ns + green->blind_ns;
    printf("CORO %s %.6f %.6f %.6f %.6f %.6f %.6f %llu\n", green->name, truth_seconds(wall),
           truth_seconds(green->cpu_ns), truth_seconds(off), truth_seconds(green->waited_ready_ns),
           truth_seconds(green->parked_ns), truth_seconds(green->blind_ns), (unsigned long long)green->switches);
    prof_ledger_t ledger = PROF_LEDGER_INIT;
    if (prof_coro_ledger(green->coro, &ledger) == 0)
        printf("LEDGER %s %.6f %.6f %.6f %.6f %.6f %.6f %llu\n", green->name, truth_seconds(ledger.wall_ns),
               truth_seconds(ledger.cpu_ns), truth_seconds(ledger.blocked_ns + ledger.preempted_ns),
               truth_seconds(ledger.ready_ns), truth_seconds(ledger.parked_ns), truth_seconds(ledger.waiting_ns),
               (unsigned long long)ledger.switches);
}

static void books(void)
{
    for (int i = 0; i < count; i++)
        book(&greens[i]);
    printf("SITE wait_db %.6f\nSITE wait_rpc %.6f\nSITE wait_lock %.6f\n", truth_seconds(site_db),
           truth_seconds(site_rpc), truth_seconds(site_lock));
}

static void waits(double seconds)
{
    end_ns = now_ns() + (uint64_t)(seconds * 1e9);
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof(name), "request%d", i);
        spawn(name, request, i % 4 != 3); // every fourth does not say when it is ready
    }
    loop(1);
    books();
}

// A coroutine parked the whole time, beside a working one; the process ends with it parked.
static void whole(double seconds)
{
    uint64_t start = now_ns();
    end_ns = start + (uint64_t)(seconds * 1e9);
    spawn("sleeper", asleep, 1);
    spawn("worker", request, 1);
    mark_ready(&greens[0]);
    mark_ready(&greens[1]);
    resume(&greens[0]);
    while (!greens[1].over) {
        if (greens[1].ready_ns == 0 && greens[1].wake_ns <= now_ns())
            mark_ready(&greens[1]);
        if (greens[1].ready_ns != 0)
            resume(&greens[1]);
        else
            block(50000);
    }
    printf("SITE wait_lock %.6f\n", truth_seconds(site_lock + (now_ns() - greens[0].switched_ns)));
}

static uint64_t hog_ms;
static int hog_times, hogged, hog_dozes;
static TRUTH_OUT_OF_LINE void crunch(uint64_t ns)
{
    uint64_t start = truth_cpu_ns();
    while (truth_cpu_ns() - start < ns)
        truth_spin();
}

static TRUTH_OUT_OF_LINE void doze(uint64_t ns)
{
    block(ns);
    __asm__ volatile("");
}

static void hogging(green_t *self)
{
    (void)self;
    for (; hogged < hog_times; hogged++) {
        wait_db(2000000);
        if (!hog_dozes)
            crunch(hog_ms * 1000000);
        else
            doze(hog_ms * 1000000);
    }
}

static void victim(green_t *self)
{
    (void)self;
    while (hogged < hog_times)
        wait_rpc(0);
}

static void hog(uint64_t ms, int victims, int times)
{
    hog_ms = ms;
    hog_times = times;
    spawn("hog", hogging, 1);
    for (int i = 0; i < victims; i++)
        spawn("victim", victim, 1);
    loop(0);
    printf("HOG %.6f %d\n", truth_seconds(hog_ns), victims);
}

static int yield_rounds;

static void yielding(green_t *self)
{
    for (int i = 0; i < yield_rounds; i++) {
        compute(20000);
        mark_ready(self); // still running: it only lets others run
        self->site = NULL;
        prof_coro_switch(NULL);
        shape_swap(&self->sp, home);
    }
}

static void yields(int rounds)
{
    yield_rounds = rounds;
    for (int i = 0; i < 3; i++)
        spawn("yielder", yielding, 1);
    loop(0);
    books();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double number = argc > 2 ? atof(argv[2]) : 1;
    prof_t *profile = NULL;
    bool own = strcmp(what, "profile") == 0;
    if (own) {
        prof_options_t options = PROF_OPTIONS_INIT;
        options.clock = PROF_CLOCK_WALL;
        profile = prof_start(&options);
        if (profile == NULL || argc < 5)
            return 2;
    }
    if (own || strcmp(what, "waits") == 0)
        waits(number);
    else if (strcmp(what, "whole") == 0)
        whole(number);
    else if (strcmp(what, "hog") == 0 && argc > 5) {
        hog_dozes = strcmp(argv[5], "doze") == 0;
        hog((uint64_t)number, atoi(argv[3]), atoi(argv[4]));
    } else if (strcmp(what, "yields") == 0)
        yields((int)number);
    else
        return 2;
    if (own) {
        prof_stop(profile);
        prof_ledger_t ledger = PROF_LEDGER_INIT;
        if (prof_ledger(profile, &ledger) != 0 || prof_dump(profile, argv[3], argv[4]) != 0)
            return 1;
        printf("PROFILE %.6f %.6f %.6f %.6f %.6f %.6f %llu\n", truth_seconds(ledger.wall_ns),
               truth_seconds(ledger.cpu_ns), truth_seconds(ledger.blocked_ns + ledger.preempted_ns),
               truth_seconds(ledger.ready_ns), truth_seconds(ledger.parked_ns), truth_seconds(ledger.waiting_ns),
               (unsigned long long)ledger.switches);
    }
    return 0;
}
