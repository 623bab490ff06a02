// SPDX-License-Identifier: MIT
// gp_transfer_go: see transfer.h. The stack pointer is at a gp_transfer_t. Behind it all registers are as behind the
// program's own system call. The rules describe this to both unwinders here: the program's, and the one that cancels
// a thread.
    .macro GP_AT register, offset // DW_CFA_expression: breg7 + offset, as two bytes of signed LEB128
    .cfi_escape 0x10, \register, 3, 0x77, ((\offset) & 0x7f) | 0x80, (\offset) >> 7
    .endm
    .macro GP_SAVED pushed // bytes
    .cfi_escape 0x0f, 4, 0x77, ((SP + \pushed) & 0x7f) | 0x80, (SP + \pushed) >> 7, 0x06
    GP_AT 5, FIRST + 8 + \pushed
    GP_AT 4, FIRST + 16 + \pushed
    GP_AT 1, FIRST + 24 + \pushed
    GP_AT 10, FIRST + 32 + \pushed
    GP_AT 8, FIRST + 40 + \pushed
    GP_AT 9, FIRST + 48 + \pushed
    GP_AT 16, RESUME + \pushed
    .endm
    .macro GP_LOAD from // a gp_transfer_call_t
    movq \from + 8(%rsp), %rdi
    movq \from + 16(%rsp), %rsi
    movq \from + 24(%rsp), %rdx
    movq \from + 32(%rsp), %r10
    movq \from + 40(%rsp), %r8
    movq \from + 48(%rsp), %r9
    .endm

    .set PART, 8
    .set RESUME, 16
    .set SP, 24
    .set FLAGS, 32
    .set NUMBER, 40
    .set FIRST, 48
    .set NEXT, 104

    .text
    .p2align 4
    .cfi_startproc
    .cfi_signal_frame
    GP_SAVED 0
    nop
    .globl gp_transfer_go
    .hidden gp_transfer_go
    .type gp_transfer_go, @function
gp_transfer_go:
    syscall
    .globl gp_transfer_gone
    .hidden gp_transfer_gone
gp_transfer_gone:
    testq %rax, %rax
    jle 1f
    addq %rax, (%rsp)
    cmpq %rax, PART(%rsp)
    jne 1f
    leaq gp_transfer_gone(%rip), %r11
    cmpq %r11, %rcx // else a handler of the program's was here
    jne 1f
    movq $0, PART(%rsp)
    movq NEXT(%rsp), %rax
    movq %rax, NUMBER(%rsp)
    GP_LOAD NEXT
    jmp gp_transfer_go
1:  GP_LOAD FIRST
    movq RESUME(%rsp), %rcx
    movq FLAGS(%rsp), %r11
    movq (%rsp), %rax
    pushq %r11
    GP_SAVED 8
    popfq
    GP_SAVED 0
    movq SP(%rsp), %rsp
    .cfi_def_cfa 7, 0
    .cfi_register 16, 2
    .irp register, 5, 4, 1, 10, 8, 9
    .cfi_same_value \register
    .endr
    jmp *%rcx
    .cfi_endproc
    .size gp_transfer_go, . - gp_transfer_go
    .section .note.GNU-stack, "", @progbits
