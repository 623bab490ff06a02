// SPDX-License-Identifier: MIT
// Registration of many coroutines that live at once, on stacks in address space that is never touched.
// Kinds: 0 = create `amount` more; 1 = destroy the last `amount`; 2 = create `amount` on stacks that are taken already.
// Figures: live coroutines, peak resident KiB.
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <greenprof/coro.h>

#include "worker.h"

enum { STACK_BYTES = 64 << 10, LIVE_MAX = 1 << 20 };

static unsigned char *space;
static prof_coro_t **live;
static unsigned long count;

static unsigned char *stack_of(unsigned long i)
{
    return space + i * STACK_BYTES;
}

static void block(unsigned long amount, unsigned which, double *figures)
{
    for (unsigned long i = 0; i < amount; i++) {
        if (which == 0 && count < LIVE_MAX) {
            live[count] = prof_coro_create(stack_of(count), STACK_BYTES, NULL);
            count++;
        } else if (which == 1 && count > 0) {
            prof_coro_destroy(live[--count]);
        } else if (which == 2 && count > 0) {
            unsigned long at = i * 7919 % count;
            live[at] = prof_coro_create(stack_of(at), STACK_BYTES, NULL);
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    figures[0] = (double)count;
    figures[1] = (double)usage.ru_maxrss;
}

int main(int argc, char **argv)
{
    space = mmap(NULL, (size_t)LIVE_MAX * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    live = calloc(LIVE_MAX, sizeof(*live));
    if (space == MAP_FAILED || live == NULL)
        return 1;
    return worker_serve(argc, argv, block);
}
