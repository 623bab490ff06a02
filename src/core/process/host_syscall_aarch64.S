// SPDX-License-Identifier: MIT
// The host's syscall(): see host_syscall_x86_64.S. The number is kept in its register by the kernel.
#include <sys/syscall.h>
    .section .rodata
    .p2align 3
// A bit each.
numbers:
    .set last, SYS_landlock_restrict_self
    .macro bits first, list:vararg
    .set word, 0
    .irp number, \list
    .if (\number >= \first) && (\number < \first + 64)
    .set word, word | (1 << (\number - \first))
    .endif
    .endr
    .quad word
    .endm
    .irp first, 0, 64, 128, 192, 256, 320, 384
    bits \first, SYS_rt_sigaction, SYS_execve, SYS_execveat, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setgroups, SYS_setresuid, SYS_setresgid, SYS_capset, SYS_sigaltstack, SYS_prctl, SYS_unshare, SYS_setns, SYS_seccomp, SYS_landlock_restrict_self
    .endr
    .text
    .hidden gp_process_number
    .globl syscall
    .type syscall, %function
    .p2align 4
syscall:
    .cfi_startproc
    hint #34 // bti c
    cmp x0, #last
    b.hi 2f
    lsr x9, x0, #6
    adrp x10, numbers
    add x10, x10, :lo12:numbers
    ldr x9, [x10, x9, lsl #3]
    lsr x9, x9, x0
    tbnz x9, #0, 3f
2:  mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    cmn x0, #4095
    b.hs 1f
    ret
3:  b gp_process_number
1:  stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    str x0, [sp, #16]
    bl __errno_location
    ldr x1, [sp, #16]
    neg w1, w1
    str w1, [x0]
    ldp x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    mov x0, #-1
    ret
    .cfi_endproc
    .size syscall, . - syscall
    .section .note.GNU-stack, "", %progbits
