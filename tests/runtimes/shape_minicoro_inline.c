// SPDX-License-Identifier: MIT
// minicoro with its implementation in the program's own object, as most use it: its switch routine is inline assembly
// that no linker sees. Source: minicoro 0.2, x86-64.
#include <stdlib.h>

#include "shape_runtime.h"

typedef struct registers {
    void *rip, *rsp, *rbp, *rbx, *r12, *r13, *r14, *r15;
} registers_t;

typedef struct contexts {
    registers_t own, back;
} contexts_t;

void _mco_switch(registers_t *from, registers_t *to) __attribute__((visibility("hidden")));

__asm__(".text\n"
        ".globl _mco_switch\n"
        ".type _mco_switch, @function\n"
        ".hidden _mco_switch\n"
        "_mco_switch:\n"
        "  leaq 0x3d(%rip), %rax\n"
        "  movq %rax, (%rdi)\n"
        "  movq %rsp, 8(%rdi)\n"
        "  movq %rbp, 16(%rdi)\n"
        "  movq %rbx, 24(%rdi)\n"
        "  movq %r12, 32(%rdi)\n"
        "  movq %r13, 40(%rdi)\n"
        "  movq %r14, 48(%rdi)\n"
        "  movq %r15, 56(%rdi)\n"
        "  movq 56(%rsi), %r15\n"
        "  movq 48(%rsi), %r14\n"
        "  movq 40(%rsi), %r13\n"
        "  movq 32(%rsi), %r12\n"
        "  movq 24(%rsi), %rbx\n"
        "  movq 16(%rsi), %rbp\n"
        "  movq 8(%rsi), %rsp\n"
        "  jmpq *(%rsi)\n"
        "  ret\n"
        ".size _mco_switch, . - _mco_switch\n");

int mco_create(mco_coro **out, mco_desc *description)
{
    mco_coro *co = calloc(1, sizeof(*co));
    contexts_t *contexts = calloc(1, sizeof(*contexts));
    co->context = contexts;
    co->func = description->func;
    co->stack_size = description->stack_size;
    co->stack_base = malloc(co->stack_size);
    void **top = (void **)(((unsigned long)co->stack_base + co->stack_size) & ~15ul);
    *--top = 0; // no caller to return to
    contexts->own.rip = (void *)(unsigned long)co->func;
    contexts->own.rsp = top;
    *out = co;
    return 0;
}

int mco_resume(mco_coro *co)
{
    contexts_t *contexts = co->context;
    _mco_switch(&contexts->back, &contexts->own);
    return 0;
}

int mco_yield(mco_coro *co)
{
    contexts_t *contexts = co->context;
    _mco_switch(&contexts->own, &contexts->back);
    return 0;
}
