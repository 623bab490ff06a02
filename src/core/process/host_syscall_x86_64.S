// SPDX-License-Identifier: MIT
// The host's syscall(): as glibc's, but for the number, which it keeps where ../signal/call_number.c finds it. Nothing is
// pushed: a system call may return on another stack, or twice. Numbers of calls that greenprof makes way for go by way of
// exec_number.h, which has the same arguments.
    .section .rodata
    .p2align 3
// A bit each.
numbers:
    .set last, 446
    .macro bits first, list:vararg
    .set word, 0
    .irp number, \list
    .set word, word | (1 << (\number - \first))
    .endr
    .quad word
    .endm
    bits 0, 13, 59 // rt_sigaction, execve
    bits 64, 105, 106, 113, 114, 116, 117, 119, 126 // setuid, setgid, setreuid, setregid, setgroups, setresuid, setresgid, capset
    bits 128, 131, 157 // sigaltstack, prctl
    .quad 0
    bits 256, 272, 308, 317 // unshare, setns, seccomp
    bits 320, 322 // execveat
    bits 384, 446 // landlock_restrict_self
    .text
    .hidden gp_process_number
    .globl syscall
    .type syscall, @function
    .p2align 4
syscall:
    .cfi_startproc
    endbr64
    cmpq $last, %rdi
    ja 2f
    leaq numbers(%rip), %rax
    btq %rdi, (%rax)
    jc gp_process_number
2:  movq %rdi, -8(%rsp)
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
