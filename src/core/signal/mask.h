// SPDX-License-Identifier: MIT
// Signal masks in force, beside those that the program believes in.
//
// A thread that blocks the sampling signal would not be sampled, so the program's calls leave it unblocked
// (src/core/process/host_mask.c); what it believes is kept here.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The C library's own signals, which no program may block or handle; musl has one more.
#ifdef __GLIBC__
enum { GP_INTERNAL_FIRST = 32, GP_INTERNAL_LAST = 33 };
#else
enum { GP_INTERNAL_FIRST = 32, GP_INTERNAL_LAST = 34 };
#endif

// Signals that the calling thread believes to block and does not: bit n - 1 for signal n, as the kernel has them.
extern __thread uint64_t gp_mask_believed __attribute__((tls_model("initial-exec")));

// Change the calling thread's mask, for greenprof's own purposes: glibc's pthread_sigmask() is ours. `old` may be NULL.
static inline void gp_mask_change(int how, const sigset_t *set, sigset_t *old)
{
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, set, old != NULL ? &before : NULL, sizeof(before));
    if (old != NULL) {
        sigemptyset(old);
        memcpy(old, &before, sizeof(before));
    }
}
