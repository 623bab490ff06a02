// SPDX-License-Identifier: MIT
// A program with signals of its own: greenprof must not get in their way, nor they in its.
//   host_signals handlers | altstack | mask | waits | masked_thread | mask_view | wait_all | blocked
#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>

WORK(main)
WORK(handler)
WORK(blocked)

static volatile sig_atomic_t handled, wrong_stack;
static char *alternate;
static size_t alternate_bytes;

static void on_usr1(int number)
{
    (void)number;
    char here;
    uintptr_t sp = (uintptr_t)&here;
    if (alternate != NULL && (sp < (uintptr_t)alternate || sp >= (uintptr_t)alternate + alternate_bytes))
        wrong_stack++;
    work_handler(200000);
    handled++;
}

static void install(int flags)
{
    struct sigaction action = {.sa_handler = on_usr1, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
}

static TRUTH_OUT_OF_LINE int storm(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        work_main(300000);
        raise(SIGUSR1);
        stack_t now;
        if (alternate != NULL && (sigaltstack(NULL, &now) != 0 || now.ss_sp != alternate ||
                                  now.ss_size != alternate_bytes || now.ss_flags & SS_DISABLE))
            return 4;
    }
    EXPECT(main);
    EXPECT(handler);
    return handled != rounds ? 3 : wrong_stack ? 5 : 0;
}

static int with_altstack(size_t bytes)
{
    alternate_bytes = bytes;
    alternate = malloc(bytes);
    stack_t mine = {.ss_sp = alternate, .ss_size = bytes};
    if (sigaltstack(&mine, NULL) != 0)
        return 6;
    install(SA_ONSTACK | SA_RESTART);
    return storm(3000);
}

// SIGPROF blocked for a while, as libraries do that block everything around fork or in their threads.
static int masks(void)
{
    sigset_t all, before, now;
    sigfillset(&all);
    for (int i = 0; i < 300; i++) {
        work_main(2000000);
        if (sigprocmask(SIG_BLOCK, &all, &before) != 0 || sigismember(&before, SIGUSR1) != 0)
            return 3;
        work_blocked(1000000);
        if (sigprocmask(SIG_SETMASK, &before, &now) != 0 || sigismember(&now, SIGUSR1) != 1)
            return 4;
    }
    EXPECT(main);
    EXPECT(blocked);
    return 0;
}

static volatile int over;

static void *busy(void *unused)
{
    truth_thread_begin();
    while (!over)
        work_main(1000000);
    truth_thread_end();
    return unused;
}

static void *poke(void *pipe_end)
{
    for (int i = 0; i < 100; i++) {
        usleep(10000);
        if (write(*(int *)pipe_end, "x", 1) != 1)
            exit(9);
    }
    return NULL;
}

// Every kind of wait, on a thread that also works, beside a busy one. None may end early.
static int waits(void)
{
    int ends[2];
    char byte;
    pthread_t worker, poker;
    struct epoll_event event = {.events = EPOLLIN};
    if (pipe(ends) != 0)
        return 3;
    int epoll = epoll_create1(0);
    pthread_create(&worker, NULL, busy, NULL);
    for (int i = 0; i < 500; i++) {
        struct timespec pause = {.tv_nsec = 1000000}, rest;
        struct timeval timeout = {.tv_usec = 1000};
        work_main(700000); // so that timers are about to fire when the wait begins
        if (epoll_wait(epoll, &event, 1, 1) != 0)
            return 4;
        work_main(700000);
        if (nanosleep(&pause, &rest) != 0)
            return 5;
        work_main(700000);
        if (select(0, NULL, NULL, NULL, &timeout) != 0)
            return 6;
        work_main(700000);
        if (clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL) != 0)
            return 7;
    }
    pthread_create(&poker, NULL, poke, &ends[1]);
    for (int i = 0; i < 100; i++) {
        work_main(1000000);
        if (read(ends[0], &byte, 1) != 1)
            return 8;
    }
    pthread_join(poker, NULL);
    over = 1;
    pthread_join(worker, NULL);
    EXPECT(main);
    return 0;
}

// A thread that blocks every signal for all its life.
static void *masked(void *unused)
{
    truth_thread_begin();
    work_blocked(600000000);
    truth_thread_end();
    return unused;
}

static int masked_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_create(&thread, NULL, masked, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work_main(600000000);
    pthread_join(thread, NULL);
    EXPECT(main);
    EXPECT(blocked);
    return 0;
}

static int is_blocked(int number)
{
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    return sigismember(&now, number);
}

static void *in_thread(void *unused)
{
    (void)unused;
    return (void *)(intptr_t)is_blocked(SIGPROF);
}

// What the program is told of masks is what it has asked for.
static int mask_view(void)
{
    sigset_t all, one, old;
    pthread_t thread;
    void *inherited;
    struct sigaction action = {.sa_handler = on_usr1}, told;
    sigfillset(&all);
    sigemptyset(&one);
    sigaddset(&one, SIGPROF);
    if (is_blocked(SIGPROF) || sigprocmask(SIG_BLOCK, &one, &old) != 0 || sigismember(&old, SIGPROF) ||
        !is_blocked(SIGPROF))
        return 3;
    if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0 || !sigismember(&old, SIGPROF) || sigismember(&old, SIGUSR1))
        return 4;
    work_main(300000000); // and is sampled meanwhile
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, &inherited);
    if (inherited == NULL)
        return 5;
    if (sigprocmask(SIG_UNBLOCK, &one, NULL) != 0 || is_blocked(SIGPROF) || !is_blocked(SIGUSR1))
        return 6;
    if (sigprocmask(42, &one, NULL) != -1 || errno != EINVAL || pthread_sigmask(42, &one, NULL) != EINVAL)
        return 7;
    action.sa_mask = one;
    if (sigaction(SIGUSR2, &action, NULL) != 0 || sigaction(SIGUSR2, NULL, &told) != 0 ||
        !sigismember(&told.sa_mask, SIGPROF))
        return 8;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGUSR2, &action, &told) != 0 || !sigismember(&told.sa_mask, SIGPROF) ||
        sigaction(SIGUSR2, NULL, &told) != 0 || sigismember(&told.sa_mask, SIGPROF))
        return 9;
    EXPECT(main);
    return 0;
}

static void *take_signals(void *unused)
{
    sigset_t all;
    int number = 0;
    truth_thread_begin();
    sigfillset(&all);
    for (int i = 0; i < 1000; i++) {
        struct timespec moment = {0, 100000};
        work_blocked(300000);
        if (sigtimedwait(&all, NULL, &moment) != -1)
            return (void *)1; // none was sent
    }
    kill(getpid(), SIGUSR1);
    sigwait(&all, &number);
    kill(getpid(), SIGUSR2);
    work_blocked(3000000);
    siginfo_t info;
    int is_other = sigwaitinfo(&all, &info) == SIGUSR2 && info.si_signo == SIGUSR2 && info.si_pid == getpid();
    truth_thread_end();
    return (void *)(intptr_t)(number != SIGUSR1 || !is_other ? 2 : 0) + (unused != NULL);
}

static void *wait_for_ever(void *unused)
{
    sigset_t all;
    int number;
    sigfillset(&all);
    for (;;)
        sigwait(&all, &number);
    return unused;
}

// As daemons do: all signals are blocked, and one thread takes them. It can be cancelled.
static int wait_all(void)
{
    sigset_t all;
    pthread_t thread;
    void *result;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_create(&thread, NULL, take_signals, NULL);
    work_main(300000000);
    pthread_join(thread, &result);
    if (result != NULL)
        return 3;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    EXPECT(main);
    EXPECT(blocked);
    return result == PTHREAD_CANCELED ? 0 : 4;
}

// Blocked already when the program starts: by its parent, here by itself.
static int blocked(char **argv)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGPROF);
    if (getenv("BLOCKED") == NULL) {
        setenv("BLOCKED", "1", 1);
        sigprocmask(SIG_BLOCK, &one, NULL);
        execv("/proc/self/exe", argv);
        return 3;
    }
    if (!is_blocked(SIGPROF))
        return 4;
    work_main(500000000);
    EXPECT(main);
    return 0;
}

static void fill_stack(int signal_number)
{
    volatile char line[4096];
    (void)signal_number;
    for (size_t i = 0; i < sizeof(line); i++)
        line[i] = 'x';
    work_handler(5000000);
}

// A stack with a guard page below it that has room for two of the kernel's frames, and little else but what the
// program's handler takes while it works.
static int with_small_altstack(void)
{
    enum { PAGE = 4096, TIMES = 100 };
    const size_t size = (2 * getauxval(AT_MINSIGSTKSZ) + 2 * PAGE + PAGE - 1) & ~(size_t)(PAGE - 1);
    char *memory = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = memory + PAGE, .ss_size = size};
    struct sigaction action = {.sa_handler = fill_stack, .sa_flags = SA_ONSTACK | SA_RESTART};
    if (memory == MAP_FAILED || mprotect(memory + PAGE, size, PROT_READ | PROT_WRITE) != 0 ||
        sigaltstack(&stack, NULL) != 0)
        return 1;
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < TIMES; i++)
        raise(SIGUSR1);
    return 0;
}

static int run(const char *what)
{
    if (strcmp(what, "handlers") == 0) {
        install(SA_RESTART);
        return storm(3000);
    }
    if (strcmp(what, "altstack") == 0)
        return with_altstack(65536);
    if (strcmp(what, "small_altstack") == 0)
        return with_small_altstack();
    if (strcmp(what, "mask") == 0)
        return masks();
    if (strcmp(what, "waits") == 0)
        return waits();
    if (strcmp(what, "masked_thread") == 0)
        return masked_thread();
    if (strcmp(what, "mask_view") == 0)
        return mask_view();
    if (strcmp(what, "wait_all") == 0)
        return wait_all();
    return 2;
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 2)
        return 2;
    int status = strcmp(argv[1], "blocked") == 0 ? blocked(argv) : run(argv[1]);
    truth_print_total();
    return status;
}
