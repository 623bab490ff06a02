// SPDX-License-Identifier: MIT
// Recursion over many segments of a split stack (-fsplit-stack), on the first thread and on another.
#include "truth.h"

#include <pthread.h>

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

static void *dive_again(void *unused)
{
    truth_thread_begin();
    for (int i = 0; i < 100; i++)
        dive(100);
    truth_thread_end();
    return unused;
}

int main(void)
{
    pthread_t other;
    dive_again(NULL);
    if (pthread_create(&other, NULL, dive_again, NULL) != 0)
        return 3;
    pthread_join(other, NULL);
    truth_thread_begin();
    EXPECT(below);
    truth_print_total();
    return 0;
}
