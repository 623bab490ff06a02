// SPDX-License-Identifier: MIT
// A program that uses SIGPROF itself: it must go on as without greenprof.
//   owner handler | signal | late_handler | everything | ignore | reset
#include "truth.h"

#include <signal.h>
#include <sys/time.h>

WORK(own)

static volatile sig_atomic_t ticks;

static void on_tick(int number)
{
    (void)number;
    ticks++;
}

static void start_timer(void)
{
    struct itimerval timer = {{0, 10000}, {0, 10000}};
    setitimer(ITIMER_PROF, &timer, NULL);
}

static int reset_all(void)
{
    struct sigaction old;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    work_own(500000000);
    if (signal(SIGPROF, SIG_IGN) != SIG_DFL || sigaction(SIGPROF, NULL, &old) != 0 || old.sa_handler != SIG_IGN)
        return 3;
    work_own(500000000);
    EXPECT(own);
    truth_print_total();
    return 0;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, old;
    truth_thread_begin();
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "late_handler") == 0)
        work_own(500000000);           // sampled in peace until then
    if (strcmp(argv[1], "reset") == 0) // as daemons do: all signals at once, and no timer
        return reset_all();
    for (int number = 1; strcmp(argv[1], "everything") == 0 && number < NSIG; number++)
        if (number != SIGPROF)
            sigaction(number, &action, NULL);
    if (strcmp(argv[1], "ignore") == 0)
        action.sa_handler = SIG_IGN;
    if (strcmp(argv[1], "signal") == 0) {
        if (signal(SIGPROF, on_tick) != SIG_DFL)
            return 3;
    } else if (sigaction(SIGPROF, NULL, &old) != 0 || old.sa_handler != SIG_DFL ||
               sigaction(SIGPROF, &action, &old) != 0 || old.sa_handler != SIG_DFL) {
        return 3;
    }
    start_timer();
    work_own(1000000000);
    sigaction(SIGPROF, NULL, &old);
    if (old.sa_handler != action.sa_handler) // it is still the host's
        return 4;
    // 100 a second of CPU time, at the kernel's mercy; greenprof's own must not come in through the host's handler.
    printf("TICKS %d\n", (int)ticks);
    EXPECT(own);
    truth_print_total();
    if (strcmp(argv[1], "ignore") != 0 && (ticks < 10 || ticks > 130))
        return 5;
    return 0;
}
