// SPDX-License-Identifier: MIT
// Time in which the sampling signal was blocked by system calls that no hook sees: by the program's own mask, by the
// mask of a handler, or by a handler through the context to which it returns.
//
// Model: the signal then comes when it is let through, where the code has nothing to do with the time that has passed.
// A sample is taken for one of these if it stands right where a mask has just ended, and its signal was due before. So
// no long system call, no page fault and no processor that others had is taken for it. The places: behind
// rt_sigprocmask, a wait with a mask of its own, and where a handler has returned to.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "signal/thread.h"

// How much of the CPU time since the sample before was the sampling signal `number`, which has interrupted `context`,
// blocked? 0 = it was not, right there. Else all but what passed before the block, by the mean: half of the time until
// the signal was due, or as much as it came late, if that is less. That is the next sample's (carried_ns): of a place
// where the signal is not blocked, if it comes there.
//   cpu_ns: the thread's CPU clock. The thread's own handler.
// Signals: safe. Cost: ~5 ns; ~10 us where the signal comes late.
uint64_t gp_held_back_ns(const gp_thread_t *thread, const ucontext_t *context, int number, uint64_t cpu_ns);

// Has rt_sigprocmask just let the signal through? Part of the above. Source: syscall(2): arguments are still in their
// registers.
//   is_late: what is said where the mask of before is not known.
bool gp_held_back_by_mask(const ucontext_t *context, int number, bool is_late);
