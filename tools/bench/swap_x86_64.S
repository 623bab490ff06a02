// SPDX-License-Identifier: MIT
    .text
    .globl bench_swap
    .type bench_swap, @function
    .p2align 6
bench_swap:
    .cfi_startproc
    .irp register, rbp, rbx, r12, r13, r14, r15
    pushq %\register
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endr
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    .irp register, r15, r14, r13, r12, rbx, rbp
    popq %\register
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endr
    ret
    .cfi_endproc
    .size bench_swap, . - bench_swap
    .section .note.GNU-stack, "", @progbits
