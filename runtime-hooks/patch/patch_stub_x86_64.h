// GP_PATCH_STUB name, hook: what calls of a patched function go to; see hooks.h and ../interpose/stub_x86_64.h.
//
// What a call may change is free to be used: the functions that are patched are assembly, or call what their compiler did not
// see, so that no caller was compiled to know better.
#include "interpose/stub_x86_64.h"

    .macro GP_PATCH_STUB name, hook
    .text
    .globl gp_patch_\name
    .hidden gp_patch_\name
    .type gp_patch_\name, @function
    .p2align 4
gp_patch_\name:
    .cfi_startproc
    endbr64
    movq prof_coro_active@GOTPCREL(%rip), %r11
    cmpl $0, (%r11)
    jne 1f
    jmp *gp_patch_real_\name(%rip)
1:  GP_SAVE_ARGUMENTS
    GP_CALL_HOOK \hook
    GP_RESTORE_ARGUMENTS
    jmp *gp_patch_real_\name(%rip)
    .cfi_endproc
    .size gp_patch_\name, . - gp_patch_\name
    .data
    .p2align 3
    .globl gp_patch_real_\name
    .hidden gp_patch_real_\name
gp_patch_real_\name: .quad 0
    .section .note.GNU-stack, "", @progbits
    .endm
