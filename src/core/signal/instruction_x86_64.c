// SPDX-License-Identifier: MIT
#include "signal/instruction.h"

#include <string.h>

enum { REX_W = 8, REX_R = 4, REX_B = 1, MOD_REGISTER = 3, RM_SIB = 4, NO_BASE = 5, SIB_SP = 0x24 };

typedef struct cursor {
    const uint8_t *at, *end;
    bool failed;
} cursor_t;

static uint8_t instruction_take(cursor_t *cursor)
{
    if (cursor->at < cursor->end)
        return *cursor->at++;
    cursor->failed = true;
    return 0;
}

static int64_t instruction_take_signed(cursor_t *cursor, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(cursor->end - cursor->at) < bytes) {
        cursor->failed = true;
        return 0;
    }
    memcpy(&value, cursor->at, bytes);
    cursor->at += bytes;
    unsigned spare = (unsigned)(64 - 8 * bytes);
    return bytes == 0 ? 0 : (int64_t)(value << spare) >> spare;
}

static bool instruction_in_set(const uint32_t set[8], unsigned opcode)
{
    return set[opcode / 32] >> opcode % 32 & 1;
}

// Bit n: opcode n has a ModRM byte.
static bool instruction_has_modrm(unsigned map, unsigned opcode)
{
    static const uint32_t one_byte[8] = {0x0f0f0f0f, 0x0f0f0f0f, 0, 0x00000a08, 0x0000ffff, 0, 0xff0f00c3, 0xc0c00000};
    static const uint32_t two_bytes[8] = {0xffffa00f, 0xfa00ffff, 0xffffffff, 0xff7fffff,
                                          0xffff0000, 0xfffff8f8, 0xffff00ff, 0xffffffff};
    return map == 0 ? instruction_in_set(one_byte, opcode) : map == 1 ? instruction_in_set(two_bytes, opcode) : true;
}

// Not of 64-bit mode are 06, 07, 0e and the like.
static bool instruction_is_known(unsigned map, unsigned opcode)
{
    static const uint32_t unknown[8] = {0xc0c040c0, 0x80808080, 0, 0x00000007, 0x04000004, 0, 0x00704000, 0x00000400};
    if (map == 0)
        return !instruction_in_set(unknown, opcode);
    return map > 1 || (opcode != 0x04 && opcode != 0x0a && opcode != 0x0c && opcode != 0x24 && opcode != 0x36);
}

static size_t instruction_immediate_of_one_byte(const gp_instruction_t *in)
{
    unsigned opcode = in->opcode;
    size_t full = in->is_narrow ? 2 : 4;
    if (opcode < 0x40)
        return (opcode & 7) == 4 ? 1 : (opcode & 7) == 5 ? full : 0;
    if ((opcode & 0xf0) == 0x70 || (opcode & 0xf8) == 0xb0 || (opcode >= 0xe0 && opcode <= 0xe7))
        return 1;
    if ((opcode & 0xf8) == 0xb8)
        return in->rex & REX_W ? 8 : full;
    switch (opcode) {
    case 0x6a:
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xa8:
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xcd:
    case 0xeb:
        return 1;
    case 0x68:
    case 0x69:
    case 0x81:
    case 0xa9:
    case 0xc7:
        return full;
    case 0xe8:
    case 0xe9:
        return 4;
    case 0xa0: // moffs
    case 0xa1:
    case 0xa2:
    case 0xa3:
        return 8;
    case 0xc2: // ret imm16
        return 2;
    case 0xc8: // enter
        return 3;
    case 0xf6:
        return (in->reg & 7) < 2 ? 1 : 0;
    case 0xf7:
        return (in->reg & 7) < 2 ? full : 0;
    default:
        return 0;
    }
}

static size_t instruction_immediate_bytes(const gp_instruction_t *in)
{
    unsigned opcode = in->opcode;
    if (in->map == 0)
        return instruction_immediate_of_one_byte(in);
    if (in->map != 1)
        return in->map == 3 ? 1 : 0;
    if ((opcode & 0xf0) == 0x80 && !in->is_vex) // jcc
        return 4;
    bool has_one = (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xa4 || opcode == 0xac || opcode == 0xba ||
                   opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6);
    return has_one ? 1 : 0;
}

static void instruction_read_modrm(cursor_t *cursor, gp_instruction_t *out)
{
    uint8_t modrm = instruction_take(cursor), sib = 0;
    unsigned rm = modrm & 7;
    out->has_modrm = true;
    out->mod = modrm >> 6;
    out->reg = (uint8_t)((modrm >> 3 & 7) | (out->rex & REX_R ? 8 : 0));
    out->rm = (uint8_t)(rm | (out->rex & REX_B ? 8 : 0));
    if (out->mod == MOD_REGISTER)
        return;
    if (rm == RM_SIB)
        sib = instruction_take(cursor);
    bool has_no_base = out->mod == 0 && (rm == RM_SIB ? (sib & 7) == NO_BASE : rm == NO_BASE);
    out->is_sp_based = rm == RM_SIB && sib == SIB_SP && !(out->rex & 3);
    out->displacement = (int32_t)instruction_take_signed(cursor, out->mod == 1                  ? 1
                                                                 : out->mod == 2 || has_no_base ? 4
                                                                                                : 0);
}

// VEX of 2 or 3 bytes, EVEX of 4: the first is taken.
static void instruction_read_vex(cursor_t *cursor, uint8_t first, gp_instruction_t *out)
{
    uint8_t second = instruction_take(cursor);
    out->is_vex = true;
    out->map = first == 0xc5 ? 1 : first == 0xc4 ? second & 0x1f : second & 7;
    for (int more = first == 0xc5 ? 0 : first == 0xc4 ? 1 : 2; more > 0; more--)
        instruction_take(cursor);
    out->opcode = instruction_take(cursor);
}

static void instruction_read_prefixes(cursor_t *cursor, gp_instruction_t *out)
{
    for (; cursor->at < cursor->end; cursor->at++) {
        uint8_t byte = *cursor->at;
        if (byte == 0x66)
            out->is_narrow = true;
        else if (byte != 0xf0 && byte != 0xf2 && byte != 0xf3 && byte != 0x2e && byte != 0x36 && byte != 0x3e &&
                 byte != 0x26 && byte != 0x64 && byte != 0x65 && byte != 0x67)
            break;
    }
    if (cursor->at < cursor->end && (*cursor->at & 0xf0) == 0x40)
        out->rex = *cursor->at++;
    out->is_narrow = out->is_narrow && !(out->rex & REX_W);
}

static void instruction_read_opcode(cursor_t *cursor, gp_instruction_t *out)
{
    uint8_t byte = instruction_take(cursor);
    if (byte == 0xc4 || byte == 0xc5 || byte == 0x62) {
        instruction_read_vex(cursor, byte, out);
        return;
    }
    if (byte == 0x0f) {
        byte = instruction_take(cursor);
        out->map = byte == 0x38 ? 2 : byte == 0x3a ? 3 : 1;
        byte = out->map > 1 ? instruction_take(cursor) : byte;
    }
    out->opcode = byte;
}

bool gp_instruction_decode(const uint8_t *code, size_t size, gp_instruction_t *out)
{
    cursor_t cursor = {code, code + (size < GP_INSTRUCTION_MAX ? size : GP_INSTRUCTION_MAX), false};
    *out = (gp_instruction_t){0};
    instruction_read_prefixes(&cursor, out);
    instruction_read_opcode(&cursor, out);
    if (out->is_vex ? out->map == 0 : !instruction_is_known(out->map, out->opcode))
        return false;
    if (out->is_vex ? out->map != 1 || out->opcode != 0x77 : instruction_has_modrm(out->map, out->opcode)) // vzeroupper
        instruction_read_modrm(&cursor, out);
    out->immediate = instruction_take_signed(&cursor, instruction_immediate_bytes(out));
    out->length = (uint8_t)(cursor.at - code);
    return !cursor.failed;
}

bool gp_instruction_is_jump(const gp_instruction_t *in)
{
    if (in->is_vex)
        return false;
    if (in->map == 0)
        return (in->opcode & 0xf0) == 0x70 || in->opcode == 0xe9 || in->opcode == 0xeb ||
               (in->opcode >= 0xe0 && in->opcode <= 0xe3); // loop, jrcxz
    return in->map == 1 && (in->opcode & 0xf0) == 0x80;
}
