// SPDX-License-Identifier: MIT
// Functions with first instructions to be moved, one of each kind that refers to its own place or is long enough
// to matter, and functions never to be patched. All take two integers and return one.
//
// They have pages of their own: what is patched cannot be executed for a moment, and so nothing else on its page.
    .text
    .p2align 12

    .macro FUNCTION name
    .text
    .p2align 4
    .globl \name
    .type \name, @function
\name:
    .endm
    .macro END name
    .size \name, . - \name
    .endm

    FUNCTION fn_push // coro_transfer()
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    leaq 1(%rdi,%rsi,2), %rax
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    END fn_push

    FUNCTION fn_lea // jump_fcontext(): five bytes
    leaq -0x38(%rsp), %rsp
    stmxcsr (%rsp)
    movl (%rsp), %eax
    addq %rdi, %rax
    leaq 0x38(%rsp), %rsp
    ret
    END fn_lea

    FUNCTION fn_rip_lea // _mco_switch()
    leaq 1f(%rip), %rax
    movq %rax, -8(%rsp)
    jmpq *-8(%rsp)
    ud2
1:  leaq (%rdi,%rsi,4), %rax
    ret
    END fn_rip_lea

    FUNCTION fn_rip_load
    movq number(%rip), %rax
    addq %rdi, %rax
    ret
    END fn_rip_load

    FUNCTION fn_rip_immediate // an immediate behind the displacement
    cmpl $12345, number(%rip)
    sete %al
    movzbl %al, %eax
    addq %rsi, %rax
    ret
    END fn_rip_immediate

    FUNCTION fn_rip_byte
    cmpb $0x39, number(%rip)
    movzbl number+1(%rip), %eax
    ret
    END fn_rip_byte

    FUNCTION fn_branch // coro_create(): a short branch within five bytes, and one that is not taken
    testq %rsi, %rsi
    je 1f
    leaq 7(%rdi), %rax
    ret
1:  movq $-3, %rax
    ret
    END fn_branch

    FUNCTION fn_near_branch
    cmpq %rsi, %rdi
    {disp32} jb 1f
    movl $1, %eax
    ret
1:  movl $2, %eax
    ret
    END fn_near_branch

    FUNCTION fn_jump // a thunk
    {disp32} jmp 1f
    .skip 300, 0xcc
1:  leaq 3(%rsi,%rdi,8), %rax
    ret
    END fn_jump

    FUNCTION fn_canary // -fstack-protector
    endbr64
    movq %fs:0x28, %rax
    xorq %fs:0x28, %rax
    addq %rdi, %rax
    ret
    END fn_canary

    FUNCTION fn_sse
    movups (%rsp), %xmm0
    pxor %xmm0, %xmm0
    movq %xmm0, %rax
    addq %rsi, %rax
    ret
    END fn_sse

    FUNCTION fn_wide_immediate
    movabsq $0x123456789abcdef0, %rax
    addq %rdi, %rax
    ret
    END fn_wide_immediate

    FUNCTION fn_restart // jumps to its very start: it is called again
    cmpq $5, %rdi
    jae 1f
    incq %rdi
    jmp fn_restart
1:  movq %rdi, %rax
    ret
    END fn_restart

    FUNCTION fn_call // of what is not patched itself
    call 1f
    addq %rsi, %rax
    ret
1:  leaq 3(%rdi), %rax
    ret
    END fn_call

    // To be refused.
    FUNCTION no_short
    movl %edi, %eax
    ret
    END no_short
    .skip 16, 0xcc

    FUNCTION no_prefixed_call // as the compiler calls __tls_get_addr()
    .byte 0x66
    call fn_push
    ret
    END no_prefixed_call

    FUNCTION no_loop // jumps into what would be taken
    xorl %eax, %eax
1:  addq %rdi, %rax
    decq %rsi
    jg 1b
    ret
    END no_loop

    FUNCTION no_short_jump // ends before there is room
    jmp 1f
    .skip 32, 0xcc
1:  ret
    END no_short_jump

    FUNCTION no_vex
    vpxor %xmm0, %xmm0, %xmm0
    movl %edi, %eax
    ret
    END no_vex

    FUNCTION no_indirect
    movq %rdi, %rax
    jmpq *(%rsp)
    END no_indirect

    FUNCTION no_system_call
    movl $39, %eax
    .byte 0x0f, 0x05 // syscall
    ret
    END no_system_call

    FUNCTION no_loop_instruction
    movl %esi, %ecx
1:  loop 1b
    xorl %eax, %eax
    ret
    END no_loop_instruction

    .text
    .p2align 12

    .section .rodata
    .p2align 3
number: .quad 12345
    .section .note.GNU-stack, "", @progbits
