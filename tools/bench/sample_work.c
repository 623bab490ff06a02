// SPDX-License-Identifier: MIT
// Work at a given stack depth: --depth FRAMES (10), --changing 1 to take another path to the leaf every ~50 us.
// Gathered: how much longer a piece of work takes in which one signal fell, ns, and its standard error. This is a
// sample's whole cost to the program: delivery, handler, and the caches it leaves behind.
#include <math.h>
#include <stdlib.h>

#include "probe.h"
#include "worker.h"

enum {
    TABLE_WORDS = 1 << 15, // 256 KiB: the caches hold it, but a sample has to share them
    LEAF_STEPS = 10000,
    OTHER_FRAMES = 9, // _start, two of libc's, main, worker_serve, answer, block, piece; the leaf
};

typedef uint64_t level_fn(unsigned left);

static uint64_t table[TABLE_WORDS], random_state = 88172645463325252u;
static unsigned depth;
static long changing;
static level_fn *const levels[16];

static uint64_t next_random(void)
{
    // xorshift64: Marsaglia, "Xorshift RNGs", 2003.
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

__attribute__((noinline)) static uint64_t leaf(void)
{
    uint64_t x = next_random();
    for (unsigned i = 0; i < LEAF_STEPS; i++) {
        uint64_t *slot = &table[x % TABLE_WORDS];
        x = x * 6364136223846793005u + *slot + 1442695040888963407u;
        *slot = x >> 7;
    }
    return x;
}

static inline uint64_t descend(unsigned left)
{
    if (left == 0)
        return leaf();
    return levels[(changing ? next_random() >> 32 : left) % 16](left - 1);
}

#define LEVEL(n)                                                                                                       \
    __attribute__((noinline)) static uint64_t level_##n(unsigned left)                                                 \
    {                                                                                                                  \
        return descend(left) * (2 * n + 3) + n;                                                                        \
    }
LEVEL(0)
LEVEL(1)
LEVEL(2)
LEVEL(3)
LEVEL(4)
LEVEL(5)
LEVEL(6)
LEVEL(7)
LEVEL(8)
LEVEL(9)
LEVEL(10)
LEVEL(11)
LEVEL(12)
LEVEL(13)
LEVEL(14)
LEVEL(15)

static level_fn *const levels[16] = {level_0, level_1, level_2,  level_3,  level_4,  level_5,  level_6,  level_7,
                                     level_8, level_9, level_10, level_11, level_12, level_13, level_14, level_15};

static durations_t with_signal, without;

static void gathered(double *figures)
{
    double mean, error, base, base_error;
    durations_take_mean(&with_signal, &mean, &error);
    durations_take_mean(&without, &base, &base_error);
    figures[2] = mean - base;
    figures[3] = sqrt(error * error + base_error * base_error);
}

__attribute__((noinline)) static uint64_t piece(void)
{
    uint64_t signals = &bench_probe != NULL ? bench_probe.signals : 0;
    uint64_t start = worker_clock_ns(CLOCK_MONOTONIC);
    uint64_t result = descend(depth);
    uint64_t ns = worker_clock_ns(CLOCK_MONOTONIC) - start;
    signals = (&bench_probe != NULL ? bench_probe.signals : 0) - signals;
    if (signals <= 1)
        durations_add(signals == 1 ? &with_signal : &without, ns);
    return result;
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    (void)which;
    uint64_t sum = 0;
    for (unsigned long i = 0; i < amount; i++)
        sum += piece();
    table[0] += sum;
    if (amount == 0)
        gathered(figures);
}

int main(int argc, char **argv)
{
    long frames = worker_option(argc, argv, "--depth", 10);
    depth = frames > OTHER_FRAMES ? (unsigned)(frames - OTHER_FRAMES) : 0;
    changing = worker_option(argc, argv, "--changing", 0);
    return worker_serve(argc, argv, block);
}
