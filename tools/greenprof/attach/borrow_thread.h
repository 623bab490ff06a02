// SPDX-License-Identifier: MIT
// A thread in another process, to call functions there: by it `greenprof attach` loads the core.
//
// Model: one of the program's threads is stopped (PTRACE_SEIZE, PTRACE_INTERRUPT); the others run on. The borrowed
// thread must be at a place where a thread can be created (safe_point.h). On a stack of its own, every signal but those
// of faults blocked, it creates one more, and is let go at once: all its registers, the extended state too, and its
// mask are as they were. An interrupted system call is begun again, also where the kernel ends it with EINTR. The new
// thread makes the calls. So nothing of the program's ever waits for the loader, or for what it runs as a library
// starts: another thread that is in it may wait for any thread of the program's.
//
// Should even creating it wait for a lock that another thread has, the thread is let go after a second.
//
// x86-64 only. Needs what PTRACE_SEIZE needs: the same user and no protection against it, or CAP_SYS_PTRACE.
// Source: ptrace(2), signal(7) "Interruption of system calls and library functions by stop signals".
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target_modules.h"

typedef struct gp_borrow_thread gp_borrow_thread_t;

// Have a thread created in the process, as soon as another may be borrowed for it.
//   modules:    of the process; they stay there until the thread is given back.
//   is_carried: the core has to be carried there, which a filter of system calls must let through.
//   subject:    for messages.
// Returns NULL where there is none, with a message.
gp_borrow_thread_t *gp_borrow(const gp_target_modules_t *modules, bool is_carried, const char *subject);

// Let the thread end: at once where it waits for the loader's lock, else when its call is over. Returns 0 or a negative
// errno value (-ESRCH: it has ended).
int gp_borrow_thread_return(gp_borrow_thread_t *borrowed);

// Copy a text, or bytes, into its memory, where they stay until the thread is given back; the room of a text is one's
// own, that of bytes, GP_BORROWED_BYTES, is for one use at a time. Return the address, 0 = no room.
enum { GP_BORROWED_BYTES = 1 << 16 };
uint64_t gp_borrow_thread_text(gp_borrow_thread_t *borrowed, const char *text);
uint64_t gp_borrow_thread_bytes(gp_borrow_thread_t *borrowed, const void *bytes, size_t size);

// Read a text of its memory. Returns 0 or a negative errno value.
int gp_borrow_thread_read_text(const gp_borrow_thread_t *borrowed, uint64_t address, char *text, size_t size);

// Call a function with two arguments. Returns 0, -EFAULT where the call did not come back in order, -ETIMEDOUT,
// -ESRCH.
int gp_borrow_thread_call(gp_borrow_thread_t *borrowed, uint64_t function, uint64_t a, uint64_t b, uint64_t *result);

// Make a system call. Returns 0 and the kernel's result, a negative errno value among them; or -EFAULT, -ETIMEDOUT,
// -ESRCH where it was not made.
int gp_borrow_thread_system_call(gp_borrow_thread_t *borrowed, long number, const uint64_t arguments[6],
                                 int64_t *result);
