// SPDX-License-Identifier: MIT
// Preparations outside any handler.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE // Linux 5.14, glibc 2.35
#define MADV_POPULATE_WRITE 23
#endif

#include "unwind/debug_frame.h"
#include "unwind/module.h"
#include "unwind/row_cache.h"
#include "unwind/unwind.h"

enum { OWN_FRAMES = 32, OWN_STACK_BYTES = 64 << 10 };

static _Atomic unsigned refreshing;

int gp_unwind_init(void)
{
    gp_module_fixed_prepare();
    gp_unwind_refresh();
    return 0;
}

// The walk's own code and tables are there before a handler needs them.
static void prepare_walk_own_stack(void)
{
    uintptr_t words[33], frames[OWN_FRAMES];
    gp_unwind_regs_t registers;
    ucontext_t context;
    unsigned flags;
    if (getcontext(&context) != 0)
        return;
    gp_unwind_regs_from_ucontext(&registers, words, &context);
    registers.doubt = GP_UNWIND_DOUBTS; // where it ends is not known here
    gp_unwind_walk(&registers, registers.sp, registers.sp + OWN_STACK_BYTES, frames, OWN_FRAMES, &flags);
}

void gp_unwind_populate(void)
{
    static const uintptr_t page = 4096;
    uintptr_t lo = (uintptr_t)gp_row_cache & ~(page - 1), hi = (uintptr_t)&gp_row_cache[GP_CACHE_SLOTS + 1];
    int error = errno;
    madvise((void *)lo, hi - lo, MADV_POPULATE_WRITE);
    errno = error;
    prepare_walk_own_stack();
}

void gp_unwind_refresh(void)
{
    unsigned idle = 0;
    // The second caller may return: the first one is looking at the same modules.
    if (!atomic_compare_exchange_strong_explicit(&refreshing, &idle, 1, memory_order_acquire, memory_order_relaxed))
        return;
    gp_module_locate_prepare();
    gp_debug_frame_prepare();
    atomic_store_explicit(&refreshing, 0, memory_order_release);
}
