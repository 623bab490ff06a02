// SPDX-License-Identifier: MIT
// Coroutines that do little but switch, each as much as the others. For each line that it reads there is one more; the
// first one is at work for one request after the other. With "forks" there is a child in its place, which does some
// work and ends. Ends with its input.
//   rests [forks]
#include "truth.h"

#include <poll.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <greenprof/coro.h>
#include <greenprof/trace.h>

enum { CHILD_ROUNDS = 500, MOST = 64, STACK_BYTES = 65536, SPINS = 100, TURNS = 400, REQUEST_TURNS = 1000 };

static ucontext_t loop, contexts[MOST];
static int count, forks;

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
    getcontext(context);
    context->uc_stack.ss_sp = malloc(STACK_BYTES);
    context->uc_stack.ss_size = STACK_BYTES;
    context->uc_link = &loop;
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

// Returns false once there is no more to read.
static int take_lines(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char text[MOST];
    if (poll(&input, 1, 0) <= 0)
        return 1;
    ssize_t length = read(STDIN_FILENO, text, sizeof(text));
    for (ssize_t i = 0; i < length && count < MOST; i++)
        if (text[i] == '\n' && forks)
            fork_one();
        else if (text[i] == '\n')
            add();
    return length > 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    forks = argc > 1;
    add();
    add();
    while (take_lines())
        switch_about(TURNS);
    return 0;
}
