// SPDX-License-Identifier: MIT
// Which threads of a crowded process are stopped while greenprof begins there, and all go on. BUSY is busy.c's program.
#include "attach/pause_others.h"

#include <errno.h>
#include <sched.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/thread_stop.h"
#include "may_trace.h"

enum { COMPUTING = 6, PAST_LIMIT_MS = 600 };

typedef struct program {
    pid_t pid;
    FILE *in, *out;
} program_t;

static int interrupts;

static void on_signal(int number)
{
    (void)number;
    interrupts++;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

// Its first thread waits for a line, and is no one that computes.
static void let_settle(const program_t *program)
{
    while (gp_thread_stop_state(program->pid, program->pid, NULL) != 'S')
        pause_ms(1);
}

// All of its threads have one processor.
static program_t begin(const char *const *counts)
{
    int to[2], from[2];
    char line[64];
    cpu_set_t one;
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    program_t program = {.pid = fork()};
    if (program.pid == 0) {
        sched_setaffinity(0, sizeof(one), &one);
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[1]); // it ends with us
        execl(getenv("BUSY"), "busy", counts[0], counts[1], counts[2], counts[3], counts[4], (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    program.in = fdopen(to[1], "w");
    program.out = fdopen(from[0], "r");
    assert_non_null(fgets(line, sizeof(line), program.out));
    assert_string_equal(line, "ready\n");
    let_settle(&program);
    return program;
}

static unsigned long rounds(const program_t *program, unsigned long *failures)
{
    unsigned long count = 0;
    fputs("\n", program->in);
    fflush(program->in);
    assert_int_equal(fscanf(program->out, " rounds %lu failures %lu", &count, failures), 2);
    let_settle(program);
    return count;
}

typedef struct states {
    pid_t pid;
    int stopped;
} states_t;

static int count_state(pid_t tid, void *argument)
{
    states_t *states = argument;
    states->stopped += gp_thread_stop_state(states->pid, tid, NULL) == 't';
    return -EAGAIN;
}

static int stopped(const program_t *program)
{
    states_t states = {.pid = program->pid};
    gp_thread_stop_each(program->pid, count_state, &states);
    return states.stopped;
}

// All run on, and compute right.
static void check_going(const program_t *program)
{
    unsigned long failures, first = rounds(program, &failures);
    assert_int_equal(stopped(program), 0);
    while (rounds(program, &failures) == first)
        ;
    assert_int_equal(failures, 0);
}

static void end(program_t *program)
{
    int status;
    fclose(program->in);
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    fclose(program->out);
}

static void test_those_that_compute_are_stopped(void **state)
{
    program_t program = begin((const char *[]){"0", "6", "0", "0", "0"});
    unsigned long failures;
    (void)state;
    gp_pause_others_begin(program.pid);
    assert_int_equal(stopped(&program), COMPUTING);
    assert_false(gp_pause_others_holds(program.pid)); // it sleeps
    unsigned long first = rounds(&program, &failures);
    pause_ms(1);
    assert_int_equal(rounds(&program, &failures), first);
    gp_pause_others_end();
    check_going(&program);
    end(&program);
}

static void test_few_are_left_alone(void **state)
{
    program_t program = begin((const char *[]){"0", "3", "0", "0", "0"});
    (void)state;
    gp_pause_others_begin(program.pid);
    assert_int_equal(stopped(&program), 0);
    gp_pause_others_look();
    assert_int_equal(gp_pause_others_look_ms(200), 200);
    gp_pause_others_end();
    check_going(&program);
    end(&program);
}

static void test_holder_of_lock_goes_on(void **state)
{
    program_t program = begin((const char *[]){"0", "6", "0", "0", "1"});
    unsigned long failures;
    (void)state;
    gp_pause_others_begin(program.pid);
    assert_int_equal(stopped(&program), COMPUTING);
    unsigned long first = rounds(&program, &failures);
    while (rounds(&program, &failures) == first) // its own
        ;
    gp_pause_others_end();
    check_going(&program);
    end(&program);
}

// Waiting threads expect no EINTR; those that allocate and load give their locks back before they stop.
static void test_all_kinds_go_on(void **state)
{
    program_t program = begin((const char *[]){"4", "4", "4", "4", "0"});
    (void)state;
    for (int i = 0; i < 20; i++) {
        gp_pause_others_begin(program.pid);
        pause_ms(25);
        gp_pause_others_look();
        gp_pause_others_end();
        check_going(&program);
    }
    end(&program);
}

static void test_nothing_is_stopped_for_long(void **state)
{
    program_t program = begin((const char *[]){"0", "6", "0", "0", "0"});
    (void)state;
    gp_pause_others_begin(program.pid);
    pause_ms(PAST_LIMIT_MS);
    gp_pause_others_look();
    check_going(&program);
    pause_ms(PAST_LIMIT_MS);
    gp_pause_others_look();
    assert_int_equal(stopped(&program), COMPUTING); // again
    gp_pause_others_end();
    check_going(&program);
    end(&program);
}

static void test_signals_wait(void **state)
{
    program_t program = begin((const char *[]){"0", "6", "0", "0", "0"});
    const struct sigaction action = {.sa_handler = on_signal};
    (void)state;
    sigaction(SIGINT, &action, NULL);
    gp_pause_others_begin(program.pid);
    raise(SIGINT);
    assert_int_equal(interrupts, 0);
    gp_pause_others_end();
    assert_int_equal(interrupts, 1);
    end(&program);
}

// The kernel lets threads go when their stopper ends.
static void test_killed(void **state)
{
    program_t program = begin((const char *[]){"0", "6", "0", "0", "0"});
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        gp_pause_others_begin(program.pid);
        _exit(stopped(&program) == COMPUTING && kill(getpid(), SIGKILL) == 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    check_going(&program);
    end(&program);
}

static void test_that_ends_meanwhile(void **state)
{
    program_t program = begin((const char *[]){"0", "6", "0", "0", "0"});
    int status;
    (void)state;
    gp_pause_others_begin(program.pid);
    kill(program.pid, SIGKILL);
    gp_pause_others_end();
    pid_t ended; // stopped threads are this process' to wait for, too, and before it
    while ((ended = waitpid(-1, &status, __WALL)) != program.pid)
        assert_true(ended > 0);
    assert_true(WIFSIGNALED(status));
    fclose(program.in);
    fclose(program.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_those_that_compute_are_stopped),
        cmocka_unit_test(test_few_are_left_alone),
        cmocka_unit_test(test_holder_of_lock_goes_on),
        cmocka_unit_test(test_all_kinds_go_on),
        cmocka_unit_test(test_nothing_is_stopped_for_long),
        cmocka_unit_test(test_signals_wait),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_that_ends_meanwhile),
    };
    if (!gp_may_trace()) {
        puts("no process may be traced here");
        return 77;
    }
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
