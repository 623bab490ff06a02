// SPDX-License-Identifier: MIT
// Coroutines that create others, by hand (coro.h) on ucontexts: main -> service -> {first, second} -> leaf. SECONDS.
// The leaf waits on its parent now and then, and all are renamed.
#include "../context.h"

#include <greenprof/coro.h>

#include "../integration/truth.h"

enum { STACK_BYTES = 65536, ROUNDS = 100 };

WORK(first)
WORK(second)
WORK(leaf)

typedef struct green {
    ucontext_t context, back;
    prof_coro_t *coro;
    char *stack;
    void (*run)(struct green *);
    int done;
} green_t;

static uint64_t slice_ns;

static void trampoline(unsigned low, unsigned high)
{
    green_t *green = (green_t *)((uintptr_t)low | (uintptr_t)high << 32);
    green->run(green);
    green->done = 1;
    for (;;)
        swapcontext(&green->context, &green->back);
}

// A frame of its own, whatever the compiler does: the tests look for it.
static TRUTH_OUT_OF_LINE green_t *spawn(void (*run)(green_t *), const char *name)
{
    green_t *green = calloc(1, sizeof(*green));
    green->stack = calloc(1, STACK_BYTES);
    green->run = run;
    green->coro = prof_coro_create(green->stack, STACK_BYTES, name);
    context_on(&green->context, green->stack, STACK_BYTES, NULL);
    makecontext(&green->context, (void (*)(void))trampoline, 2, (unsigned)(uintptr_t)green,
                (unsigned)((uintptr_t)green >> 32));
    return green;
}

static TRUTH_OUT_OF_LINE void resume(green_t *green)
{
    swapcontext(&green->back, &green->context);
    __asm__ volatile("");
}

static TRUTH_OUT_OF_LINE void leave(green_t *green)
{
    swapcontext(&green->context, &green->back);
    __asm__ volatile("");
}

static void leaf(green_t *self)
{
    for (int i = 0; i < ROUNDS / 2; i++) {
        work_leaf(slice_ns);
        leave(self);
    }
    prof_coro_name(NULL, "the leaf, done");
}

static TRUTH_OUT_OF_LINE green_t *spawn_leaf(void)
{
    green_t *made = spawn(leaf, "leaf");
    __asm__ volatile("");
    return made;
}

static void first(green_t *self)
{
    green_t *mine = spawn_leaf();
    for (int i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS / 2)
            prof_coro_name(NULL, "first, renamed");
        work_first(slice_ns);
        if (!mine->done)
            resume(mine);
        leave(self);
    }
}

static void second(green_t *self)
{
    green_t *mine = spawn_leaf();
    for (int i = 0; i < ROUNDS; i++) {
        work_second(slice_ns);
        if (!mine->done)
            resume(mine);
        leave(self);
    }
}

static void service(green_t *self)
{
    green_t *children[] = {spawn(first, "first"), spawn(second, NULL)};
    prof_coro_name(children[1]->coro, "second");
    for (int i = 0; i < ROUNDS + 1; i++) {
        resume(children[0]);
        resume(children[1]);
        struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL); // both are parked
        leave(self);
    }
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    slice_ns = (uint64_t)(atof(argv[argc - 1]) * 1e9 / (3 * ROUNDS));
    green_t *green = spawn(service, "service");
    while (!green->done)
        resume(green);
    EXPECT(first);
    EXPECT(second);
    EXPECT(leaf);
    truth_print_total();
    return 0;
}
