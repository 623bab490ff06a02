// SPDX-License-Identifier: MIT
// void bare_switch(void **from, void *to): a stack switch as hand-written ones are, without a word for unwinders.
    .text
    .globl bare_switch
    .type bare_switch, @function
    .p2align 4
bare_switch:
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
    .size bare_switch, . - bare_switch
    .section .note.GNU-stack, "", @progbits
