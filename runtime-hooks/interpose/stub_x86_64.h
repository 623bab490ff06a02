// GP_STUB name, hook: a register-preserving stub, for assembly sources. See interpose.h for the model.
//
// %r11 is the one register that a call through a PLT may change and that no function takes an argument in.
    .macro GP_SAVE_ARGUMENTS
    pushq %r9
    .cfi_adjust_cfa_offset 8
    pushq %r8
    .cfi_adjust_cfa_offset 8
    pushq %rcx
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    subq $24, %rsp
    .cfi_adjust_cfa_offset 24
    .endm

    .macro GP_RESTORE_ARGUMENTS
    addq $24, %rsp
    .cfi_adjust_cfa_offset -24
    popq %rdi
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rcx
    .cfi_adjust_cfa_offset -8
    popq %r8
    .cfi_adjust_cfa_offset -8
    popq %r9
    .cfi_adjust_cfa_offset -8
    .endm

// With the arguments saved: where the stub's caller goes on, a gp_park_t at the stack pointer.
    .macro GP_MAKE_PARK
    movq 72(%rsp), %rax
    movq %rax, (%rsp) // pc
    leaq 80(%rsp), %rax
    movq %rax, 8(%rsp) // sp behind the return address
    movq %rbp, 16(%rsp)
    .endm

// With the arguments saved: call hook(arguments, park of the stub's caller).
    .macro GP_CALL_HOOK hook
    GP_MAKE_PARK
    leaq 24(%rsp), %rdi
    movq %rsp, %rsi
    call \hook
    .endm

    .macro GP_STUB name, hook
    .text
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    movq prof_coro_active@GOTPCREL(%rip), %r11
    cmpl $0, (%r11)
    jne 1f
    jmp *gp_real_\name(%rip)
1:  GP_SAVE_ARGUMENTS
    GP_CALL_HOOK \hook
    GP_RESTORE_ARGUMENTS
    jmp *gp_real_\name(%rip)
    .cfi_endproc
    .size \name, . - \name

    // Stands in for the original until it is known, and where it depends on the caller.
    .type gp_resolve_\name, @function
gp_resolve_\name:
    .cfi_startproc
    GP_SAVE_ARGUMENTS
    leaq gp_real_\name(%rip), %rdi
    leaq gp_name_\name(%rip), %rsi
    movq 72(%rsp), %rdx
    call gp_interpose_resolve
    movq %rax, %r11
    GP_RESTORE_ARGUMENTS
    jmp *%r11
    .cfi_endproc
    .size gp_resolve_\name, . - gp_resolve_\name

    .data
    .p2align 3
gp_real_\name: .quad gp_resolve_\name
    .section .rodata
gp_name_\name: .asciz "\name"
    .endm
