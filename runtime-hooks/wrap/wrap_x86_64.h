// GP_WRAP name, register[, offset]: __wrap_NAME, a register-preserving stub that tells of a switch and jumps on to the
// real one. The target's stack pointer is in `register`, or in memory at `offset` from there.
#include "interpose/stub_x86_64.h"

    .macro GP_WRAP name, register, offset
    .text
    .globl __wrap_\name
    .type __wrap_\name, @function
    .p2align 4
__wrap_\name:
    .cfi_startproc
    endbr64
    movq gp_wrap_active(%rip), %r11
    cmpl $0, (%r11)
    jne 1f
    jmp __real_\name@PLT
1:  GP_SAVE_ARGUMENTS
    GP_MAKE_PARK
    .ifb \offset
    movq \register, %rdi
    .else
    movq \offset(\register), %rdi
    .endif
    movq %rsp, %rsi
    call gp_wrap_switch
    GP_RESTORE_ARGUMENTS
    jmp __real_\name@PLT
    .cfi_endproc
    .size __wrap_\name, . - __wrap_\name
    .endm
