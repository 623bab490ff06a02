// SPDX-License-Identifier: MIT
// Runtimes without a hook: which coroutine runs is read, at each sample, from what the runtime itself keeps.
//
// Model: a variable of the runtime, the thread's own or the whole program's, points to a word with the address of the
// running coroutine's object, which tells its stack. The handler only loads words, on the thread that may write them;
// it calls nothing. A runtime sets its variable a moment before or after it changes stacks: what does not agree with
// the stack pointer is dropped and counted. Identity, stack and nothing else travel with the sample; records and names
// are the collector's (src/core/collect/polled.h).
//
// Order of calls: gp_poll_add() before there are other threads, then gp_poll_ask().
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_POLL_CHOICES = 2, GP_POLLS_MAX = 4 };

typedef struct gp_poll_word {
    uint16_t at, bytes; // bytes: 4 or 8; 0 = there is no such word
} gp_poll_word_t;

typedef struct gp_poll_layout {        // all offsets in bytes, of the object; of words that are not there, 0
    uint16_t low_at;                   // where its stack's lowest address is
    uint16_t size_at[GP_POLL_CHOICES]; // where its stack's size is, by version: the first that may be one
    gp_poll_word_t
        id[GP_POLL_CHOICES]; // what changes when an object is used again, by version: the first that is not 0
} gp_poll_layout_t;

typedef struct gp_poll { // a runtime that is in this process
    const gp_poll_layout_t *layout;
    bool is_thread_local;
    intptr_t variable; // its address; of a thread-local one, from the thread pointer on
    size_t name_at;    // where in objects the pointers to their names are, 0 = not known yet; collector only
} gp_poll_t;

typedef struct gp_poll_answer { // behind a sample's frames
    gp_poll_t *poll;            // NULL = nothing was learnt
    uintptr_t object;
    uint64_t identity; // of the object's present use; 0 = not known
    uintptr_t lo, hi;  // the coroutine's stack
} gp_poll_answer_t;

enum { GP_POLL_ANSWER_WORDS = sizeof(gp_poll_answer_t) / sizeof(uintptr_t) };

enum gp_poll_result {
    GP_POLL_NOBODY,    // no runtime that is polled, or none of its coroutines
    GP_POLL_STACKLESS, // one that has no stack: the scheduler, on the thread's own
    GP_POLL_FITS,
    GP_POLL_MISFIT, // one with a stack that does not hold `sp`
};

// Which coroutine runs on the calling thread? Signals: safe. Cost: a load where nothing is polled, else ~10 loads.
enum gp_poll_result gp_poll_ask(uintptr_t sp, gp_poll_answer_t *answer);

// A word by which uses of an object differ; 0 = not known. Signals: safe.
uint64_t gp_poll_identity(const gp_poll_layout_t *layout, uintptr_t object);

// Poll one more runtime. The layout stays. Returns false where there is no room. Signals: not safe.
bool gp_poll_add(const gp_poll_t *poll);
