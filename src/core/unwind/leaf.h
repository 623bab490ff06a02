// SPDX-License-Identifier: MIT
// The caller of interrupted code that has no unwind rows: hand-written assembly.
#pragma once

#include "unwind/step.h"

// musl is built without rows, or with few.
#ifdef __GLIBC__
enum { GP_LIBC_HAS_ROWS = 1 };
#else
enum { GP_LIBC_HAS_ROWS = 0 };
#endif

// Step out of a frame without rows, an interrupted one unless libc is without, by finding the call into it: the return
// address right at the stack pointer of an interrupted routine without pushed words, or the first one further up with a
// call instruction to code a little before the interrupted pc. The frame pointer is taken to be the caller's still.
// Returns GP_STEP_LOST where no such call is found. Signals: safe. Cost: bounded, ~1 us.
enum gp_step gp_step_leaf(gp_frame_t *frame, gp_stack_memory_t *stack);

// Could the call before the return address `ra` have entered the function that starts at `start`?
// True where that is unknown: a call through a register. Signals: safe.
bool gp_call_may_enter(uintptr_t ra, uintptr_t start);
