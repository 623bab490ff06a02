// SPDX-License-Identifier: MIT
// Coroutines that end in every way of ucontexts, and then a time in which nothing runs. Each one's life is booked: from
// makecontext() to the moment at which it was over. Run under `greenprof run`; nothing is announced.
//
//   ends MODE IDLE_SECONDS
//     all    one coroutine of each shape, one after the other
//     back   two coroutines that change places by getcontext() and setcontext()
//     asleep the thread of a coroutine sleeps when the program ends
//     killed the same, and the program is killed
//
//   LIFE function wall waiting    seconds, as booked: the latter parked
//   NEW function seconds          made, and never started
//   SLEPT function seconds        asleep in a system call
#include "../context.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "../integration/truth.h"

enum { STACK_BYTES = 65536, LIFE_NS = 30000000, PARK_NS = 40000000 };

typedef struct green {
    ucontext_t context;
    const char *name;
    char *stack;
    uint64_t born_ns, waited_ns, over_ns;
} green_t;

static ucontext_t home;
static green_t *running;
static double idle_seconds;

static uint64_t now_ns(void)
{
    return truth_clock_ns(CLOCK_MONOTONIC);
}

static TRUTH_OUT_OF_LINE void rest(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    while (nanosleep(&time, &time) != 0)
        continue;
}

static void idle(void)
{
    rest((uint64_t)(idle_seconds * 1e9));
}

// Work for a while, be parked for a while, work again.
static TRUTH_OUT_OF_LINE void live(void)
{
    green_t *self = running;
    rest(LIFE_NS / 2);
    uint64_t since = now_ns();
    swapcontext(&self->context, &home);
    self->waited_ns += now_ns() - since;
    rest(LIFE_NS / 2);
    self->over_ns = now_ns();
}

static void returns(void)
{
    live();
    __asm__ volatile(""); // no tail call: it stays on the stack
}

static void leaves(void)
{
    live();
    setcontext(&home);
}

#define SWAPS(name)                                                                                                    \
    static void name(void)                                                                                             \
    {                                                                                                                  \
        live();                                                                                                        \
        swapcontext(&running->context, &home);                                                                         \
    }
SWAPS(swaps_reused)
SWAPS(swaps_unmapped)
SWAPS(swaps_overwritten)

static void stays(void) // it is parked until the program ends
{
    green_t *self = running;
    rest(LIFE_NS);
    swapcontext(&self->context, &home);
    __asm__ volatile("");
}

static void never(void)
{
}

static char *new_stack(void)
{
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        abort();
    return stack;
}

static void make(green_t *green, const char *name, void (*entry)(void), char *stack)
{
    green->name = name;
    green->stack = stack;
    context_on(&green->context, stack, STACK_BYTES, &home);
    green->born_ns = now_ns();
    makecontext(&green->context, entry, 0);
}

static TRUTH_OUT_OF_LINE void enter(green_t *green)
{
    running = green;
    swapcontext(&home, &green->context);
}

static void life(const green_t *green)
{
    printf("LIFE %s %.6f %.6f\n", green->name, truth_seconds(green->over_ns - green->born_ns),
           truth_seconds(green->waited_ns));
}

// From its making to its end.
static void run(green_t *green, const char *name, void (*entry)(void))
{
    make(green, name, entry, new_stack());
    enter(green);
    rest(PARK_NS);
    enter(green);
}

static void all(void)
{
    static green_t greens[6], lasting, unborn, replaced, next;
    run(&greens[0], "returns", returns);
    run(&greens[1], "leaves", leaves);
    run(&greens[2], "swaps_reused", swaps_reused);
    run(&greens[3], "swaps_unmapped", swaps_unmapped);
    run(&greens[4], "swaps_overwritten", swaps_overwritten);
    make(&lasting, "stays", stays, new_stack());
    enter(&lasting);
    uint64_t parked_ns = now_ns();
    make(&unborn, "never", never, new_stack());
    make(&replaced, "never", never, new_stack());
    make(&replaced, "never", never, replaced.stack); // a pool makes it ready again: the first one is gone
    idle();
    munmap(greens[3].stack, STACK_BYTES);
    memset(greens[4].stack, 0xa5, STACK_BYTES);
    make(&next, "returns", returns, greens[2].stack);
    enter(&next);
    rest(PARK_NS);
    enter(&next);
    uint64_t now = now_ns();
    greens[0].over_ns += next.over_ns - next.born_ns; // two of this name
    greens[0].waited_ns += next.waited_ns;
    for (int i = 0; i < 5; i++)
        life(&greens[i]);
    lasting.over_ns = now;
    lasting.waited_ns = now - parked_ns;
    life(&lasting);
    printf("NEW never %.6f\n", truth_seconds(now - unborn.born_ns + now - replaced.born_ns));
}

enum { ROUNDS = 3 };

static green_t *partner;

// A coroutine that leaves by setcontext() comes back: a switch made of two halves.
static TRUTH_OUT_OF_LINE void change(void)
{
    green_t *self = running, *other = partner;
    volatile int is_back = 0;
    uint64_t since = now_ns();
    getcontext(&self->context);
    if (is_back) {
        self->waited_ns += now_ns() - since;
        return;
    }
    is_back = 1;
    running = other;
    partner = self;
    setcontext(&other->context);
}

static void halves(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        rest(LIFE_NS);
        change();
    }
    running->over_ns = now_ns();
}

static void back(void)
{
    static green_t a, b;
    make(&a, "halves", halves, new_stack());
    make(&b, "halves", halves, new_stack());
    partner = &b;
    enter(&a); // returns as soon as one has: the other is left at the change of places
    idle();
    green_t *over = running, *other = partner;
    other->over_ns = now_ns();
    other->waited_ns += other->over_ns - over->over_ns;
    over->over_ns += other->over_ns - other->born_ns; // two of this name
    over->waited_ns += other->waited_ns;
    life(over);
}

static void sleeps(void)
{
    live();
    for (;;)
        pause();
}

static void *sleep_on(void *green)
{
    enter(green);
    rest(PARK_NS);
    enter(green);
    return NULL;
}

static void asleep(void)
{
    static green_t green;
    pthread_t thread;
    make(&green, "sleeps", sleeps, new_stack());
    if (pthread_create(&thread, NULL, sleep_on, &green) != 0)
        abort();
    idle();
    green.over_ns = now_ns();
    life(&green);
    printf("SLEPT sleeps %.6f\n", truth_seconds(green.over_ns - green.born_ns - green.waited_ns));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    idle_seconds = argc > 2 ? atof(argv[2]) : 0.3;
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        all();
    else if (argc > 1 && strcmp(argv[1], "back") == 0)
        back();
    else if (argc > 1 && (strcmp(argv[1], "asleep") == 0 || strcmp(argv[1], "killed") == 0))
        asleep();
    else
        return 2;
    if (strcmp(argv[1], "killed") == 0)
        raise(SIGKILL);
    return 0;
}
