// SPDX-License-Identifier: MIT
// A program with signals of its own: greenprof must not get in their way, nor they in its.
//   host_signals handlers | altstack | mask | waits | masked_thread | mask_view | wait_all | blocked | small_altstack
//     | tight_altstack | numbered_altstack | raw_altstack | smallest_altstack | held_mask | held_old | held_wait |
//     held_handler | held_action | held_context | shortly_held | cancellable
#include "truth.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>

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

// The program finds masks as it has set them.
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

// As daemons do: all signals are blocked, and one thread takes them. The thread can be cancelled.
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

// How the stack and the action come to the kernel: by the C library, by its syscall(), by an instruction.
enum way { BY_LIBRARY, BY_NUMBER, BY_INSTRUCTION };

#if defined(__x86_64__)

void raw_return(void);
__asm__("raw_return:\n\tmovl $15, %eax\n\tsyscall\n");

static int set_raw(enum way way, int number, void (*handler)(int), unsigned long flags, uint64_t mask)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {handler, flags | 0x04000000 /* SA_RESTORER */, raw_return, mask};
    if (way == BY_NUMBER)
        return (int)syscall(SYS_rt_sigaction, number, &action, NULL, sizeof(mask));
    return (int)truth_call_kernel(SYS_rt_sigaction, number, (long)&action, 0, sizeof(mask));
}

static int set_raw_stack(enum way way, const stack_t *stack)
{
    return (int)(way == BY_NUMBER ? syscall(SYS_sigaltstack, stack, NULL)
                                  : truth_call_kernel(SYS_sigaltstack, (long)stack, 0, 0, 0));
}

#else

static int set_raw(enum way way, int number, void (*handler)(int), unsigned long flags, uint64_t mask)
{
    (void)way, (void)number, (void)handler, (void)flags, (void)mask;
    return -1;
}

static int set_raw_stack(enum way way, const stack_t *stack)
{
    (void)way, (void)stack;
    return -1;
}

#endif

// A stack with a guard page below it that has room for `frames` of the kernel's, and little else but what the program's
// handler takes while it works. The handler finds its action as it was.
static int with_small_altstack(size_t frames, enum way way)
{
    enum { PAGE = 4096, TIMES = 100 };
    const size_t frame = getauxval(AT_MINSIGSTKSZ);
    const size_t size = frames > 1 ? (frames * frame + 3 * PAGE - 1) & ~(size_t)(PAGE - 1) : (size_t)2 * PAGE;
    char *memory = mmap(NULL, size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = memory + PAGE, .ss_size = size};
    struct sigaction action = {.sa_handler = fill_stack, .sa_flags = SA_ONSTACK | SA_RESTART};
    if (memory == MAP_FAILED || mprotect(memory + PAGE, size, PROT_READ | PROT_WRITE) != 0)
        return 1;
    if (way == BY_LIBRARY ? sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0
                          : set_raw_stack(way, &stack) != 0 || set_raw(way, SIGUSR1, fill_stack, SA_ONSTACK, 0) != 0)
        return 1;
    if (way == BY_INSTRUCTION)
        work_main(200000000); // it is seen at a sample
    for (int i = 0; i < TIMES; i++)
        raise(SIGUSR1);
    struct sigaction now;
    if (way != BY_INSTRUCTION && (sigaction(SIGUSR1, NULL, &now) != 0 || sigismember(&now.sa_mask, SIGPROF) != 0))
        return 2;
    EXPECT(handler);
    return 0;
}

// --- The sampling signal is blocked where no call of the C library says so.

WORK(held)

static long set_mask(int how, uint64_t bits, uint64_t *old)
{
    return syscall(SYS_rt_sigprocmask, how, &bits, old, sizeof(bits));
}

static TRUTH_OUT_OF_LINE void let_through(uint64_t *old)
{
    set_mask(SIG_SETMASK, 0, old);
    __asm__ volatile("");
}

static uint64_t held_ns_each;

static void hold_and_return(int number)
{
    (void)number;
    set_mask(SIG_BLOCK, UINT64_MAX, NULL);
    work_held(held_ns_each);
}

static void return_to_mask(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    memset(&((ucontext_t *)context)->uc_sigmask, 0xff, sizeof(uint64_t));
}

static void work_in_handler(int number)
{
    (void)number;
    work_held(held_ns_each);
}

static void install_raw(void)
{
    set_raw(BY_INSTRUCTION, SIGUSR1, work_in_handler, 0, UINT64_MAX);
}

static void hold_by_mask(void)
{
    set_mask(SIG_BLOCK, UINT64_MAX, NULL);
    work_held(held_ns_each);
    let_through(NULL);
}

static void hold_by_old_mask(void)
{
    uint64_t old;
    set_mask(SIG_BLOCK, UINT64_MAX, NULL);
    work_held(held_ns_each);
    let_through(&old);
}

static void hold_by_wait(void)
{
    struct timespec moment = {.tv_nsec = 1000};
    sigset_t none;
    sigemptyset(&none);
    set_mask(SIG_BLOCK, UINT64_MAX, NULL);
    work_held(held_ns_each);
    ppoll(NULL, 0, &moment, &none);
    let_through(NULL);
}

static void hold_by_handler(void)
{
    raise(SIGUSR1);
}

static void hold_by_context(void)
{
    sigset_t none;
    sigemptyset(&none);
    raise(SIGUSR1);
    work_held(held_ns_each);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

// Half of the time, in pieces of some milliseconds, or of less than an interval.
static int held(const char *how, uint64_t each_ns)
{
    enum { TIME_NS = 400000000 };
    struct sigaction returning = {.sa_sigaction = return_to_mask, .sa_flags = SA_SIGINFO};
    void (*hold)(void) = hold_by_mask;
    held_ns_each = each_ns;
    if (strcmp(how, "old") == 0)
        hold = hold_by_old_mask;
    else if (strcmp(how, "wait") == 0)
        hold = hold_by_wait;
    else if (strcmp(how, "mask") != 0)
        hold = strcmp(how, "context") == 0 ? hold_by_context : hold_by_handler;
    if (strcmp(how, "handler") == 0)
        signal(SIGUSR1, hold_and_return);
    else if (strcmp(how, "action") == 0)
        install_raw();
    else if (strcmp(how, "context") == 0)
        sigaction(SIGUSR1, &returning, NULL);
    for (uint64_t done = 0; done < TIME_NS; done += each_ns) {
        hold();
        work_main(each_ns);
    }
    EXPECT(main);
    printf("HELD %.6f\n", truth_seconds(held_ns));
    return 0;
}

// --- A thread that has an alternate stack of the smallest size, as Rust's have.

static void *on_smallest(void *unused)
{
    stack_t stack = {.ss_size = getauxval(AT_MINSIGSTKSZ) < 8192 ? 8192 : getauxval(AT_MINSIGSTKSZ)};
    truth_thread_begin();
    stack.ss_sp = malloc(stack.ss_size);
    if (sigaltstack(&stack, NULL) != 0)
        exit(6);
    work_main(200000000);
    truth_thread_end();
    return unused;
}

static int smallest_altstack(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, on_smallest, NULL);
    pthread_join(thread, NULL);
    EXPECT(main);
    return 0;
}

// --- The way of glibc 2.41 and later into the kernel: what is called has the name.

static TRUTH_OUT_OF_LINE void __syscall_cancel_arch(uint64_t ns)
{
    work_main(ns);
    __asm__ volatile("");
}

static TRUTH_OUT_OF_LINE void __internal_syscall_cancel(uint64_t ns)
{
    __syscall_cancel_arch(ns);
    __asm__ volatile("");
}

static TRUTH_OUT_OF_LINE int cancellable(void)
{
    __internal_syscall_cancel(100000000);
    EXPECT(main);
    return 0;
}

static int run(const char *what)
{
    if (strncmp(what, "held_", 5) == 0)
        return held(what + 5, 20000000);
    if (strcmp(what, "shortly_held") == 0)
        return held("mask", 700000);
    if (strcmp(what, "smallest_altstack") == 0)
        return smallest_altstack();
    if (strcmp(what, "cancellable") == 0)
        return cancellable();
    if (strcmp(what, "handlers") == 0) {
        install(SA_RESTART);
        return storm(3000);
    }
    if (strcmp(what, "altstack") == 0)
        return with_altstack(65536);
    if (strcmp(what, "small_altstack") == 0)
        return with_small_altstack(2, BY_LIBRARY);
    if (strcmp(what, "tight_altstack") == 0)
        return with_small_altstack(1, BY_LIBRARY);
    if (strcmp(what, "numbered_altstack") == 0)
        return with_small_altstack(1, BY_NUMBER);
    if (strcmp(what, "raw_altstack") == 0)
        return with_small_altstack(1, BY_INSTRUCTION);
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
