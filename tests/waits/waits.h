// SPDX-License-Identifier: MIT
// The calls of waits.c, and what each needs.
#ifndef WAITS_H
#define WAITS_H

#include <signal.h>
#include <stdint.h>

enum { WAITS_MAX = 64 };

// A thread's own things to wait for; no other thread touches them, but where `poke` says so.
typedef struct waits_place {
    int epoll, pipe[2], sockets[2], listener, full[2]; // full: a socket with a peer that does not read
    int queue, full_queue, semaphores;
    unsigned long aio;
    int is_silent; // no other thread ends the wait
} waits_place_t;

typedef struct waits_call {
    const char *name;
    // Wait `ns` by the call; where it has no timeout, until another thread makes it end. Returns 0, EINTR where it
    // was interrupted, or another error.
    int (*wait)(waits_place_t *place, uint64_t ns);
    uint64_t length_ns; // of a wait; 0 = another thread ends it, as soon as it is ready
    int can_be_kicked;  // a signal ends it with EINTR
} waits_call_t;

extern const waits_call_t waits_calls[]; // the last has no name

void waits_open(waits_place_t *place);
void waits_close(waits_place_t *place);

#endif
