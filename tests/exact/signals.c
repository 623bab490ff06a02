// SPDX-License-Identifier: MIT
// Instrumented functions interrupted by instrumented signal handlers, on the stack that runs or on an alternate one,
// and a fork in between. Prints the numbers of calls that the program itself counted: "NAME CALLS" lines, the child's
// prefixed by "child".
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <greenprof/prof.h>

#define PLAIN __attribute__((no_instrument_function))

enum { ROUNDS = 300000 };

// Only ever changed by the thread and its handlers, each change one instruction: as exact as can be.
static volatile unsigned long works, leaves, handlers, handler_leaves;

#define COUNT(counter) __atomic_fetch_add(&(counter), 1, __ATOMIC_RELAXED)

__attribute__((noinline)) void leaf(void)
{
    COUNT(leaves);
}

__attribute__((noinline)) void handler_leaf(void)
{
    COUNT(handler_leaves);
    leaf();
}

void handler(int number)
{
    (void)number;
    COUNT(handlers);
    handler_leaf();
    leaf();
}

__attribute__((noinline)) void work(void)
{
    COUNT(works);
    leaf();
    leaf();
}

PLAIN static void set_timer(long interval_us)
{
    struct itimerval timer = {{0, interval_us}, {0, interval_us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

PLAIN static void print_counts(const char *process)
{
    printf("%swork %lu\n%sleaf %lu\n%shandler %lu\n%shandler_leaf %lu\n", process, works, process, leaves, process,
           handlers, process, handler_leaves);
    fflush(stdout);
}

PLAIN static void run(void)
{
    set_timer(211);
    for (int i = 0; i < ROUNDS; i++)
        work();
    set_timer(0);
}

PLAIN int main(int argc, char **argv)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    bool alternate = argc > 1 && strcmp(argv[1], "alternate") == 0;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    if (alternate && sigaltstack(&stack, NULL) == 0)
        action.sa_flags |= SA_ONSTACK;
    sigaction(SIGALRM, &action, NULL);
    options.mode = PROF_MODE_EXACT;
    options.scope = PROF_SCOPE_PROCESS;
    options.frequency_hz = 5000;
    prof_t *prof = prof_start(&options);
    run();
    pid_t child = fork();
    if (child == 0) {
        run();
        prof_stop(prof);
        print_counts("child ");
        _exit(prof_dump_stats(prof, "child.prof") != 0);
    }
    int status;
    run();
    prof_stop(prof);
    print_counts("");
    if (prof_dump_stats(prof, "parent.prof") != 0 || waitpid(child, &status, 0) != child)
        return 1;
    return WEXITSTATUS(status);
}
