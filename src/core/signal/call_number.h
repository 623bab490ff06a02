// SPDX-License-Identifier: MIT
// Which system call a context has just left. On aarch64 its register still says so. On x86-64 the instruction has
// overwritten the number, so it is proved by the code before it, or not known.
//
// Model, x86-64: the function's code is decoded from its beginning, so that instructions and jumps are what they are.
// From the last jump target up to the system call there is one way. Along it the number is followed to its source: a
// constant; a register or a word of the stack that still has it; or an argument from the caller, where the same is done
// again (glibc's cancellable calls since 2.41, three calls deep). A number that cannot be followed so is not known.
// Code without unwind rows has no known beginning: there the instruction before must say it.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

// Returns whether the number is known. The context is right behind the instruction (aarch64 looks itself). Signals:
// safe. Cost: ~1 us, 20 us at most.
bool gp_call_number(const ucontext_t *context, uint64_t *number);

// The number that the code right before seems to say, for what needs no proof; UINT64_MAX = it says none. Signals:
// safe. Cost: ~2 ns.
uint64_t gp_call_number_hint(const ucontext_t *context);
