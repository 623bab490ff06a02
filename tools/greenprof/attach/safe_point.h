// SPDX-License-Identifier: MIT
// Safe places, where a stopped thread of another process may be made to call pthread_create(): not where it holds a
// lock of the loader's, of an allocator, of fork() or of the lists of threads, and not in a restartable sequence
// (rseq(2)).
//
// Model: the stack is walked (libunwind, by the process' own unwind tables). A thread that sleeps in a waiting system
// call is at such a place where no frame speaks against it; a running one, only where the walk came to its end besides,
// or to where a greenlet begins. A signal handler never is such a place: it may have interrupted anything.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target_modules.h"

typedef struct gp_safe_places {
    struct gp_unsafe_range *unsafe;
    size_t count;
    uint64_t lo, hi;             // of all of them
    uint64_t begin_lo, begin_hi; // of the function in which a greenlet's stack begins; 0 = none is known
    void *space;                 // libunwind's
} gp_safe_places_t;

// Returns 0 or a negative errno value; free it in either case.
int gp_safe_places_read(gp_safe_places_t *places, const gp_target_modules_t *modules);
void gp_safe_places_free(gp_safe_places_t *places);

enum gp_lock_guess {
    GP_LOCK_NONE,
    GP_LOCK_BRIEF, // an allocator's, or greenprof's own: it is given back after some microseconds
    GP_LOCK_LONG,  // the loader's, for one
};

// May a stopped thread hold such a lock? At a glance: any word at its stack's end could be an address in a function
// that takes one.
enum gp_lock_guess gp_may_hold_lock(const gp_safe_places_t *places, pid_t tid);

// Is a stopped thread at one?
//   call: the number of the system call that it is in; negative = none.
bool gp_is_safe_place(const gp_safe_places_t *places, pid_t tid, long call);
