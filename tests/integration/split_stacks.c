// SPDX-License-Identifier: MIT
// Recursion over many segments of a split stack (-fsplit-stack), on the first thread and on others: with all segments
// below the thread's stack or wherever the kernel has had room, with a few of them above it, and with all.
#include "truth.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

WORK(below)

TRUTH_OUT_OF_LINE static int dive(int depth)
{
    volatile char room[3000];
    room[0] = 1;
    if (depth > 0)
        return dive(depth - 1) + room[0];
    work_below(2000000);
    return room[0];
}

// Memory above the thread's stack, to be given back to the kernel: as many of the first segments lie there as fit, and
// the others below the stack.
typedef struct hole {
    unsigned char *at;
    size_t bytes;
} hole_t;

static void *dive_again(void *hole)
{
    const hole_t *above = hole;
    truth_thread_begin();
    if (above != NULL)
        munmap(above->at, above->bytes);
    for (int i = 0; i < 100; i++)
        dive(100);
    truth_thread_end();
    return NULL;
}

enum { STACK = 1 << 20, RESERVED = 16 << 20 };

// A thread with its stack at the beginning of memory that is reserved, and a hole of `bytes` in what is above.
static bool dive_below_hole(size_t bytes)
{
    unsigned char *reserved = mmap(NULL, RESERVED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hole_t hole = {reserved + RESERVED / 2, bytes};
    pthread_attr_t attributes;
    pthread_t other;
    if (reserved == MAP_FAILED || pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstack(&attributes, reserved, STACK) != 0 ||
        pthread_create(&other, &attributes, dive_again, &hole) != 0)
        return false;
    pthread_join(other, NULL);
    pthread_attr_destroy(&attributes);
    return true;
}

int main(void)
{
    pthread_t other;
    dive_again(NULL);
    if (pthread_create(&other, NULL, dive_again, NULL) != 0)
        return 3;
    pthread_join(other, NULL);
    if (!dive_below_hole(128 << 10) || !dive_below_hole(RESERVED / 4))
        return 4;
    truth_thread_begin();
    EXPECT(below);
    truth_print_total();
    return 0;
}
