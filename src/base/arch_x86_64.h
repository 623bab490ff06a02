// SPDX-License-Identifier: MIT
// See arch.h. Source: System V psABI; AMD64 Architecture Programmer's Manual; syscall(2).
#pragma once

#include <cpuid.h>
#include <elf.h>
#include <linux/audit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <x86intrin.h>

// A function that may be entered with a stack pointer which is not aligned as the ABI has it.
#define GP_ARCH_ALIGNS __attribute__((force_align_arg_pointer))

enum {
    GP_ARCH_ELF_MACHINE = EM_X86_64,
    GP_ARCH_JUMP_SLOT = R_X86_64_JUMP_SLOT,
    GP_ARCH_GLOBAL_SLOT = R_X86_64_GLOB_DAT,
    GP_ARCH_PC_BELOW_STACK = 1,     // a routine that switches leaves its return address right below the caller's stack
    GP_ARCH_RESULT_IS_ARGUMENT = 1, // the place for an object that is returned: the first one
    GP_ARCH_RED_ZONE_BYTES = 128,
    GP_ARCH_RETURNS_BY_US = 1, // ../core/signal/restorer_x86_64.S is there
};
#define GP_ARCH_AUDIT ((uint32_t)AUDIT_ARCH_X86_64)

// The stack pointer of the caller of the function that this is used in, once it has returned there.
#define GP_ARCH_CALLER_SP() ((uintptr_t)((uintptr_t *)__builtin_frame_address(0) + 2))

// The return address in a frame record.
#define GP_ARCH_RETURN_OF(frame) ((frame)[1])

static inline uint64_t gp_arch_counter(void)
{
    return __rdtsc();
}

static inline bool gp_arch_counter_is_constant(void)
{
    unsigned eax, ebx, ecx, edx;
    // Source: AMD64 APM vol. 3, CPUID Fn8000_0007_EDX bit 8 (TscInvariant); the Intel SDM has the same bit.
    return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
}

static inline void gp_arch_copy_words(void *to, const void *from, size_t words)
{
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

static inline long gp_arch_call(long number, long a, long b, long c, long d, long e)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

// The same call with three arguments, made with the stack pointer at `sp`. All signals are blocked.
static inline long gp_arch_call_at(uintptr_t sp, long number, long a, long b, long c)
{
    long result = number;
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[sp], %%rsp\n\t"
                     "syscall\n\t"
                     "movq %%rbx, %%rsp"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), [sp] "r"(sp)
                     : "rbx", "rcx", "r11", "memory");
    return result;
}

// Call run(argument) on the stack that ends at `top`, of which nothing is in use. All signals are blocked.
static inline void gp_arch_run_on(void *top, void (*run)(void *), void *argument)
{
    register void *first __asm__("rdi") = argument;
    register void *target __asm__("rax") = (void *)(uintptr_t)run;
    // %rbx is callee-saved: it brings the stack pointer back.
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[top], %%rsp\n\t"
                     "call *%%rax\n\t"
                     "movq %%rbx, %%rsp"
                     : "+r"(first), "+r"(target)
                     : [top] "r"(top)
                     : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
                       "cc", "memory");
}

#ifndef __SANITIZE_THREAD__
// Compilers make two or three instructions of these where the word is atomic.
#define GP_ARCH_COMPARE(instruction, condition, word, value)                                                           \
    ({                                                                                                                 \
        bool is_so;                                                                                                    \
        __asm__(instruction " %2, %1" : "=@cc" condition(is_so) : "m"(*(word)), "qe"(value) : "cc");                   \
        is_so;                                                                                                         \
    })
#define GP_ARCH_IS(word, value)       GP_ARCH_COMPARE("cmpq", "e", word, value)
#define GP_ARCH_IS_BELOW(word, value) GP_ARCH_COMPARE("cmpq", "b", word, value)
#define GP_ARCH_IS_32(word, value)    GP_ARCH_COMPARE("cmpl", "e", word, value)
#define GP_ARCH_IS_8(word, value)     GP_ARCH_COMPARE("cmpb", "e", word, value)
#define GP_ARCH_IS_TRUE(word)         GP_ARCH_COMPARE("cmpb", "ne", word, (uint8_t)0)
#define GP_ARCH_ADD(word, amount)     __asm__("addq %1, %0" : "+m"(*(word)) : "re"(amount) : "cc")
#define GP_ARCH_STORE_SP(word)        __asm__ volatile("movq %%rsp, %0" : "=m"(*(word)) : : "memory")
#endif

// Whole for the thread's own signal handlers.
static inline void gp_arch_add(uint64_t *counter, uint64_t amount)
{
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(amount) : "cc");
}

// The builtin is one for reading, unless told of the processor.
static inline void gp_arch_expect_write(const unsigned char *at)
{
    __asm__ volatile("prefetchw %0" : : "m"(*at));
}

// The end of the present segment of a split stack; 0 = the thread has none. Source: glibc, sysdeps/x86_64/nptl/tls.h,
// __private_ss; gcc, libgcc/config/i386/morestack.S.
static inline uintptr_t gp_arch_split_stack_end(void)
{
    uintptr_t end;
    __asm__("movq %%fs:0x70, %0" : "=r"(end));
    return end;
}

static inline uintptr_t gp_arch_stack_pointer(void)
{
    uintptr_t sp;
    __asm__("movq %%rsp, %0" : "=r"(sp));
    return sp;
}

static inline uintptr_t gp_arch_sp(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

static inline uintptr_t gp_arch_pc(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
}

// Where a function that setcontext() enters has its return address.
static inline uintptr_t *gp_arch_return_slot(ucontext_t *context)
{
    return (uintptr_t *)gp_arch_sp(context); // NOLINT(performance-no-int-to-ptr)
}

// Does the processor keep return addresses elsewhere as well, so that they may not be changed? No program's does yet.
static inline bool gp_arch_guards_returns(void)
{
    return false;
}

// clang-format off
// Rows of filter_calls.h that other processors have otherwise.
#define GP_ARCH_FILTER_CALLS(CALL) \
    CALL(ALLOWED, poll, GP_CALL_POINTER, 1, 0, 0, 0, 0) \
    CALL(SPARED, access, GP_CALL_POINTER, 0, 0, 0, 0, 0) \
    CALL(ALLOWED, readlink, GP_CALL_POINTER, GP_CALL_POINTER, GP_CALL_BYTES, 0, 0, 0) \
    CALL(SPARED, rename, GP_CALL_POINTER, GP_CALL_POINTER, 0, 0, 0, 0) \
    CALL(SPARED, unlink, GP_CALL_POINTER, 0, 0, 0, 0, 0)
// clang-format on
