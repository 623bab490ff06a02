// SPDX-License-Identifier: MIT
// Which profiles a green thread, a task, or a thread's own stack is in.
//
// Model: each has a context, with its shadow stack in every profile that it is in. Made by one that is in profiles, it
// is in those. Events of the language say who runs; but a green thread that was suspended before anybody wanted to know
// may go on without one. So who runs is read at each call, and looked up anew where it is another one than at the last.
// Contexts are type-stable: the one that a thread looked up last may be gone by now. Caller holds the interpreter lock
// everywhere.
#ifndef GP_CPYTHON_EXACT_CONTEXT_H
#define GP_CPYTHON_EXACT_CONTEXT_H

#include "exact_stack.h"
#include "signal/language.h"

typedef struct exact_context {
    const void *key;     // the greenlet or task, or the thread state of a thread's own; NULL = free
    uint64_t thread;     // id of that thread state: another thread's may come to lie there
    uint64_t serial;     // of the context: never used again
    unsigned generation; // of starts, when profiles of the thread and of the process were last looked at
    size_t count, room;
    exact_stack_t **stacks;
    struct exact_context *next; // in its bucket, or of those that are free
} exact_context_t;

typedef struct exact_here {   // of a thread: what ran when it was last looked
    exact_context_t *context; // NULL = memory is short
    uint64_t serial;          // of the context
    unsigned epoch;
    const void *greenlet;
    gp_language_place_of_running_t place; // of the greenlet that runs; NULL = there are none, or events say all
} exact_here_t;

extern __thread exact_here_t exact_here __attribute__((tls_model("initial-exec")));
extern unsigned exact_epoch; // raised where what threads looked up may be void
extern exact_t *exact_running;

// Look who runs on the calling thread. NULL when memory is short.
exact_context_t *exact_context_look(uint64_t now);

// The same. Cost: ~1 ns if nothing has changed.
static inline exact_context_t *exact_context_current(uint64_t now)
{
    const exact_here_t *here = &exact_here;
    if (__builtin_expect(here->epoch == exact_epoch && gp_language_running(here->place) == here->greenlet, 1))
        return here->context;
    return exact_context_look(now);
}

// See gp_language_watch_t.
void exact_context_on_event(gp_language_event_t event, void *coroutine);

// A profile has started: it is one of exact_running.
void exact_context_on_start(void);

// Let a context be in a profile, paused. NULL when memory is short.
exact_stack_t *exact_context_join(exact_context_t *context, exact_t *profile, uint64_t now);

// A coroutine, NULL = the calling thread's own stack, leaves the profiles of requests that others have started.
void exact_context_detach(const void *coroutine, uint64_t now);

// Nobody is in a profile any more: what is active returns now. Or there are no profiles.
void exact_context_leave(exact_t *profile, uint64_t now);
void exact_context_forget_all(void);

#endif
