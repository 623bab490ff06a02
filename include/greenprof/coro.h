// SPDX-License-Identifier: MIT
// Schedulers report their coroutines to greenprof through these calls.
//
// Model: a coroutine is a stack region [stack_low, stack_low + stack_size) and what runs on it. The region around the
// stack pointer decides which coroutine a sample belongs to; the switch calls give exact on-CPU time, and identity to
// coroutines on a shared stack (created with stack_size 0). A scheduler on a hooked runtime (README.md lists them)
// needs none of this.
//
// Order of calls: prof_coro_create -> prof_coro_switch... -> prof_coro_destroy.
// None of them makes a system call, except that memory for records is mapped a thousand at a time.
// Unless a declaration says otherwise: any thread; not from a signal handler; they never fail in a way the host must
// handle, and a NULL coroutine is accepted everywhere.
#ifndef GREENPROF_CORO_H
#define GREENPROF_CORO_H

#include <stdint.h>

#include <greenprof/prof.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(__clang__)
// A call of it goes past the procedure linkage table.
#define PROF_DIRECT __attribute__((noplt))
#else
#define PROF_DIRECT
#endif

typedef struct prof_coro prof_coro_t;

// Announce a coroutine. Trace id and request profiles are inherited from the calling coroutine.
//   stack_low:  lowest address of its stack; NULL with size 0 where it has none of its own (shared stacks).
//   stack_size: bytes. A region that overlaps an older one replaces it: pools may reuse stacks without a destroy.
//   name:       copied, at most 47 bytes are kept; NULL = shown by its address.
// Returns the coroutine, or NULL when memory is short: all calls accept that, its samples are then shown by region.
// Signals: not safe. Cost: O(1), ~100 ns; while a capture is written, also a walk of the caller's stack, which
// `--stitch` shows: ~0.1 us at depth 10, ~0.3 us at depth 50.
PROF_API prof_coro_t *prof_coro_create(const void *stack_low, size_t stack_size, const char *name);

// Announce a coroutine on a shared stack, copied away while others run: the "share stacks" of libaco,
// the copy-stack mode of Tencent's libco, coost. prof_coro_switch() alone says which coroutine runs.
//   stack_low, stack_size: the shared stack; not NULL and 0. Other arguments, and the rest, as above.
// The place where it waits is not shown: its stack is copied away then.
PROF_API prof_coro_t *prof_coro_create_shared(const void *stack_low, size_t stack_size, const char *name);

// Say that coroutines' entry functions are called from the code [code_low, code_high): stacks end there, and neither it
// nor what an unwinder would find below is shown. Meant for schedulers with stale frames, or words like code, on a
// fresh stack; once is enough. Returns 0 or -ENOSPC (a few hundred are kept).
PROF_API int prof_coro_entry(const void *code_low, const void *code_high);

// 0 while no profile runs and none has for half a second: requests come one after another, and the sampler goes on
// between them. Read by prof_coro_switch(); written by greenprof only.
PROF_API extern int prof_coro_active;

// The part of prof_coro_switch() that runs while a profile does. Do not call it directly.
PROF_API void prof_coro_switch_hook(prof_coro_t *to) PROF_DIRECT;

// Say that the calling thread is about to switch to `to`: call it right before the stack switch.
//   to: NULL = the thread's own stack.
// Signals: not safe. Cost: one load and one branch while no profile runs; 14 to 28 ns while one does.
static inline __attribute__((always_inline)) void prof_coro_switch(prof_coro_t *to)
{
    if (__builtin_expect(__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) != 0, 0))
        prof_coro_switch_hook(to);
}

// For hooks of runtimes with a stack for each coroutine, from here to prof_coro_switch_ontop().
//
// Where the caller of a switch routine will go on when it is switched back to: its stack is walked from there.
typedef struct prof_park {
    uintptr_t pc; // return address
    uintptr_t sp; // stack pointer once it has returned there
    uintptr_t fp; // frame pointer then
} prof_park_t;

// Announce a coroutine; a record that exists for exactly this stack and on which nothing has run yet is kept.
//   stack_low, stack_size: as for prof_coro_create(), but not NULL and 0.
//   entry: address of its entry function, by which it is named where `name` is NULL; NULL = unknown.
// Returns the coroutine, or NULL. Signals: not safe. Cost: O(1), ~100 ns.
PROF_API prof_coro_t *prof_coro_announce(const void *stack_low, size_t stack_size, const void *entry, const char *name);

// The same for a hook that stands between the program and its runtime; NULL and 0 are accepted as by
// prof_coro_create().
//   creator: where the hook's caller goes on, as the caller is the creator; not NULL.
PROF_API prof_coro_t *prof_coro_announce_for(const void *stack_low, size_t stack_size, const void *entry,
                                             const char *name, const prof_park_t *creator);

// Say, right after it was announced, that switches to a coroutine will not be reported: nothing is known of when it
// starts. Without this call, a coroutine never switched to is shown as not started. Signals: safe. Cost: ~1 ns.
PROF_API void prof_coro_unseen(prof_coro_t *coro);

// Say that the calling thread is about to switch to whichever coroutine's stack holds `target_sp`; none: the thread's
// own. To be called only while prof_coro_active is not 0.
//   park: of the switch routine's caller; not NULL.
// Signals: not safe. Cost: 14 to 28 ns.
PROF_API void prof_coro_switch_to_stack(uintptr_t target_sp, const prof_park_t *park);

// The same where a function is called on top of that stack, with `record` (Boost.Context's ontop_fcontext). A record
// right above the caller's own stack belongs to a context about to be freed: the caller's coroutine is over with this
// switch.
PROF_API void prof_coro_switch_ontop(uintptr_t target_sp, uintptr_t record, const prof_park_t *park);

// Say that a parked coroutine has become runnable (optional): from this moment on it waits for the loop. Called for a
// coroutine that runs (a yield), its whole next wait is one for the loop. Where this is never called, ready and parked
// time are shown as one. Signals: safe.
PROF_API void prof_coro_ready(prof_coro_t *coro);

// Say that a coroutine is over and its stack may be reused. Not while it runs on that stack.
PROF_API void prof_coro_destroy(prof_coro_t *coro);

// Say that the calling coroutine goes back to its pool, to wait for work: trace, span and profiles' scope are taken
// away. Until it is switched to again it is idle, not waiting: in no ledger and no graph. Its next wait may well be for
// a request. Not for a thread's own stack: there it takes the trace away only.
PROF_API void prof_coro_idle(void);

// The coroutine on this stack, else the one last switched to on this thread; NULL on the thread's own stack.
PROF_API prof_coro_t *prof_coro_current(void);

// Name a coroutine, or rename it: a worker may be called after the request that it works for. Reports show the name
// that it had last, for all of its time; `--name` finds it by its former names, too.
//   coro: NULL = the calling one. A thread's own stack has the thread's name (pthread_setname_np(3)): nothing happens.
//   name: UTF-8, copied; of more than 47 bytes the first whole characters are kept. NULL = named by its entry function,
//         or its address.
// Threads: any, also while the coroutine runs elsewhere; not after its prof_coro_destroy(). Signals: not safe.
// Cost: ~50 ns, and with a capture ~20 bytes in the file, five times a second at most.
PROF_API void prof_coro_name(prof_coro_t *coro, const char *name);

// Exact on-CPU time of a coroutine while profiles ran (see prof_coro_active), ns; NULL = the calling one.
PROF_API uint64_t prof_coro_cpu_ns(prof_coro_t *coro);

// Number of times it was switched to while profiles ran; NULL = the calling one.
PROF_API uint64_t prof_coro_switches(prof_coro_t *coro);

// Read where its time went while profiles ran; NULL = the calling one. Returns 0, -EINVAL (see prof_ledger()), -ENOMEM.
PROF_API int prof_coro_ledger(prof_coro_t *coro, prof_ledger_t *ledger);

// Write a census: every live coroutine with its state, the time in it, its name, its trace and its stack, and the
// threads. `greenprof coroutines PATH` shows it. While no profile runs switches are not seen: states and stacks are
// unknown.
//   path: written under a temporary name in the same directory, then renamed.
// Returns 0; -EINVAL for no path; -ENAMETOOLONG; -ENOMEM; else the error of opening, writing or renaming.
// Threads: any; the work is done on a thread of greenprof's own, the caller waits. Signals: not safe.
// Cost: ~2 us a coroutine, and the file's.
PROF_API int prof_coro_dump(const char *path);

#ifdef __cplusplus
}
#endif

#endif
