// SPDX-License-Identifier: MIT
// The fate of a signal that stops a thread about to stop anyway: it goes through, but for greenprof's own in a process
// left behind, where the handler may be gone by then.
#include "attach/thread_stop.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "may_trace.h"

#define LIMIT_NS 60000000000ull

enum { DROPPED = 0, HANDLED = 7, FAILED = 1 }; // exit statuses
enum { CLOSED = 1000 };                        // no descriptor

typedef struct channel {
    int read_end, write_end;
} channel_t;

static siginfo_t sent;
static channel_t to_thread, to_main, to_us;
static _Atomic int handled;

static void on_signal(int number)
{
    (void)number;
    handled++;
}

static channel_t make_channel(void)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    return (channel_t){ends[0], ends[1]};
}

static void close_channel(const channel_t *channel)
{
    close(channel->read_end);
    close(channel->write_end);
}

static void say(const channel_t *channel, pid_t word)
{
    if (write(channel->write_end, &word, sizeof(word)) != (ssize_t)sizeof(word))
        _exit(FAILED);
}

static pid_t hear(const channel_t *channel)
{
    pid_t word;
    if (read(channel->read_end, &word, sizeof(word)) != (ssize_t)sizeof(word))
        _exit(FAILED);
    return word;
}

static void *raise_it(void *unused)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    (void)unused;
    say(&to_us, tid);
    hear(&to_thread);
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, sent.si_signo, &sent) != 0)
        _exit(FAILED);
    return NULL;
}

// A thread sends itself the signal; before that goes through, another one gives the handler back, if at all.
static void run_program(bool gives_back)
{
    pthread_t thread;
    signal(sent.si_signo, on_signal);
    if (pthread_create(&thread, NULL, raise_it, NULL) != 0)
        _exit(FAILED);
    hear(&to_main);
    if (gives_back)
        signal(sent.si_signo, SIG_DFL);
    say(&to_us, 0);
    pthread_join(thread, NULL);
    _exit(handled == 1 ? HANDLED : DROPPED);
}

// The thread is in the middle of a stop for the signal when another is asked for.
static void stop_for_signal_first(pid_t tid)
{
    siginfo_t stop = {0};
    assert_int_equal(ptrace(PTRACE_SEIZE, tid, 0, 0), 0);
    say(&to_thread, 0);
    assert_int_equal(waitid(P_PID, (id_t)tid, &stop, WSTOPPED | WNOWAIT | __WALL), 0);
    assert_int_equal(stop.si_status, sent.si_signo);
    say(&to_main, 0);
    hear(&to_us);
    assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
}

// Returns the process' exit status, or the signal that it ended by, negative.
static int outcome(siginfo_t signal_info, bool gives_back)
{
    int status = 0;
    sent = signal_info;
    to_thread = make_channel();
    to_main = make_channel();
    to_us = make_channel();
    pid_t pid = fork();
    if (pid == 0)
        run_program(gives_back);
    pid_t tid = hear(&to_us);
    stop_for_signal_first(tid);
    if (gp_thread_stop_wait_asked(tid, LIMIT_NS) == 0)
        ptrace(PTRACE_DETACH, tid, 0, 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close_channel(&to_thread);
    close_channel(&to_main);
    close_channel(&to_us);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static siginfo_t of_timer(int number)
{
    return (siginfo_t){.si_signo = number, .si_code = SI_TIMER};
}

// As SIGIO's kind, which F_SETSIG makes another of.
static siginfo_t of_descriptor(int number, int fd)
{
    siginfo_t info = {.si_signo = number, .si_code = POLL_IN};
    info.si_fd = fd;
    return info;
}

static siginfo_t of_others(int number)
{
    return (siginfo_t){.si_signo = number, .si_code = SI_QUEUE};
}

static void test_all_go_through_where_nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(outcome(of_timer(SIGPROF), false), HANDLED);
    assert_int_equal(outcome(of_others(SIGPROF), false), HANDLED);
    assert_int_equal(outcome(of_timer(SIGPROF), true), -SIGPROF); // what is to be prevented
}

static void test_samples_are_dropped(void **state)
{
    (void)state;
    gp_thread_stop_drop_samples();
    assert_int_equal(outcome(of_timer(SIGPROF), true), DROPPED);
    assert_int_equal(outcome(of_timer(SIGSTKFLT), true), DROPPED);
    assert_int_equal(outcome((siginfo_t){.si_signo = SIGPROF, .si_code = SI_KERNEL}, true), DROPPED);
    assert_int_equal(outcome(of_descriptor(SIGPROF, CLOSED), true), DROPPED); // a perf event's that is closed by now
    assert_int_equal(outcome(of_descriptor(SIGRTMAX, CLOSED), true), DROPPED);
    assert_int_equal(outcome(of_timer(SIGPROF), false), DROPPED);
}

static void test_others_go_through(void **state)
{
    (void)state;
    assert_int_equal(outcome(of_others(SIGPROF), false), HANDLED);
    assert_int_equal(outcome(of_others(SIGPROF), true), -SIGPROF); // as it is without us
    assert_int_equal(outcome(of_timer(SIGRTMAX), false), HANDLED);
    assert_int_equal(outcome(of_descriptor(SIGPROF, STDERR_FILENO), false), HANDLED);
    assert_int_equal(outcome(of_descriptor(SIGIO, CLOSED), false), HANDLED);
    assert_int_equal(outcome(of_timer(SIGUSR1), false), HANDLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_go_through_where_nothing_is_left),
        cmocka_unit_test(test_samples_are_dropped), // from here on
        cmocka_unit_test(test_others_go_through),
    };
    if (!gp_may_trace()) {
        puts("no process may be traced here");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
