// SPDX-License-Identifier: MIT
// Stack walking without frame pointers, usable in a signal handler.
//
// Model: a walk starts from the registers of an interrupted (or parked) context and the bounds [lo, hi) of the stack
// that its stack pointer is on. Each caller is found through unwind rows, read from .eh_frame once per program counter
// and cached. A walk never reads outside [lo, hi), nor memory in doubt before asking, never goes backwards, takes no
// lock, allocates nothing. A stack in pieces is the exception: where a frame pointer leads out of one, the walk goes on
// there, up or down, and asks for each page.
//
// Order of calls: gp_unwind_init() once, outside any handler, before the first walk; everything else in any order.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

enum {
    GP_UNWIND_DEPTH_DEFAULT = 512, // frames kept of one stack
    GP_UNWIND_STEPS_MAX = 65536,   // frames walked at most: bounds the handler at well under a millisecond
};

// A walk's remarks on its result, or-ed together.
enum gp_unwind_flag {
    GP_UNWIND_TRUNCATED = 1u << 0,  // deeper than max frames: the root end is kept, the leaf frame too
    GP_UNWIND_INCOMPLETE = 1u << 1, // gave up before the stack's bottom: no row, no frame pointer to trust
};

// How much of [lo, hi) may be gone by the time of the walk: of that the kernel is asked, page by page, before it is
// read.
enum gp_unwind_doubt {
    GP_UNWIND_SURE = 0, // nothing
    GP_UNWIND_DOUBTS,   // all but the stack pointer's own page: a stack that its coroutine runs on now
    GP_UNWIND_DOUBTS_ALL,
};

// Registers to walk from. `gp`: all general registers in DWARF order (x86-64: 17, aarch64: 33), or
// NULL where only these four are known (a parked coroutine). `lr` is used on aarch64 only.
typedef struct gp_unwind_regs {
    uintptr_t pc, sp, fp, lr;
    const uintptr_t *gp;
    enum gp_unwind_doubt doubt; // of the stack's bounds
    bool in_pieces;             // a frame's caller may be anywhere else: segments of a split stack
} gp_unwind_regs_t;

// Prepare the row cache and the vDSO's rows. Idempotent.
// Returns 0 or a negative errno value. Threads: any. Signals: not safe. Cost: one mmap.
int gp_unwind_init(void);

// Touch the startup modules' tables for walks, 4 MiB of them at most, before a handler has to; once walks have met many
// stacks, their memory too (2.8 MiB). After gp_unwind_init(), now and again. Threads: one that nothing waits for.
// Signals: not safe. Cost: nothing once done, else up to 1 ms.
void gp_unwind_warm(void);

// Touch writable memory that a handler will write to, which others may do meanwhile. Threads: any. Signals: not safe.
// Cost: ~0.2 us a page.
void gp_unwind_warm_memory(void *memory, size_t bytes);

// Take the registers out of a signal's context. `gp` is storage for 33 registers that `regs` keeps pointing to.
void gp_unwind_regs_from_ucontext(gp_unwind_regs_t *regs, uintptr_t gp[33], const ucontext_t *context);

// Let the kernel provide the row cache's memory (1 MiB) at once, rather than page by page within handlers. May be left
// out. Threads: any. Signals: not safe. Cost: about 0.1 ms.
void gp_unwind_populate(void);

// `pc` was interrupted: put rows of the whole function into the cache, once, for the next samples in it. Nothing is
// done for a module that may be unloaded. Threads: one at a time. Signals: not safe, but walks may run meanwhile. Cost:
// 5 ns where the function is known, else 1 to 100 us.
void gp_unwind_prepare_leaf(uintptr_t pc);

// Ask for the cache lines that a walk from `pc` on the stack which ends at `hi` will look at first. Signals: safe.
// Cost: ~5 ns.
void gp_unwind_prefetch(uintptr_t pc, uintptr_t hi);

// Walk the stack [lo, hi) from `regs`.
//   frames: uintptr_t[max], innermost first; frames[0] is the interrupted program counter itself,
//   every other
//           one is return address - 1 (the interrupted pc again for the caller of a signal frame).
//   flags:  enum gp_unwind_flag bits are stored here; not NULL.
// Returns the number of frames stored (at least 1 when max > 0). Threads: any. Signals: safe.
size_t gp_unwind_walk(const gp_unwind_regs_t *regs, uintptr_t lo, uintptr_t hi, uintptr_t *frames, size_t max,
                      unsigned *flags);

// Walk a parked coroutine's stack. Like gp_unwind_walk(), except for regs->pc, the return address at which the
// coroutine will go on: frames[0] is regs->pc - 1. regs->gp may be NULL, or give the callee-saved registers too.
// Returns the number of frames stored: 0 for a coroutine that has not run yet. Threads: any, as long as the coroutine
// stays parked. Signals: safe.
size_t gp_unwind_walk_parked(const gp_unwind_regs_t *regs, uintptr_t lo, uintptr_t hi, uintptr_t *frames, size_t max,
                             unsigned *flags);

// Look at the modules again after dlopen() or dlclose(): prepares .debug_frame indexes and, where the C library has no
// lock-free lookup, the list of modules. Calling it late costs rows of new modules, never a wrong one. Threads: any.
// Signals: not safe (takes the loader's lock). Cost: a lock when nothing changed.
void gp_unwind_refresh(void);

// Tell the walker that code [lo, hi) is where coroutines start: a frame in it is the last one and is not shown. Returns
// 0 or -ENOSPC. Threads: any, serialized by the caller. Signals: not safe, but walks may run meanwhile.
int gp_unwind_entry_add(uintptr_t lo, uintptr_t hi);
