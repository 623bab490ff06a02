// SPDX-License-Identifier: MIT
// The walker's knowledge of aarch64. Source: DWARF for the Arm 64-bit Architecture (AADWARF64).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    GP_REG_FP = 29, // x29
    GP_REG_RA = 30, // x30, the link register
    GP_REG_SP = 31,
    GP_REG_PC = 32,
    GP_REG_COUNT = 33,
    GP_REG_EH_DATA = 0,    // saved by functions that end in __builtin_eh_return only
    GP_RA_IN_REGISTER = 1, // a leaf function may never store it
    GP_RECORD_AT_SP = 1,   // ... at the lower end, where the stack pointer is
};

#define GP_ADDR_BITS 48

// Instructions are 4-aligned, so return address - 1 never equals an interrupted pc: one key for both.
static inline uint64_t gp_arch_key(uintptr_t lookup_pc, bool is_return)
{
    (void)is_return;
    return (uint64_t)lookup_pc;
}

// The key of a block of code, whose last byte is at `last`: neither an instruction's nor one of a return address - 1.
static inline uint64_t gp_arch_block_key(uintptr_t last)
{
    return (uint64_t)last - 1;
}

// Drop a pointer authentication code (and top-byte tags): user addresses end below bit 48. Bit 55
// is never part of the code; where it is set this is no user address, and stays none.
static inline uintptr_t gp_arch_strip(uintptr_t pc)
{
    return pc >> 55 & 1 ? pc : pc & (((uintptr_t)1 << GP_ADDR_BITS) - 1);
}

// Does a BL, BLR or authenticated BLR end at `pc`?
static inline bool gp_arch_follows_call(uintptr_t pc, uintptr_t lo)
{
    uint32_t insn;
    if (pc % 4 != 0 || pc - lo < 4)
        return false;
    memcpy(&insn, (const void *)(pc - 4), sizeof insn);
    return (insn & 0xfc000000u) == 0x94000000u || (insn & 0xfffffc1fu) == 0xd63f0000u ||
           (insn & 0xfefff800u) == 0xd63f0800u;
}

// The length of the instruction at `pc`, if it is a nop; else 0. Reads nothing from `hi` on.
static inline size_t gp_arch_nop(uintptr_t pc, uintptr_t hi)
{
    uint32_t insn;
    if (pc % sizeof(insn) != 0 || hi - pc < sizeof(insn))
        return 0;
    memcpy(&insn, (const void *)pc, sizeof insn);
    return insn == 0xd503201fu ? sizeof(insn) : 0;
}
