// SPDX-License-Identifier: MIT
// Coroutines that have kept their thread for too long, in captures still being written: whether a request is open or
// not, nothing else of the thread goes on meanwhile.
//
// Model: records added to a capture tell who has which thread. A coroutine has had its thread since the latest ledger
// record with a switch to it, or for as long as its longest slice where this grows, as far as samples show it there: on
// the CPU, or asleep in the kernel. So a slice is never said to be longer than it is. Parts of a recording are read one
// after the other as one.
//
// The thread is held where another of its coroutines is alive, and the holder is no loop that waits for something to
// do. A thread's own stack never counts: ordinary threads, and most loops, are there. Other loops are called "[hub]",
// sleep in epoll_wait(), or sleep in poll(), select() or on a futex and do a loop's work: they wake most coroutines
// woken on their thread, or are switched to as often as all others together.
//
// Order of calls: look -> list -> told; forget when a capture is left; free. Threads: one at a time.
#pragma once

#include "base/index.h"
#include "capture/killed/recovery.h"
#include "capture/read/reader.h"
#include "symbol/symbolizer.h"

enum { GP_HELD_LEAF_FRAMES = 4 }; // a shown frame (gp_symbol_is_hidden()) is among these

typedef struct gp_held_leaf {
    gp_loc_t frames[GP_HELD_LEAF_FRAMES]; // innermost first; 0 = none
} gp_held_leaf_t;

typedef struct gp_held_coro {
    uint64_t id;
    uint64_t since_ns, last_ns;   // CLOCK_MONOTONIC: its thread is its own at least since then; last seen
    uint64_t cpu_ns, blocked_ns;  // of it, as sampled
    uint64_t longest_ns;          // of all its slices
    uint64_t switches, wakes;     // how often it was switched to; how often it made others ready
    uint64_t over_ns;             // 0 = it is alive
    gp_held_leaf_t leaf;          // where it slept in the kernel last
    uint32_t thread, kind, trace; // the thread that had it last, 0 = not known; of its last sample
    bool is_told;                 // of this slice
    char name[48];
} gp_held_coro_t;

typedef struct gp_held_process gp_held_process_t;

typedef struct gp_slow_held { // zero-initialized = nothing is known
    gp_held_process_t **processes;
    size_t count, capacity;
} gp_slow_held_t;

typedef struct gp_held_found {
    gp_held_coro_t *coro; // valid until the next look
    size_t others;        // coroutines of its thread that are alive
} gp_held_found_t;

// Read what has been added to a capture.
//   fd:      its; the position is changed.
//   part:    zero-initialized at first, then as it was left.
//   process: set to whose it is.
// Returns as gp_reader_read().
int gp_slow_held_look(gp_slow_held_t *held, int fd, gp_reader_part_t *part, gp_held_process_t **process,
                      char error[GP_READER_ERROR_SIZE]);

// Coroutines that hold their thread for at least `least_ns`, have not been told, and work for no open request, which is
// told itself.
//   recovery: of the same capture.
//   found:    set; the caller frees it. count: set.
// Returns 0 or -ENOMEM.
int gp_slow_held_list(const gp_held_process_t *process, uint64_t least_ns, const gp_recovery_t *recovery,
                      gp_symbolizer_t *symbolizer, gp_held_found_t **found, size_t *count);

// Leave a capture that is looked at no more. Facts of its process stay where a next part follows.
void gp_slow_held_leave(gp_slow_held_t *held, gp_held_process_t *process);

void gp_slow_held_free(gp_slow_held_t *held);
