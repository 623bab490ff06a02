// SPDX-License-Identifier: MIT
// A thread of another process, borrowed to call functions there: what `greenprof attach` loads the core with.
//
// Model: one thread is stopped (PTRACE_SEIZE, PTRACE_INTERRUPT); the others run on. It must be at a place where the C
// library can be called: neither the loader, nor an allocator, nor what holds a lock of theirs is among its frames, and
// it is in no signal handler. It gets a stack of its own, every signal but those of faults blocked, and calls; all its
// registers, the extended state too, and its mask are as they were when it is let go. A system call that was
// interrupted is begun again, also those that the kernel ends with EINTR.
//
// x86-64 only. Needs what PTRACE_SEIZE needs: the same user and no protection against it, or CAP_SYS_PTRACE.
// Source: ptrace(2), signal(7) "Interruption of system calls and library functions by stop signals".
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target_modules.h"

typedef struct gp_borrowed gp_borrowed_t;

// Stop a thread that may be borrowed, as soon as there is one.
//   modules:    of the process.
//   is_carried: the core has to be carried there: what a filter of system calls must let through.
//   subject:    for messages.
// Returns NULL where there is none, with a message.
gp_borrowed_t *gp_borrow(const gp_target_modules_t *modules, bool is_carried, const char *subject);

// Let it go, as it was. Returns 0 or a negative errno value (-ESRCH: it has ended).
int gp_borrowed_return(gp_borrowed_t *borrowed);

// Copy a text into its memory, where it stays until the thread is let go. Returns its address, 0 = no room.
uint64_t gp_borrowed_text(gp_borrowed_t *borrowed, const char *text);

// Read a text of its memory. Returns 0 or a negative errno value.
int gp_borrowed_read_text(const gp_borrowed_t *borrowed, uint64_t address, char *text, size_t size);

// Call a function with two arguments. Returns 0, -EFAULT where the call did not come back in order, -ETIMEDOUT,
// -ESRCH.
int gp_borrowed_call(gp_borrowed_t *borrowed, uint64_t function, uint64_t a, uint64_t b, uint64_t *result);

// Make a system call. Returns 0 and the kernel's result, a negative errno value among them; or -EFAULT, -ETIMEDOUT,
// -ESRCH where it was not made.
int gp_borrowed_system_call(gp_borrowed_t *borrowed, long number, const uint64_t arguments[6], int64_t *result);
