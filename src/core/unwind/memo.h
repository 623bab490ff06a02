// SPDX-License-Identifier: MIT
// A memo of a stack's last walk: the next one need only compare.
//
// Model: between two samples most of a stack stays as it was. A memo holds, for one stack, the chain of frames that its
// last walk found by simple rows: where each return address (and saved frame pointer) stood and what it was. A simple
// row is a function of pc, stack pointer, frame pointer and those words; so once a new walk reaches a frame with the
// same three registers, every further frame with words that still compare equal is proven, in any order and without a
// look at a row. A word that differs ends the proof there.
//
// Not covered by the words are the rows themselves. A memo ends with the cache's epoch. A frame reached by the row of a
// module that may be unloaded is unlinked: it can be met, never proven, so every walk looks its row up, and checks its
// module.
//
// Memos live in a fixed pool, chosen by where the stack ends (a walk's lower bound moves with the stack pointer) and
// owned by try-lock for the time of a walk: a walk without it (a handler that interrupted a walk, two stacks with one
// memo) does without. Signals: safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/stack_read.h"

enum {
    GP_MEMO_COUNT = 256,
    GP_MEMO_FRAMES = 120,
    GP_MEMO_HEADROOM = 24, // frames by which a stack may grow before its leaf end is no longer kept
};

// A frame as its callee's row found it: two words of the stack, and their values. Where the frame pointer was not
// restored its pair repeats the return address's, so that a comparison needs no branch.
typedef struct gp_memo_frame {
    uintptr_t ra_at; // address of the word
    uintptr_t ra;    // as it stands in memory, authentication code included
    uintptr_t fp_at;
    uintptr_t fp_word;
    uintptr_t sp; // the callee's CFA
    uintptr_t fp;
} gp_memo_frame_t;

typedef struct gp_memo {
    unsigned epoch;
    uintptr_t stack_end; // 0 = none's
    unsigned start, end; // valid frames: chain[current][start..end)
    unsigned current;    // the chain that is read; the other is written
    _Atomic bool taken;  // written before anything is read: a page that is read first is found twice by the kernel
    gp_memo_frame_t chain[2][GP_MEMO_FRAMES];
} gp_memo_t;

// A walk's hold on a memo. While `run` is set the walk is on the old chain, proven from `run` up to `next`; otherwise
// what it passes is recorded, to take the place of the old frames below the one it meets.
typedef struct gp_memo_use {
    gp_memo_t *memo;             // NULL: walk without
    const gp_memo_frame_t *run;  // where the walk met the old chain, or NULL
    gp_memo_frame_t *next;       // the next old frame that could be met
    const gp_memo_frame_t *last; // one past the last old frame
    gp_memo_frame_t *record;     // where the next new frame goes
    gp_memo_frame_t *record_end; // one past the last place for it
    bool gap;                    // a frame was not recorded: what was is not adjacent to what comes
} gp_memo_use_t;

// Ask for the cache lines of the memo of the stack that ends at `stack_end`.
void gp_memo_prefetch(uintptr_t stack_end);

// Take the memo of `stack`, if it is free. Old frames that are no longer to be trusted are not offered.
void gp_memo_take(gp_memo_use_t *use, const gp_stack_memory_t *stack);

// Make `frame` one that nothing leads to: it can be met, never proven.
static inline void gp_memo_unlink(gp_memo_frame_t *frame)
{
    static const uintptr_t zero;
    frame->ra_at = frame->fp_at = (uintptr_t)&zero;
    frame->fp_word = 1;
}

// Have walks met so many stacks that they will meet more? Where the memos are.
bool gp_memo_many(void **memory, size_t *bytes);

// May the walk record its present frame, which is not an old one, at `use->record`? Leaves the old chain.
bool gp_memo_may_record(gp_memo_use_t *use);

// The walk goes on beside the old chain: keep what was proven of it.
void gp_memo_leave(gp_memo_use_t *use);

// Give the memo back.
void gp_memo_release(gp_memo_use_t *use);

// The calling thread ends, or is a forked child's: whatever walks it was in, or others were in, will not end.
void gp_memo_forget_own(void);
void gp_memo_forget_others(void);

// Is this frame the next old one? Moves on to the old frame that is not below `sp`.
static inline bool gp_memo_meets(gp_memo_use_t *use, uintptr_t ra, uintptr_t sp, uintptr_t fp)
{
    while (use->next != use->last && use->next->sp < sp) {
        if (use->run != NULL)
            gp_memo_leave(use);
        use->next++;
    }
    return use->next != use->last && use->next->sp == sp && use->next->ra == ra && use->next->fp == fp;
}
