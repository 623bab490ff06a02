// SPDX-License-Identifier: MIT
// Two units with code, one of which has a function whose name is in the other, where a type has a function in it.
    .text
leads_begin:
    nop
    nop
    nop
    ret
leads_end:
led_to_begin:
    nop
    nop
    nop
    ret
led_to_end:
method_begin:
    nop
    ret
method_end:

    .section .debug_abbrev, "", @progbits
    .uleb128 1                          // compile unit with children: name, low and high program counter
    .uleb128 0x11
    .byte 1
    .uleb128 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 2                          // function: low and high program counter, abstract origin in any unit
    .uleb128 0x2e
    .byte 0
    .uleb128 0x11, 0x01, 0x12, 0x06, 0x31, 0x10, 0, 0
    .uleb128 3                          // function: name, line, low and high program counter
    .uleb128 0x2e
    .byte 0
    .uleb128 0x03, 0x08, 0x3b, 0x0b, 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 4                          // structure with children: sibling in this unit, name
    .uleb128 0x13
    .byte 1
    .uleb128 0x01, 0x13, 0x03, 0x08, 0, 0
    .uleb128 0

    .section .debug_info, "", @progbits
info:
    .long leads_unit_end - leads_unit
leads_unit:
    .short 4                            // version
    .long 0                             // abbreviations
    .byte 8                             // bytes of an address
    .uleb128 1
    .asciz "leads.c"
    .quad leads_begin
    .long leads_end - leads_begin
    .uleb128 2
    .quad leads_begin
    .long leads_end - leads_begin
    .long function - info
    .uleb128 0
leads_unit_end:
led_to_header:
    .long led_to_unit_end - led_to_unit
led_to_unit:
    .short 4
    .long 0
    .byte 8
    .uleb128 1
    .asciz "led_to.c"
    .quad led_to_begin
    .long method_end - led_to_begin
function:
    .uleb128 3
    .asciz "led_to"
    .byte 42
    .quad led_to_begin
    .long led_to_end - led_to_begin
    .uleb128 4
    .long behind_type - led_to_header
    .asciz "type"
    .uleb128 3
    .asciz "method"
    .byte 43
    .quad method_begin
    .long method_end - method_begin
    .uleb128 0
behind_type:
    .uleb128 0
led_to_unit_end:
    .section .note.GNU-stack, "", @progbits
