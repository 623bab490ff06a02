// SPDX-License-Identifier: MIT
// Hosts as rough to greenprof as libraries are: fork handlers that join and create threads, threads cancelled while
// they dump, a tiny default stack, forks without handlers, signal handlers in need of room, exec by number.
//
// Each case is a process of its own, since fork handlers are to be registered before its first fork: one that hangs or
// crashes fails its test alone.
#include "../context.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "early_handlers.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"
#include "work.h"

extern char **environ;

enum { NOT_HERE = 77, PATIENCE_S = 60, FORKS = 5, CANCELLED = 60, DUMPS = 10, TINY_STACK = 49152 };

// --- Fork handlers.

static pthread_t worker;
static sem_t leave;
static bool is_joined, is_created;
static prof_t *outer_profile;

static void *work_until_left(void *unused)
{
    (void)unused;
    burn(1000000);
    while (sem_wait(&leave) != 0)
        ;
    return NULL;
}

static void create(void)
{
    if (is_created && pthread_create(&worker, NULL, work_until_left, NULL) != 0)
        abort();
}

static void join(void)
{
    if (!is_joined)
        return;
    sem_post(&leave);
    pthread_join(worker, NULL);
}

static int fork_once(void)
{
    int status = -1;
    if (is_joined && !is_created && pthread_create(&worker, NULL, work_until_left, NULL) != 0)
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        burn(1000000);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    if (is_created && !is_joined) {
        sem_post(&leave);
        pthread_join(worker, NULL);
    }
    return status == 0 ? 0 : 3;
}

static int fork_with_handlers(bool joins, bool creates)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    is_joined = joins;
    is_created = creates;
    sem_init(&leave, 0, 0);
    prof_t *profile = prof_start(&options);
    if (joins && creates)
        create();
    pthread_atfork(join, create, create);
    int result = profile != NULL ? 0 : 1;
    for (int i = 0; i < FORKS && result == 0; i++)
        result = fork_once();
    return prof_stop(profile) == 0 ? result : 4;
}

static int forks_join(void)
{
    return fork_with_handlers(true, false);
}

static int forks_create(void)
{
    return fork_with_handlers(false, true);
}

static int forks_do_both(void)
{
    return fork_with_handlers(true, true);
}

static int calls_in_handlers, refused_in_handlers;

static void call_in_handler(void)
{
    prof_t *profile = prof_start(NULL);
    refused_in_handlers += profile == NULL && errno == ESRCH;
    refused_in_handlers += prof_stop(outer_profile) == -ESRCH;
    refused_in_handlers += prof_dump_stats(outer_profile, "/dev/null") == -ESRCH;
    calls_in_handlers += 3;
}

// Calls that a fork handler may not make are refused; this is no reason to hang.
static int fork_handlers_call(void)
{
    int status = -1;
    outer_profile = prof_start(NULL);
    pthread_atfork(call_in_handler, call_in_handler, call_in_handler);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S / 2);
        _exit(refused_in_handlers == calls_in_handlers && prof_stop(outer_profile) == 0 ? 0 : 5);
    }
    waitpid(pid, &status, 0);
    if (status != 0 || calls_in_handlers != 6 || refused_in_handlers != 6)
        return 2;
    return prof_stop(outer_profile) == 0 ? 0 : 3;
}

static int failed_in_threads;
static pid_t first_process;

// AddressSanitizer takes the stacks of threads that a forked child does not have for used ones, and so those of the
// child's threads in the same place.
static bool may_dump(void)
{
#ifdef __SANITIZE_ADDRESS__
    return getpid() == first_process;
#else
    return true;
#endif
}

static void *use_profiles(void *unused)
{
    (void)unused;
    prof_t *profile = prof_start(NULL);
    burn(1000000);
    failed_in_threads += profile == NULL || (may_dump() && prof_dump_stats(outer_profile, "/dev/null") != 0);
    failed_in_threads += profile == NULL || prof_stop(profile) != 0;
    return NULL;
}

static void let_thread_call(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_profiles, NULL) != 0)
        abort();
    pthread_join(thread, NULL);
}

static int fork_while_handlers_wait(void)
{
    int status = -1;
    first_process = getpid();
    outer_profile = prof_start(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S / 2);
        prof_t *profile = prof_start(NULL);
        _exit(failed_in_threads == 0 && prof_stop(profile) == 0 && prof_stop(outer_profile) == 0 ? 0 : 5);
    }
    waitpid(pid, &status, 0);
    return status != 0 ? 2 : failed_in_threads != 0 ? 3 : prof_stop(outer_profile) == 0 ? 0 : 4;
}

// A fork handler may wait for a thread that starts, dumps and stops profiles.
static int fork_handlers_wait(void)
{
    pthread_atfork(let_thread_call, let_thread_call, let_thread_call);
    return fork_while_handlers_wait();
}

// A library older than greenprof may do so, too.
static int early_handlers_wait(void)
{
    early_handler = let_thread_call;
    return fork_while_handlers_wait();
}

// --- Dumps.

// A name that is demangled, which takes much stack.
__attribute__((noinline)) void burn_mangled(void) __asm__("_ZN9greenprof4test12burn_mangledENSt6vectorIiSaIiEEE");
void burn_mangled(void)
{
    burn(20000000);
}

static void *dump_for_ever(void *profile)
{
    for (;; pthread_testcancel())
        prof_dump_stats(profile, "/dev/null");
    return NULL;
}

static int cancelled_dumps(void)
{
    prof_t *profile = prof_start(NULL);
    burn_mangled();
    for (int i = 0; i < CANCELLED; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, dump_for_ever, profile) != 0)
            return 2;
        usleep((useconds_t)(1000 + i * 97 % 3000));
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    prof_free(profile);
    return 0;
}

static int tiny_default_stack(void)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (pthread_attr_setstacksize(&attr, TINY_STACK) != 0 || pthread_setattr_default_np(&attr) != 0)
        return 2;
    prof_t *profile = prof_start(NULL);
    burn_mangled();
    for (int i = 0; i < DUMPS; i++)
        if (prof_dump(profile, "folded", "/dev/null") != 0)
            return 3;
    return prof_stop(profile);
}

// --- A child without fork handlers.

static int check_child(prof_t *profile)
{
    alarm(PATIENCE_S / 4); // it is not inherited
    prof_ledger_t ledger = {.size = sizeof(ledger)};
    if (prof_stop(profile) != -ESRCH || prof_resume(profile) != -ESRCH || prof_total_ns(profile) != 0)
        return 2;
    if (prof_ledger(profile, &ledger) != -ESRCH || prof_dump(profile, "folded", "/dev/null") != -ESRCH)
        return 3;
    if (prof_coro_dump("/dev/null") != -ESRCH || prof_start(NULL) != NULL || errno != ESRCH)
        return 4;
    prof_free(profile);
    return 0;
}

static int bare_fork(void)
{
    int status = -1;
    prof_t *profile = prof_start(NULL);
    long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(check_child(profile));
    waitpid((pid_t)pid, &status, 0);
    return prof_stop(profile) != 0 ? 5 : WIFEXITED(status) ? WEXITSTATUS(status) : 6;
}

// --- Signal handlers of the program while a wait is walked on the spare stack, which is 16 KiB.

enum { CORO_STACK = 1 << 20, NEED = 24 << 10, SIGNALS = 4000 };

static ucontext_t loop, coroutine;
static volatile sig_atomic_t signals;

static void need_room(int number)
{
    volatile char room[NEED];
    (void)number;
    for (size_t i = 0; i < sizeof(room); i += 512)
        room[i] = 1;
    signals = signals + 1;
}

static void switch_for_ever(void)
{
    for (;;)
        swapcontext(&coroutine, &loop);
}

static int handlers_need_room(void)
{
    struct sigaction action = {.sa_handler = need_room, .sa_flags = SA_RESTART};
    struct itimerspec every = {{0, 100000}, {0, 100000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    options.clock = PROF_CLOCK_WALL;
    options.frequency_hz = 10000;
    prof_t *profile = prof_start(&options);
    timer_t timer;
    context_on(&coroutine, malloc(CORO_STACK), CORO_STACK, NULL);
    makecontext(&coroutine, switch_for_ever, 0);
    sigaction(SIGUSR1, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
        return 2;
    prof_coro_t *record = prof_coro_create(coroutine.uc_stack.ss_sp, CORO_STACK, "switching");
    while (signals < SIGNALS) {
        prof_coro_switch(record);
        swapcontext(&loop, &coroutine);
        prof_coro_switch(NULL);
    }
    timer_delete(timer);
    return prof_stop(profile);
}

// --- exec by other ways than execve().

enum { EXECS = 60, EXEC_NS = 3000000 };

static char *const program[] = {(char *)"/bin/true", NULL};

static void exec_function(void)
{
    execveat(AT_FDCWD, program[0], program, environ, 0);
}

static void exec_number(void)
{
    syscall(SYS_execve, program[0], program, environ);
}

static void execveat_number(void)
{
    syscall(SYS_execveat, AT_FDCWD, program[0], program, environ, 0);
}

// Children that are sampled, and then run another program. Returns how many did not end as that does.
static int exec_children(pid_t (*new_child)(void), void (*exec)(void))
{
    int failed = 0;
    for (int i = 0; i < EXECS; i++) {
        int status = -1;
        pid_t pid = new_child();
        if (pid == 0) {
            burn(EXEC_NS);
            exec();
            _exit(2);
        }
        waitpid(pid, &status, 0);
        failed += status != 0;
    }
    return failed;
}

static int exec_by(void (*exec)(void))
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    options.frequency_hz = 10000;
    prof_t *profile = prof_start(&options);
    int failed = profile != NULL ? exec_children(fork, exec) : EXECS;
    return prof_stop(profile) == 0 ? failed : 200;
}

static int execveat_is_called(void)
{
    return exec_by(exec_function);
}

static int exec_is_a_number(void)
{
    return exec_by(exec_number);
}

static int execveat_is_a_number(void)
{
    return exec_by(execveat_number);
}

// The program goes on, and is sampled again.
static int execs_fail(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    prof_t *profile = prof_start(&options);
    char *const none[] = {NULL};
    errno = 0;
    if (execveat(AT_FDCWD, "/no/such/program", none, environ, 0) != -1 || errno != ENOENT)
        return 1;
    errno = 0;
    if (syscall(SYS_execve, "/no/such/program", none, environ) != -1 || errno != ENOENT)
        return 2;
    uint64_t before = prof_total_ns(profile);
    burn(100000000);
    uint64_t after = prof_total_ns(profile);
    return prof_stop(profile) == 0 && after > before ? 0 : 3;
}

// A child that shares the memory, and must leave alone what the parent has there.
static int vfork_and_execveat(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = prof_start(&options);
    for (int i = 0; i < EXECS; i++) {
        int status = -1;
        pid_t pid = vfork();
        if (pid == 0) {
            execveat(AT_FDCWD, program[0], program, environ, 0);
            _exit(2);
        }
        waitpid(pid, &status, 0);
        if (status != 0)
            return 1;
    }
    uint64_t before = prof_total_ns(profile);
    burn(100000000);
    uint64_t after = prof_total_ns(profile);
    return prof_stop(profile) == 0 && after > before ? 0 : 3;
}

// --- The cases.

// --- Filters of system calls.

// As systemd's SystemCallFilter= is: in force before the program starts, and so before sampling does.
static int perf_is_fatal(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return NOT_HERE;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        return 2;
    // A CPU timer comes with the kernel's ticks, of which a thread on a busy processor meets few; and what no signal
    // has reached yet is in no total.
    for (int i = 0; i < 40 && prof_total_ns(profile) < 200000000; i++)
        burn(50000000);
    if (prof_total_ns(profile) < 200000000 || prof_stop(profile) != 0)
        return 3;
    return wait(NULL) == -1 && errno == ECHILD ? 0 : 4; // nothing is left of what was tried
}

// --- Processes that end as their last thread does, with the status 0 and by way of exit().

static pthread_t first_thread;
static pthread_key_t late_key;
static bool is_late_over;

static void say_that_it_ended(void)
{
    if (!is_late_over)
        _exit(7); // other keys' destructors come before the end
}

static void late_destructor(void *value)
{
    is_late_over = value != NULL;
}

static void *end_last(void *unused)
{
    if (unused == NULL)
        pthread_join(first_thread, NULL);
    pthread_setspecific(late_key, &late_key);
    burn(5000000);
    return NULL;
}

static bool start_to_end(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    first_thread = pthread_self();
    while (dlerror() != NULL) // AddressSanitizer leaves one, and calls it a leak when the main thread is gone
        ;
    atexit(say_that_it_ended);
    return pthread_key_create(&late_key, late_destructor) == 0 && prof_start(&options) != NULL;
}

static int main_thread_ends_first(void)
{
    pthread_t threads[4];
    if (!start_to_end())
        return 1;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, end_last, i == 0 ? NULL : &late_key) != 0)
            return 2;
    pthread_exit(NULL);
}

static int main_thread_ends_last(void)
{
    pthread_t thread;
    if (!start_to_end() || pthread_create(&thread, NULL, end_last, &late_key) != 0)
        return 1;
    pthread_join(thread, NULL);
    is_late_over = false;
    pthread_setspecific(late_key, &late_key);
    pthread_exit(NULL);
}

static void *fork_and_end(void *status)
{
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S / 2);
        return end_last(status); // the child's one and last thread
    }
    waitpid(pid, status, 0);
    return NULL;
}

static int forked_thread_ends(void)
{
    pthread_t thread;
    int status = -1;
    if (!start_to_end() || pthread_create(&thread, NULL, fork_and_end, &status) != 0)
        return 1;
    alarm(PATIENCE_S);
    pthread_join(thread, NULL);
    is_late_over = true;
    return status == 0 ? 0 : 2;
}

typedef struct rough_case {
    const char *name;
    int (*run)(void); // returns 0 where all is well
} rough_case_t;

static const rough_case_t cases[] = {
    {"forks_join", forks_join},
    {"forks_create", forks_create},
    {"forks_do_both", forks_do_both},
    {"fork_handlers_call", fork_handlers_call},
    {"fork_handlers_wait", fork_handlers_wait},
    {"early_handlers_wait", early_handlers_wait},
    {"cancelled_dumps", cancelled_dumps},
    {"tiny_default_stack", tiny_default_stack},
    {"bare_fork", bare_fork},
    {"handlers_need_room", handlers_need_room},
    {"execveat_is_called", execveat_is_called},
    {"exec_is_a_number", exec_is_a_number},
    {"execveat_is_a_number", execveat_is_a_number},
    {"execs_fail", execs_fail},
    {"vfork_and_execveat", vfork_and_execveat},
    {"perf_is_fatal", perf_is_fatal},
    {"main_thread_ends_first", main_thread_ends_first},
    {"main_thread_ends_last", main_thread_ends_last},
    {"forked_thread_ends", forked_thread_ends},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void run_case(void **state)
{
    const rough_case_t *one = *state;
    char *arguments[] = {(char *)"test_rough_hosts", (char *)(uintptr_t)one->name, NULL};
    int status = -1;
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE)
        skip();
    assert_int_equal(WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[CASES];
    for (size_t i = 0; i < CASES; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            alarm(PATIENCE_S);
            return cases[i].run();
        }
        tests[i] = (struct CMUnitTest){cases[i].name, run_case, NULL, NULL, (void *)(uintptr_t)&cases[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
