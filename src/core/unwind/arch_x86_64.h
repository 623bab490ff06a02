// SPDX-License-Identifier: MIT
// The walker's knowledge of x86-64. Source: System V psABI, "DWARF Register Number Mapping".
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GP_REG_FP = 6, // rbp
    GP_REG_SP = 7, // rsp
    GP_REG_RA = 16,
    GP_REG_PC = 16,
    GP_REG_COUNT = 17,
    GP_REG_EH_DATA = 0,    // saved by functions that end in __builtin_eh_return only
    GP_RA_IN_REGISTER = 0, // a call leaves the return address on the stack
    GP_RECORD_AT_SP = 0,   // a frame record stands at the upper end of its frame
};

#define GP_ADDR_BITS 47

// A cache key of 48 bits. The row of a return address is not that of an interrupted pc at the same
// place: the first may be a forged stack bottom, the second is always real.
static inline uint64_t gp_arch_key(uintptr_t lookup_pc, bool is_return)
{
    return (uint64_t)lookup_pc << 1 | is_return;
}

// The key of a block of code, in place of that of an interrupted pc at its last byte.
static inline uint64_t gp_arch_block_key(uintptr_t last)
{
    return gp_arch_key(last, false);
}

static inline uintptr_t gp_arch_strip(uintptr_t pc)
{
    return pc;
}

// Does an `ff /2` call (with an optional REX) end right before `end`? Returns its length.
static inline bool gp_arch_indirect_call(const uint8_t *modrm, size_t len)
{
    static const uint8_t disp_len[4] = {0, 1, 4, 0};
    unsigned mod = modrm[0] >> 6, rm = modrm[0] & 7;
    if ((modrm[0] >> 3 & 7) != 2)
        return false;
    size_t want = 1 + disp_len[mod];
    if (mod != 3 && rm == 4) {
        want++;
        want += (mod == 0 && len > 1 && (modrm[1] & 7) == 5) ? 4 : 0;
    } else if (mod == 0 && rm == 5) {
        want += 4;
    }
    return want == len;
}

// Does a call instruction end at `pc`? Reads up to 7 bytes before it, never below `lo`.
static inline bool gp_arch_follows_call(uintptr_t pc, uintptr_t lo)
{
    const uint8_t *code = (const uint8_t *)pc;
    size_t room = pc - lo;
    if (room >= 5 && code[-5] == 0xe8)
        return true;
    for (size_t len = 2; len <= 7 && len <= room; len++)
        if (code[-(ptrdiff_t)len] == 0xff && gp_arch_indirect_call(code - len + 1, len - 1))
            return true;
    return false;
}

// The length of the instruction at `pc`, if it is a nop as assemblers pad with; else 0. Reads nothing from `hi` on.
static inline size_t gp_arch_nop(uintptr_t pc, uintptr_t hi)
{
    enum { LONGEST = 15, FORM = 0x38 };
    static const uint8_t by_mod[] = {3, 4, 7}; // 0f 1f, ModRM, displacement
    const uint8_t *code = (const uint8_t *)pc;
    size_t room = hi - pc < LONGEST ? hi - pc : LONGEST, i = 0;
    while (i < room && (code[i] == 0x66 || code[i] == 0x2e)) // operand size, %cs
        i++;
    if (i < room && code[i] == 0x90)
        return i + 1;
    if (i + 3 > room || code[i] != 0x0f || code[i + 1] != 0x1f || (code[i + 2] & FORM) != 0 || code[i + 2] >> 6 == 3)
        return 0;
    size_t len = i + by_mod[code[i + 2] >> 6] + ((code[i + 2] & 7) == 4);
    return len <= room ? len : 0;
}
