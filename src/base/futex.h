// SPDX-License-Identifier: MIT
// Waiting for a word to change, and saying that it has: futex(2), within the process. Signals: safe.
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

//   operation: FUTEX_WAIT, FUTEX_WAKE; value: see there; timeout: relative, NULL = none
static inline long gp_futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

// Sleep while `*word` is `value`, for `limit_ns` at most; UINT64_MAX = no limit. May return early. Changes errno.
static inline void gp_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t limit_ns)
{
    struct timespec limit = {.tv_sec = (time_t)(limit_ns / 1000000000u), .tv_nsec = (long)(limit_ns % 1000000000u)};
    gp_futex(word, FUTEX_WAIT, value, limit_ns != UINT64_MAX ? &limit : NULL);
}

static inline void gp_futex_wake_all(_Atomic uint32_t *word)
{
    gp_futex(word, FUTEX_WAKE, INT_MAX, NULL);
}
