// SPDX-License-Identifier: MIT
// Symbols as hand-written assembly has them: with and without a size, labels within, gaps between.
    .text
    .globl sized_asm, unsized_asm, after_gap
    .p2align 4
    .type sized_asm, @function
sized_asm:
    nop
inner_label:
    nop
    nop
    ret
    .size sized_asm, .-sized_asm
gap_behind_sized:                   // a local label: code of its own, without a size
    nop
    nop
    .p2align 4
    .type unsized_asm, @function
unsized_asm:
    nop
    nop
    ret
    .p2align 4
    .type outer_asm, @function
outer_asm:
    nop
    .type nested_asm, @function
nested_asm:
    nop
    nop
    .size nested_asm, .-nested_asm
    nop
    .size outer_asm, .-outer_asm
    .p2align 4
    .type alias_weak, @function
    .weak alias_weak
    .globl alias_strong, __alias_hidden
alias_weak:
alias_strong:
__alias_hidden:
    nop
    ret
    .size alias_weak, .-alias_weak
    .size alias_strong, .-alias_strong
    .size __alias_hidden, .-__alias_hidden
    .type alias_strong, @function
    .type __alias_hidden, @function

    .section .text.named_gap, "ax", @progbits
    .type in_other_section, @function
    .globl in_other_section
in_other_section:
    nop
    nop
    .size in_other_section, 1       // one byte of code that no symbol covers
after_gap:

    .section .text.labels, "ax", @progbits // as nasm, x264 and dav1d have them: labels that no .L hides
    nop
    .type labelled_function, @function
    .globl labelled_function, labelled_code, labelled_frame
labelled_function:
    nop
labelled_function.loop:
    nop
odd_label:
    nop
    ret
labelled_code:                      // global, without a type
    nop
labelled_code.end:
    ret
    .type labelled_frame, @function
labelled_frame:
    .cfi_startproc
labelled_frame.skip:
    nop
frame_loop:
    nop
    ret
    .cfi_endproc
behind_frame:                       // .eh_frame knows the function's end: code of its own
    nop
behind_frame.loop:
    nop
another_label:
    nop

    .section .note.GNU-stack, "", @progbits
