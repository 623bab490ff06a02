// SPDX-License-Identifier: MIT
// The list of threads: attaches threads that call in, prepares blocks for threads found by others, detaches at exit.
//
// A block holds the thread's alternate signal stack and its ring; blocks are reused, so a thread costs one mapping the
// first time and two system calls after that.
#pragma once

#include <pthread.h>

#include "coro/own_list.h"
#include "signal/thread.h"

typedef struct gp_thread_watch {           // the sampler's: arms and disarms timers. May be NULL.
    void (*attached)(gp_thread_t *thread); // on the thread itself, or on its finder
    void (*exiting)(gp_thread_t *thread);  // on the thread itself, the sampling signal blocked
} gp_thread_watch_t;

extern const gp_thread_watch_t *_Atomic gp_thread_watch;

// Bounds of the calling thread's own stack: [lo, hi). Signals: not safe.
void gp_thread_own_stack(uintptr_t *lo, uintptr_t *hi);

// This core is not the one that is active in the process (process/load.c). Its wrappers are still called on the way to
// the original, and nothing collects records of threads: it attaches none. Set as it is loaded.
extern bool gp_threads_are_anothers;

// The calling thread's block, made if need be. NULL when memory is short or on greenprof's own threads.
gp_thread_t *gp_thread_attach(void);

// A block for thread `tid`, found by another thread; it adopts the block at its first signal or call.
//   is_unwanted: asked where the thread has no block, also with the registry's lock held; NULL = it is wanted.
// Returns the block, existing or new; NULL where it is unwanted, or memory is short.
gp_thread_t *gp_thread_prepare(pid_t tid, bool (*is_unwanted)(pid_t tid));

// Give the calling thread's block back.
void gp_thread_detach(void);

// The same for a thread that goes on, and is left alone from here on (process_id.h), with all threads it creates.
void gp_thread_leave(void);

// Is it one of the last 64 threads to give their blocks back? Such a thread may still run destructors of the program's.
// Any thread.
bool gp_thread_has_ended(pid_t tid);

// Let the block of a thread that is gone be reused; after its ring was drained. Collector only.
void gp_thread_recycle(gp_thread_t *thread);

// In a forked child: greenprof's own threads are gone.
void gp_thread_forget_own(void);

// In a forked child: only the calling thread lives on.
void gp_thread_after_fork(void);

// pthread_create() as it is without greenprof. Returns 0 or a positive errno value.
//   is_shown: what stands before greenprof, the program itself for one, takes part.
int gp_thread_create_unseen(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument,
                            bool is_shown);

// Threads created by the calling thread are greenprof's own, not the program's.
void gp_thread_hides_what_it_creates(void);

// Start a thread of greenprof's own: all signals blocked, never sampled. Returns 0 or a negative errno value.
//   run: may return GP_THREAD_RETURNS (base/own_thread.h) where it is asked to end (gp_thread_helper_may_stay()).
//   staying: it does not end when it is asked to.
int gp_thread_start_own(void *(*run)(void *), void *argument, void *pthread_out);
int gp_thread_start_staying(void *(*run)(void *), void *argument, void *pthread_out);

// Note which processors and what priority the program has: threads of greenprof's own have no more. As it is loaded.
void gp_thread_helper_note(void);

// Whether threads that begin from now on are to have the processor as soon as they want it, where others want it, too.
void gp_thread_helper_hurry(bool is_urgent);

// Whether threads that begin from now on are named GP_OWN_NAME (model/own_name.h).
void gp_thread_helper_be_named(bool are_named);

// Have they other capabilities than the calling thread? Signals: safe. Cost: a system call for each.
bool gp_thread_helper_differ(void);

// How many of them stay.
int gp_thread_helper_staying(void);

// May threads of greenprof's own go on? Where not, each ends as soon as it has nothing left to do.
bool gp_thread_helper_may_stay(void);

// End all of them but the caller; let new ones begin, and ended ones return.
//   wake: called now and then, until all have ended: wakes those that wait.
// Returns false where one of them did not end within a second. Threads: the program's only one, or one of greenprof's
// own.
bool gp_thread_end_own(void (*wake)(void));
void gp_thread_let_own_begin(void);

// CPU time of greenprof's own threads so far, those that ended included, ns.
uint64_t gp_thread_helper_cpu_ns(void);

// A function of greenprof's through which threads or coroutines of the program start: its frame is not shown, but what
// it calls is the program's.
#define GP_ENTRY_CODE __attribute__((section("gp_thread_entry"), noinline))

// Where those functions are: [lo, hi).
void gp_thread_entry_code(uint64_t range[2]);

// Around fork: no thread is just being started.
void gp_threads_hold_starts(void);
void gp_threads_let_starts_go(void);

// The program's threads get blocks as they start (thread_hook.c); resolve the real pthread_create.
void gp_thread_hook_init(void);
