// SPDX-License-Identifier: MIT
// A signal of the program's that ends a system call ends it also where our signal is delivered first.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "signal/restart.h"

enum { INTERRUPTED = 10, REPEATED, ORDER }; // how the child ends: ORDER if the program's signal came first

static int input[2], handled[2];
static volatile sig_atomic_t ours_ran, theirs_first;

static void ours(int number, siginfo_t *info, void *context) // as the sampling handler
{
    (void)number;
    (void)info;
    ours_ran = 1;
    gp_restart_call(context);
}

static void theirs(int number)
{
    (void)number;
    theirs_first = !ours_ran;
    if (write(handled[1], "", 1) != 1)
        _exit(1);
}

static void child(int flags)
{
    struct sigaction mine = {.sa_sigaction = ours, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction other = {.sa_handler = theirs, .sa_flags = flags};
    char byte;
    sigfillset(&mine.sa_mask);
    sigaction(SIGUSR1, &mine, NULL);
    sigaction(SIGALRM, &other, NULL);
    if (write(handled[1], "", 1) != 1)
        _exit(1);
    ssize_t result = read(input[0], &byte, 1);
    if (theirs_first || !ours_ran)
        _exit(ORDER);
    _exit(result == 1 ? REPEATED : result < 0 && errno == EINTR ? INTERRUPTED : 1);
}

static char state_of(pid_t pid) // as /proc has it; 0 = it does not say
{
    char path[32], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *in = fopen(path, "r");
    if (in == NULL || fscanf(in, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (in != NULL)
        fclose(in);
    return state;
}

static void wait_for_state(pid_t pid, char wanted)
{
    char state;
    while ((state = state_of(pid)) != wanted && state != 'Z')
        usleep(1000);
}

// Both signals are pending when a blocked read() is left: one sent to the thread, as ours are, one to the process.
static int end_of_read(int flags)
{
    char byte;
    int status;
    assert_int_equal(pipe(input), 0);
    assert_int_equal(pipe(handled), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child(flags);
    assert_int_equal(read(handled[0], &byte, 1), 1);
    wait_for_state(pid, 'S');
    kill(pid, SIGSTOP);
    wait_for_state(pid, 'T');
    kill(pid, SIGALRM);
    syscall(SYS_tgkill, pid, pid, SIGUSR1);
    kill(pid, SIGCONT);
    assert_int_equal(read(handled[0], &byte, 1), 1);
    assert_int_equal(write(input[1], "", 1), 1); // what a repeated read gets
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < 2; i++) {
        close(input[i]);
        close(handled[i]);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_signal_ends_the_call_though_ours_comes_first(void **state)
{
    (void)state;
    assert_int_equal(end_of_read(0), INTERRUPTED);
}

static void a_signal_with_sa_restart_does_not(void **state)
{
    (void)state;
    assert_int_equal(end_of_read(SA_RESTART), REPEATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_ends_the_call_though_ours_comes_first),
        cmocka_unit_test(a_signal_with_sa_restart_does_not),
    };
#if !defined(__x86_64__)
    puts("SKIP: only the x86-64 kernel's way of repeating calls is known");
    return 77;
#endif
    if (state_of(getpid()) == 0) {
        puts("SKIP: /proc is not there");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
