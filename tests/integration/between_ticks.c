// SPDX-License-Identifier: MIT
// Works only between the kernel's ticks, so no timer on its CPU clock goes off: as may happen to a thread with a small
// share of a busy processor. A timer of its own says when one met it at work all the same; it goes on until none has
// for so many seconds of its CPU time.
//
//   between_ticks SECONDS       ends with 3 where the timers of this kernel do not wait for its ticks
// Prints two more: what prof_total_ns() says of TOTAL, PROFILE seconds; and CPU time since main() began, ALL seconds;
// and what it used after the last tick, HIDDEN seconds.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

#include "greenprof/prof.h"
#include "truth.h"

enum {
    PARTS = 8,          // of the time between two ticks; the first and the last two are not worked in
    LOOK_TICKS = 8,     // to find when they come
    LOOK_LONGEST = 500, // of CPU time: most may come while others run
    MOST_S = 60         // of the clock
};

static uint64_t tick_ns;
static volatile sig_atomic_t ticks_seen;
static volatile uint64_t ticks_at_ns[LOOK_TICKS]; // the first ones

WORK(shown)
static uint64_t hidden_ns;

static void see_tick(int number)
{
    (void)number;
    if (ticks_seen < LOOK_TICKS)
        ticks_at_ns[ticks_seen] = truth_clock_ns(CLOCK_MONOTONIC);
    ticks_seen++;
}

static void sleep_until(uint64_t at)
{
    struct timespec time = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

// Work between the next two ticks.
static TRUTH_OUT_OF_LINE void work_hidden(uint64_t tick_at)
{
    uint64_t now = truth_clock_ns(CLOCK_MONOTONIC), part = tick_ns / PARTS;
    uint64_t last = now - (now - tick_at) % tick_ns, from = last + tick_ns + part;
    sleep_until(from);
    uint64_t start = truth_cpu_ns();
    while (truth_clock_ns(CLOCK_MONOTONIC) < from + (PARTS - 3) * part)
        truth_spin();
    truth_book(&hidden_ns, truth_cpu_ns() - start);
}

static void set_timer(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec often = {.it_value = {.tv_nsec = 1}, .it_interval = {.tv_nsec = 1}}; // each tick at work
    signal(SIGUSR1, see_tick);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0 || timer_settime(timer, 0, &often, NULL) != 0)
        exit(4);
}

static bool are_near(uint64_t a, uint64_t b)
{
    uint64_t apart = (a > b ? a - b : b - a) % tick_ns;
    return apart < tick_ns / PARTS / 2 || apart > tick_ns - tick_ns / PARTS / 2;
}

// A moment at which this processor ticks: of the signal that most others agree with. Some come late, as others ran.
static uint64_t find_ticks(void)
{
    uint64_t book = 0, found = 0;
    int most = 0;
    while (ticks_seen < LOOK_TICKS && book < LOOK_LONGEST * tick_ns)
        truth_burn_until(truth_cpu_ns(), truth_cpu_ns() + tick_ns, &book);
    int count = ticks_seen < LOOK_TICKS ? ticks_seen : LOOK_TICKS;
    if (ticks_seen == 0 || (uint64_t)ticks_seen > 2 + 2 * book / tick_ns)
        exit(3);
    for (int i = 0; i < count; i++) {
        int agree = 0;
        for (int j = 0; j < count; j++)
            agree += are_near(ticks_at_ns[i], ticks_at_ns[j]);
        if (agree > most) {
            most = agree;
            found = ticks_at_ns[i];
        }
    }
    return found;
}

static uint64_t work_unseen(uint64_t tick_at, uint64_t ns)
{
    uint64_t until = truth_clock_ns(CLOCK_MONOTONIC) + MOST_S * 1000000000ull, since = hidden_ns;
    ticks_seen = 0;
    while (hidden_ns - since < ns && truth_clock_ns(CLOCK_MONOTONIC) < until) {
        work_hidden(tick_at);
        if (ticks_seen > 0)
            since = hidden_ns;
        ticks_seen = 0;
    }
    return hidden_ns - since;
}

static void stay_here(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    sched_setaffinity(0, sizeof(here), &here);
}

int main(int argc, char **argv)
{
    uint64_t begun_ns = truth_cpu_ns();
    struct timespec tick;
    prof_options_t options = PROF_OPTIONS_INIT;
    double seconds = argc > 1 ? atof(argv[1]) : 0.2;
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    tick_ns = (uint64_t)tick.tv_nsec;
    stay_here();
    set_timer();
    uint64_t tick_at = find_ticks();
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        return 5;
    truth_thread_begin();
    uint64_t before = hidden_ns;
    work_shown((uint64_t)(seconds * 1e9));
    uint64_t unseen_ns = work_unseen(tick_at, (uint64_t)(seconds * 1e9));
    hidden_ns -= before;
    truth_thread_end();
    uint64_t total_ns = prof_total_ns(profile);
    prof_free(profile);
    EXPECT(shown);
    EXPECT(hidden);
    printf("PROFILE %.6f\nALL %.6f\n", truth_seconds(total_ns), truth_seconds(truth_cpu_ns() - begun_ns));
    printf("HIDDEN %.6f\n", truth_seconds(unseen_ns));
    truth_print_total();
    return 0;
}
