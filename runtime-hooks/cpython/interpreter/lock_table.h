// SPDX-License-Identifier: MIT
// Python's locks taken last, and the threads that gave back those with waiters.
//
// Model: a slot a lock, one of two found by its address; another lock takes a slot over, unless it is waited for.
// Writers have the interpreter's lock, or are the only user of a lock just made; a lock of the interpreter's own may
// race for its slot: then its holder is not known. Signals: not safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gp_lock_slot {
    _Atomic uintptr_t lock;
    _Atomic uint32_t owner; // index of the thread that has it; 0 = none, or not known
    _Atomic uint32_t waiters;
    _Atomic uint64_t epoch;   // ticks at which recording began: what was taken before is not known
    _Atomic uintptr_t maker;  // frame word of the code that made it, else of the first wait; 0 = not known
    _Atomic uint64_t looked;  // ticks at which its owner was looked at
    _Atomic bool is_event;    // a thread that had not taken it gives it
    _Atomic bool is_doubtful; // its owner tried to take it again: another may be to give it
} gp_lock_slot_t;

typedef struct gp_lock_held { // the owner of a lock for the longest part of a time
    uint32_t thread;          // 0 = not known
    uintptr_t code;           // frame word of the code that gave it back; 0 = not known
    uint64_t given;           // ticks at which it was given back last; 0 = it was not
    bool by_owner;            // by the thread that had taken it
} gp_lock_held_t;

// The slot of a lock; NULL = it has none.
gp_lock_slot_t *gp_lock_slot_find(uintptr_t lock);

// The same, made where it can be. Cost: ~2 ns.
gp_lock_slot_t *gp_lock_slot_claim(uintptr_t lock);

// The lock is about to be given back, by the thread of that index. Returns whether others wait for it: then
// gp_lock_slot_give() is to be told. Cost: ~2 ns.
bool gp_lock_slot_leave(gp_lock_slot_t *slot, uint32_t thread, bool *by_owner);

typedef struct gp_lock_give {
    uint64_t ticks;
    uintptr_t code; // frame word of the code that gives it
    uint32_t thread;
    bool by_owner;
} gp_lock_give_t;

void gp_lock_slot_give(const gp_lock_slot_t *slot, const gp_lock_give_t *give);

// In a forked child: no thread waits, and no owner is known.
void gp_lock_table_begin_anew(void);

// The owner for the longest part of [since, now).
//   owner: that of now, where the caller did not get the lock; 0 = the caller did.
gp_lock_held_t gp_lock_slot_held(const gp_lock_slot_t *slot, uint64_t since, uint64_t now, uint32_t owner);
