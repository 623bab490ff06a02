// SPDX-License-Identifier: MIT
// An entry function returned here. x19 is the saved uc_link, as __startcontext expects. Branches to where calls do not
// lead are returns: those need no landing pad (BTI).
    .text
    .globl gp_ucontext_return
    .hidden gp_ucontext_return
    .type gp_ucontext_return, %function
    .p2align 4
    nop // unwinders look up the return address - 1
gp_ucontext_return:
    .cfi_startproc
    .cfi_undefined x30
    mov x0, x19
    bl gp_ucontext_ended
    adrp x16, gp_ucontext_start_context
    ldr x16, [x16, :lo12:gp_ucontext_start_context]
    ret x16
    .cfi_endproc
    .size gp_ucontext_return, . - gp_ucontext_return
    .section .note.GNU-stack, "", %progbits
