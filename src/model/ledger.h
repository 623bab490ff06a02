// SPDX-License-Identifier: MIT
// The exact account of a coroutine, a trace or a profile.
#pragma once

#include <stdint.h>

#include "model/kinds.h"

// Where time went, in ns; sums of it may be taken and differences, modulo 2^64.
// wall = cpu + blocked + preempted + ready + parked + waiting, where preempted = slice - cpu - blocked. The wait for a
// lock, the program's or an interpreter's, is a sleep, or that and what follows until the thread has a processor:
// gp_ledger_kind_ns() takes it off the other two.
typedef struct gp_ledger {
    uint64_t cpu_ns;     // on the CPU
    uint64_t blocked_ns; // its thread slept in the kernel
    uint64_t slice_ns;   // between being switched to and away from: on the CPU, blocked or preempted
    uint64_t ready_ns;   // runnable, waiting for the loop
    uint64_t parked_ns;  // waiting for something to happen
    uint64_t waiting_ns; // ready or parked: unknown which
    uint64_t switches;   // times it was switched to
    uint64_t spawned;    // coroutines created
    uint64_t longest_ns; // longest slice: sums and differences take the larger one
    uint64_t gil_ns;     // of the time off the CPU, waiting for the lock of an interpreter
    uint64_t lock_ns;    // and for a lock of the program
} gp_ledger_t;

void gp_ledger_add(gp_ledger_t *sum, const gp_ledger_t *more);
void gp_ledger_subtract(gp_ledger_t *from, const gp_ledger_t *less); // longest_ns stays

// The time of one kind of sample, ns. A difference below zero, from a host that reports one coroutine on two threads,
// counts as 0.
uint64_t gp_ledger_kind_ns(const gp_ledger_t *ledger, enum gp_sample_kind kind);
