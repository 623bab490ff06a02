// SPDX-License-Identifier: MIT
// Registration of many coroutines that live at once, on stacks in untouched address space. Kinds: 0 = create `amount`
// more; 1 = destroy the last `amount`; 2 = create `amount` on stacks that are taken already; 3 = announce `amount`
// switches, among the first SWITCHING; 4 = create and destroy one, `amount` times; 5 = sleep for so many milliseconds;
// 6 = ask for the memory. Figures: live coroutines, resident bytes (kind 6 only).
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <greenprof/coro.h>

#include "worker.h"

enum { STACK_BYTES = 64 << 10, LIVE_MAX = 1 << 20, SWITCHING = 64 };

static unsigned char *space;
static prof_coro_t **live;
static unsigned long count;

static unsigned char *stack_of(unsigned long i)
{
    return space + i * STACK_BYTES;
}

// Announced, not done: what it costs to keep the accounts.
static void switch_about(unsigned long amount)
{
    for (unsigned long i = 0; i < amount; i++)
        prof_coro_switch(live[i % SWITCHING]);
    prof_coro_switch(NULL);
}

// Resident bytes now: the peak of getrusage() is the parent's at first, as is the one of /proc/self/status.
static double resident_bytes(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "Rss: %lu kB", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return (double)kib * 1024;
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    if (which == 3 && count >= SWITCHING)
        switch_about(amount);
    if (which == 5)
        usleep((useconds_t)amount * 1000);
    for (unsigned long i = 0; i < amount && which != 3 && which < 5; i++) {
        if (which == 0 && count < LIVE_MAX) {
            live[count] = prof_coro_create(stack_of(count), STACK_BYTES, NULL);
            count++;
        } else if (which == 1 && count > 0) {
            prof_coro_destroy(live[--count]);
        } else if (which == 4) {
            prof_coro_destroy(prof_coro_create(stack_of(LIVE_MAX - 1), STACK_BYTES, NULL));
        } else if (which == 2 && count > 0) {
            unsigned long at = i * 7919 % count;
            live[at] = prof_coro_create(stack_of(at), STACK_BYTES, NULL);
        }
    }
    figures[0] = (double)count;
    if (which == 6)
        figures[1] = resident_bytes();
}

int main(int argc, char **argv)
{
    space = mmap(NULL, (size_t)LIVE_MAX * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    live =
        mmap(NULL, LIVE_MAX * sizeof(*live), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (space == MAP_FAILED || live == MAP_FAILED)
        return 1;
    return worker_serve(argc, argv, block);
}
