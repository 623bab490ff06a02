// SPDX-License-Identifier: MIT
// The one place that chooses the processor for all rooms above; ../core/unwind/arch.h has the walker's knowledge.
//
// Every variant defines: GP_ARCH_* numbers and attributes; gp_arch_counter() and whether it is constant; copies, words,
// and additions in as few instructions as there are; a system call; a function that is called on another stack; and
// where an interrupted context, or a caller, stands. Signals: all of it is safe.
#pragma once

#if defined(__x86_64__)
#include "base/arch_x86_64.h"
#elif defined(__aarch64__)
#include "base/arch_aarch64.h"
#else
#error "greenprof runs on x86-64 and aarch64 only"
#endif
