// SPDX-License-Identifier: MIT
// See arch.h. Source: Procedure Call Standard for the Arm 64-bit Architecture (AAPCS64); Arm ARM, D13 (generic timer);
// syscall(2).
#pragma once

#include <elf.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define GP_ARCH_ALIGNS // the kernel and the processor see to it

enum {
    GP_ARCH_ELF_MACHINE = EM_AARCH64,
    GP_ARCH_JUMP_SLOT = R_AARCH64_JUMP_SLOT,
    GP_ARCH_GLOBAL_SLOT = R_AARCH64_GLOB_DAT,
    GP_ARCH_PC_BELOW_STACK = 0,     // a return address is in the link register
    GP_ARCH_RESULT_IS_ARGUMENT = 0, // has a register of its own
    GP_ARCH_RED_ZONE_BYTES = 0,
    GP_ARCH_RETURNS_BY_US = 0,
};
#define GP_ARCH_AUDIT ((uint32_t)AUDIT_ARCH_AARCH64)

// The stack pointer of the caller of the function that this is used in, once it has returned there. A frame record is
// at the lower end of its frame: it does not tell.
#define GP_ARCH_CALLER_SP() ((uintptr_t)__builtin_dwarf_cfa())

// The return address in a frame record, without its authentication code.
#define GP_ARCH_RETURN_OF(frame) ((frame)[1] & ((uintptr_t)-1 >> 16))

static inline uint64_t gp_arch_counter(void)
{
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
}

// By architecture. Its frequency, cntfrq_el0, is what the firmware says: gp_ticks_init() measures it instead.
static inline bool gp_arch_counter_is_constant(void)
{
    return true;
}

static inline void gp_arch_copy_words(void *to, const void *from, size_t words)
{
    volatile uint64_t *out = to; // or the compiler makes a call of it
    const uint64_t *in = from;
    for (size_t i = 0; i < words; i++)
        out[i] = in[i];
}

static inline long gp_arch_call(long number, long a, long b, long c, long d, long e)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "cc", "memory");
    return x0;
}

// The same call with three arguments, made with the stack pointer at `sp`. All signals are blocked.
static inline long gp_arch_call_at(uintptr_t sp, long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("mov x19, sp\n\t"
                     "mov sp, %[sp]\n\t"
                     "svc #0\n\t"
                     "mov sp, x19"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), [sp] "r"(sp)
                     : "x19", "cc", "memory");
    return x0;
}

// Call run(argument) on the stack that ends at `top`, of which nothing is in use. All signals are blocked.
static inline void gp_arch_run_on(void *top, void (*run)(void *), void *argument)
{
    register void *first __asm__("x0") = argument;
    // x19 is callee-saved: it brings the stack pointer back.
    __asm__ volatile("mov x19, sp\n\t"
                     "mov sp, %[top]\n\t"
                     "blr %[run]\n\t"
                     "mov sp, x19"
                     : "+r"(first)
                     : [top] "r"(top), [run] "r"(run)
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
                       "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",
                       "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
                       "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}

// Whole for the thread's own signal handlers.
static inline void gp_arch_add(uint64_t *counter, uint64_t amount)
{
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

static inline void gp_arch_expect_write(const unsigned char *at)
{
    __builtin_prefetch(at, 1);
}

// gcc makes no split stacks.
static inline uintptr_t gp_arch_split_stack_end(void)
{
    return 0;
}

static inline uintptr_t gp_arch_stack_pointer(void)
{
    uintptr_t sp;
    __asm__("mov %0, sp" : "=r"(sp));
    return sp;
}

static inline uintptr_t gp_arch_sp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.sp;
}

static inline uintptr_t gp_arch_pc(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.pc;
}

// Where a function that setcontext() enters has its return address.
static inline uintptr_t *gp_arch_return_slot(ucontext_t *context)
{
    return (uintptr_t *)&context->uc_mcontext.regs[30];
}

// Does the processor keep return addresses elsewhere as well, so that they may not be changed (GCS)? Source: Arm ARM,
// CHKFEAT, which is a hint to older ones.
static inline bool gp_arch_guards_returns(void)
{
    register uint64_t features __asm__("x16") = 1;
    __asm__("hint #40" : "+r"(features));
    return features == 0;
}

// clang-format off
// Rows of filter_calls.h that other processors have otherwise.
#define GP_ARCH_FILTER_CALLS(CALL) \
    CALL(ALLOWED, ppoll, GP_CALL_POINTER, 1, GP_CALL_POINTER, 0, 8, 0) \
    CALL(SPARED, faccessat, (uint64_t)AT_FDCWD, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(ALLOWED, readlinkat, (uint64_t)AT_FDCWD, GP_CALL_POINTER, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0)
// clang-format on
