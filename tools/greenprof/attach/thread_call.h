// SPDX-License-Identifier: MIT
// A thread of another process, stopped by ptrace(2) and made to call functions there.
//
// Model: gp_thread_call_save() at the stop, calls, gp_thread_call_restore(). A call returns to address 0, and that
// fault is its end. A call that waits for a lock for too long is given up, as the lock's holder may wait for this
// thread: it is stopped in the middle of the call. A call without the processor for so long is waited for.
//
// x86-64 only. Source: ptrace(2).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

enum { GP_THREAD_CALL_STATE_BYTES = 65536 }; // of the extended registers, at most

typedef struct gp_thread_call {
    pid_t tid;
    uint64_t syscall_at; // a system call instruction in its C library
    uint64_t top;        // where a call finds its return address: 8 below a multiple of 16
    uint64_t limit_ns;   // for a call that waits for a lock; computing, or reading a file, it has six times as long
    pid_t made;          // the thread that the latest call has made, stopped by us, too; 0 = none
    struct user_regs_struct saved;
    unsigned char state[GP_THREAD_CALL_STATE_BYTES];
    size_t state_size;
    uint64_t mask;
} gp_thread_call_t;

// Save the thread's state, and restore it. Save returns whether the state could be read.
bool gp_thread_call_save(gp_thread_call_t *call);
void gp_thread_call_restore(const gp_thread_call_t *call);

// Let the thread run until a system call of this number is over, and note its state. Returns 0 or a negative errno
// value.
int gp_thread_call_until(gp_thread_call_t *call, long number);

// Call a function with three arguments. Returns 0, -EFAULT where the call did not come back in order,
// -ETIMEDOUT (it is stopped in the middle), -ESRCH.
int gp_thread_call_function(gp_thread_call_t *call, uint64_t function, const uint64_t arguments[3], uint64_t *result);

// Make a system call. Returns 0 and the kernel's result, a negative errno value among them; or as above.
int gp_thread_call_system(gp_thread_call_t *call, long number, const uint64_t arguments[6], int64_t *result);

// Memory of its process. Return 0 or a negative errno value.
int gp_thread_call_write(const gp_thread_call_t *call, uint64_t address, const void *bytes, size_t size);
int gp_thread_call_read(const gp_thread_call_t *call, uint64_t address, void *bytes, size_t size);
