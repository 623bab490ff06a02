// SPDX-License-Identifier: MIT
// Writes its deeds down, in a file that outlives it: a span after another, until it is killed.
//   killed FILE [NAME [fork]]      NAME: of each span, "one" unless given; fork: in a child, which it waits for
#include <greenprof/trace.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPAN_NS = 1000000, SPANS_MAX = 1 << 20 };

typedef struct done {
    _Atomic uint64_t count;
    uint64_t end_ns[SPANS_MAX]; // CLOCK_MONOTONIC
    uint64_t ids[SPANS_MAX];
} done_t;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
    int fd = argc > 1 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd < 0 || ftruncate(fd, sizeof(done_t)) != 0)
        return 1;
    pid_t child = argc > 3 ? fork() : 0;
    if (child != 0)
        return waitpid(child, NULL, 0) != child;
    done_t *done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (uint64_t i = 0; done != MAP_FAILED && i < SPANS_MAX; i++) {
        prof_span_t *span = prof_span_begin(PROF_SPAN_REQUEST, argc > 2 ? argv[2] : "one", NULL);
        for (uint64_t until = now_ns() + SPAN_NS; now_ns() < until;)
            ;
        done->ids[i] = prof_span_id(span);
        prof_span_end(span);
        done->end_ns[i] = now_ns();
        atomic_store_explicit(&done->count, i + 1, memory_order_release);
    }
    return 0;
}
