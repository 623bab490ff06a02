// SPDX-License-Identifier: MIT
// No unwind information, as most switch routines.
    .text
    .globl shape_swap
    .type shape_swap, @function
shape_swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size shape_swap, . - shape_swap
    .section .note.GNU-stack, "", @progbits
