// Register-preserving stubs around glibc's context functions. They jump, not call: the saved context is the caller's own.
#if defined(__x86_64__)
    .text

// One stub: `name`, with its target context in register `target`.
    .macro stub name, target, real
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    movq prof_coro_active@GOTPCREL(%rip), %rax
    cmpl $0, (%rax)
    jne 1f
    cmpq $0, gp_ucontext_real_swap(%rip)
    je 1f
    jmp *\real(%rip)
1:  pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    cmpq $0, gp_ucontext_real_swap(%rip)
    jne 2f
    call gp_ucontext_resolve
2:  movq prof_coro_active@GOTPCREL(%rip), %rax
    cmpl $0, (%rax)
    je 3f
    movq \target(%rsp), %rdi
    // A gp_park_t of the caller: pc, sp behind the return address, fp.
    subq $32, %rsp
    .cfi_adjust_cfa_offset 32
    movq 56(%rsp), %rax
    movq %rax, (%rsp)
    leaq 64(%rsp), %rax
    movq %rax, 8(%rsp)
    movq %rbp, 16(%rsp)
    movq %rsp, %rsi
    call gp_ucontext_switch
    addq $32, %rsp
    .cfi_adjust_cfa_offset -32
3:  addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *\real(%rip)
    .cfi_endproc
    .size \name, . - \name
    .endm

    stub swapcontext, 8, gp_ucontext_real_swap
    stub setcontext, 16, gp_ucontext_real_set

// An entry function returned here. %rbx points to the saved uc_link, as __start_context expects.
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

    .data
    .p2align 3
    .globl gp_ucontext_real_swap, gp_ucontext_real_set, gp_ucontext_start_context
    .hidden gp_ucontext_real_swap, gp_ucontext_real_set, gp_ucontext_start_context
gp_ucontext_real_swap: .quad 0
gp_ucontext_real_set: .quad 0
gp_ucontext_start_context: .quad 0
#endif
    .section .note.GNU-stack, "", @progbits
