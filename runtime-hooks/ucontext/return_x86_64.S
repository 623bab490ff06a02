// SPDX-License-Identifier: MIT
// An entry function returned here. %rbx points to the saved uc_link, as __start_context expects.
    .text
    .globl gp_ucontext_return
    .hidden gp_ucontext_return
    .type gp_ucontext_return, @function
    .p2align 4
    nop // unwinders look up the return address - 1
gp_ucontext_return:
    .cfi_startproc
    .cfi_undefined rip
    movq (%rbx), %rdi
    call gp_ucontext_ended
    jmp *gp_ucontext_start_context(%rip)
    .cfi_endproc
    .size gp_ucontext_return, . - gp_ucontext_return
    .section .note.GNU-stack, "", @progbits
