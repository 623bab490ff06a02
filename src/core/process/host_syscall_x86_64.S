// SPDX-License-Identifier: MIT
// The host's syscall(): as glibc's, but for the number, which it keeps where ../signal/call_number.c finds it. Nothing is
// pushed: a system call may return on another stack, or twice. The numbers of exec go by way of exec_number.h, which has
// the same arguments.
    .text
    .hidden gp_process_exec_number
    .globl syscall
    .type syscall, @function
    .p2align 4
syscall:
    .cfi_startproc
    endbr64
    cmpq $59, %rdi // execve
    je gp_process_exec_number
    cmpq $322, %rdi // execveat
    je gp_process_exec_number
    movq %rdi, -8(%rsp)
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    movq -8(%rsp), %rax
    syscall
    cmpq $-4095, %rax
    jae 1f
    ret
1:  pushq %rax
    .cfi_adjust_cfa_offset 8
    call *__errno_location@GOTPCREL(%rip)
    popq %rdx
    .cfi_adjust_cfa_offset -8
    negl %edx
    movl %edx, (%rax)
    movq $-1, %rax
    ret
    .cfi_endproc
    .size syscall, . - syscall
    .section .note.GNU-stack, "", @progbits
