// SPDX-License-Identifier: MIT
// Coroutines that do little but switch, each as much as the others. For each line of input there is one more; the first
// one is at work for one request after the other. With "forks" there is a child in its place, which does some work and
// ends. With "half" it pauses for as long as it has worked. Other letters are commands (take_letter()). Ends with its
// input.
//   rests [forks | half]
#include "truth.h"

#include "../context.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <greenprof/coro.h>
#include <greenprof/trace.h>

enum { CHILD_ROUNDS = 500, MOST = 64, STACK_BYTES = 65536, SPINS = 100, TURNS = 400, REQUEST_TURNS = 1000 };

static ucontext_t loop, contexts[MOST];
static char **words;
static int count, forks, pauses;
static volatile sig_atomic_t handled;

static TRUTH_OUT_OF_LINE void work(void)
{
    volatile double x = 0;
    for (int i = 0; i < SPINS; i++)
        x = x + i * 0.5;
}

static void turn(int id)
{
    work();
    swapcontext(&contexts[id], &loop);
}

static void run(int id)
{
    char name[32];
    snprintf(name, sizeof(name), "worker %d", id);
    prof_coro_name(prof_coro_current(), name);
    for (;;) {
        prof_span_t *request = id == 0 ? prof_span_begin(PROF_SPAN_REQUEST, "block", NULL) : NULL;
        for (int i = 0; i < REQUEST_TURNS; i++)
            turn(id);
        prof_span_end(request);
    }
}

static void add(void)
{
    ucontext_t *context = &contexts[count];
    context_on(context, malloc(STACK_BYTES), STACK_BYTES, &loop);
    makecontext(context, (void (*)(void))(uintptr_t)run, 1, count++);
}

static void switch_about(int rounds)
{
    for (int i = 0; i < rounds; i++)
        for (int id = 0; id < count; id++)
            swapcontext(&loop, &contexts[id]);
}

static void fork_one(void)
{
    pid_t child = fork();
    if (child == 0) {
        switch_about(CHILD_ROUNDS * TURNS);
        exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        exit(3);
}

static void handle(int number)
{
    (void)number;
    handled++;
}

// The program takes a signal that it has not used so far, and gets it.
static void take_signal(int number)
{
    struct sigaction action = {.sa_handler = handle}, before;
    int handled_before = handled;
    if (sigaction(number, &action, &before) != 0 || before.sa_handler != SIG_DFL || raise(number) != 0 ||
        handled != handled_before + 1)
        exit(4);
}

static void take_all_signals(void)
{
    take_signal(SIGPROF);
    take_signal(SIGSTKFLT);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        take_signal(number);
}

// Past the interposed functions.
static void take_signal_unseen(int number)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action;
    struct sigaction other = {.sa_handler = handle};
    int handled_before = handled;
    if (sigaction(SIGUSR2, &other, NULL) != 0 ||
        truth_call_kernel(SYS_rt_sigaction, SIGUSR2, 0, (long)&action, sizeof(action.mask)) != 0 ||
        truth_call_kernel(SYS_rt_sigaction, number, (long)&action, 0, sizeof(action.mask)) != 0 || raise(number) != 0 ||
        handled != handled_before + 1)
        exit(5);
}

static volatile int is_over;

static ucontext_t keeper, hog;

static void hog_thread(void)
{
    prof_coro_name(prof_coro_current(), "hog");
    while (!is_over)
        work();
    swapcontext(&hog, &keeper);
}

// The coroutine keeps its thread for one slice.
static void *keep(void *stack)
{
    context_on(&hog, stack, STACK_BYTES, NULL);
    makecontext(&hog, hog_thread, 0);
    swapcontext(&keeper, &hog);
    return stack;
}

static void hog_or_not(int is_to_begin)
{
    static pthread_t thread;
    is_over = !is_to_begin;
    if (is_to_begin ? pthread_create(&thread, NULL, keep, malloc(STACK_BYTES)) : pthread_join(thread, NULL))
        exit(6);
}

static void take_letter(char letter)
{
    switch (letter) {
    case '\n':
        if (forks)
            fork_one();
        else if (count < MOST)
            add();
        break;
    case 'e': // it becomes itself again
        execv("/proc/self/exe", words);
        exit(7);
    case 'n': // or nothing
        if (execl("/nonexistent", "nonexistent", (char *)NULL) != -1 || errno != ENOENT)
            exit(8);
        break;
    case 's':
        take_signal(SIGPROF);
        break;
    case 'u':
        take_signal_unseen(SIGPROF);
        break;
    case 'a':
        take_all_signals();
        break;
    case 'h':
    case 'o':
        hog_or_not(letter == 'h');
        break;
    default:
        exit(2);
    }
}

// As long as it has worked, and not less than a few ticks of the kernel's timers.
static int pause_ms(void)
{
    static uint64_t paused_ns;
    uint64_t worked_ms = (truth_cpu_ns() - paused_ns) / 1000000;
    if (!pauses || worked_ms < 4)
        return 0;
    paused_ns += worked_ms * 1000000;
    return (int)worked_ms;
}

// Returns false once there is no more to read.
static int take_letters(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char text[MOST];
    if (poll(&input, 1, pause_ms()) <= 0)
        return 1;
    ssize_t length = read(STDIN_FILENO, text, sizeof(text));
    for (ssize_t i = 0; i < length; i++)
        take_letter(text[i]);
    return length > 0;
}

int main(int argc, char **argv)
{
    words = argv;
    forks = argc > 1 && strcmp(argv[1], "forks") == 0;
    pauses = argc > 1 && strcmp(argv[1], "half") == 0;
    add();
    add();
    while (take_letters())
        switch_about(TURNS);
    return 0;
}
