// SPDX-License-Identifier: MIT
// Lives of threads without coroutines, told by the clocks: all of a life is CPU time, sleep, or neither.
//
//   thread_lives contended    shares its processor with a process that computes
//   thread_lives stopped      is stopped for STOP_US as it computes
//
//   LIFE wall cpu asleep waited     seconds; asleep: as asked for; waited: for a processor, by the kernel, or stopped
#include "truth.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { ROUNDS = 10, COMPUTE_NS = 50000000, NAP_US = 30000, STOP_AFTER_US = 200000, STOP_US = 700000 };

static uint64_t computed_ns;
static pid_t self;

static uint64_t run_delay_ns(void)
{
    unsigned long long on_ns, delay_ns = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file == NULL || fscanf(file, "%llu %llu", &on_ns, &delay_ns) != 2)
        exit(77);
    fclose(file);
    return delay_ns;
}

TRUTH_OUT_OF_LINE static void computes(void)
{
    uint64_t start = truth_cpu_ns();
    truth_burn_until(start, start + COMPUTE_NS, &computed_ns);
    __asm__ volatile("");
}

TRUTH_OUT_OF_LINE static void sleeps(void)
{
    usleep(NAP_US);
    __asm__ volatile("");
}

static void be_beside(void)
{
    for (;;)
        truth_spin();
}

static void stop_it(void)
{
    usleep(STOP_AFTER_US);
    kill(self, SIGSTOP);
    usleep(STOP_US);
    kill(self, SIGCONT);
    _exit(0);
}

static void share_a_processor(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    size_t first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
    bool is_stopped = argc > 1 && strcmp(argv[1], "stopped") == 0;
    self = getpid();
    if (!is_stopped)
        share_a_processor();
    pid_t child = fork();
    if (child == 0)
        (is_stopped ? stop_it : be_beside)();
    uint64_t start = truth_clock_ns(CLOCK_MONOTONIC), cpu = truth_cpu_ns(), delay = run_delay_ns();
    for (int i = 0; i < ROUNDS; i++) {
        computes();
        if (!is_stopped)
            sleeps();
    }
    delay = run_delay_ns() - delay + (is_stopped ? STOP_US * 1000ull : 0);
    cpu = truth_cpu_ns() - cpu;
    start = truth_clock_ns(CLOCK_MONOTONIC) - start;
    if (!is_stopped)
        kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    printf("LIFE %.6f %.6f %.6f %.6f\n", (double)start / 1e9, (double)cpu / 1e9, is_stopped ? 0 : ROUNDS * NAP_US / 1e6,
           (double)delay / 1e9);
    return 0;
}
