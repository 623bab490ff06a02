// SPDX-License-Identifier: MIT
// gp_restart_restorer: see restart.h. At its beginning the stack pointer is at the ucontext, which gives the caller's
// registers: so say the rules, which are glibc's for its own.
// Source: glibc 2.36, sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c.
    .macro GP_SAVED register, offset // DW_CFA_expression: breg7 + offset, as two bytes of signed LEB128
    .cfi_escape 0x10, \register, 3, 0x77, (\offset & 0x7f) | 0x80, \offset >> 7
    .endm

    .section gp_thread_entry, "ax", @progbits // what has returned here was the program: ../coro/threads.h
    .p2align 4
    .cfi_startproc
    .cfi_signal_frame
    .cfi_escape 0x0f, 4, 0x77, (160 & 0x7f) | 0x80, 160 >> 7, 0x06 // the frame's address is the saved stack pointer
    GP_SAVED 8, 40
    GP_SAVED 9, 48
    GP_SAVED 10, 56
    GP_SAVED 11, 64
    GP_SAVED 12, 72
    GP_SAVED 13, 80
    GP_SAVED 14, 88
    GP_SAVED 15, 96
    GP_SAVED 5, 104
    GP_SAVED 4, 112
    GP_SAVED 6, 120
    GP_SAVED 3, 128
    GP_SAVED 1, 136
    GP_SAVED 0, 144
    GP_SAVED 2, 152
    GP_SAVED 7, 160
    GP_SAVED 16, 168
    nop // return addresses are looked up one byte before
    .globl gp_restart_restorer
    .hidden gp_restart_restorer
    .type gp_restart_restorer, @function
gp_restart_restorer:
    movq gp_thread_self@gottpoff(%rip), %rax
    movq %fs:(%rax), %rbp
    testq %rbp, %rbp
    jz 2f // not sampled: there is nothing to forget
    movq %rsp, %rbx
    movq (%rbp), %rax // host_stack.fresh
    testq %rax, %rax
    jz 1f
    // The stack below, which the handler has left, is not to be touched (host_stack.h): on to our own alternate stack,
    // without signals until the return, which restores the mask. Nothing walks from there.
    movl $2, %edi // SIG_SETMASK
    leaq all_signals(%rip), %rsi
    xorl %edx, %edx
    movl $8, %r10d
    movl $14, %eax // rt_sigprocmask
    syscall
    movq (%rbp), %rsp
1:  movq %rbx, %rdi
    andq $-16, %rsp // no more than it is, but in emulators
    call gp_host_stack_return
    movq %rbx, %rsp
2:  movl $15, %eax // rt_sigreturn
    syscall
    .cfi_endproc
    .size gp_restart_restorer, . - gp_restart_restorer
    .section .rodata
    .p2align 3
all_signals:
    .quad -1
    .section .note.GNU-stack, "", @progbits
