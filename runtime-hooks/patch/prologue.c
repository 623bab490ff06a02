// SPDX-License-Identifier: MIT
#include "patch/prologue.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
    INSTRUCTION_MAX = 15,
    REX_W = 8,
    MOD_REGISTER = 3,
    RM_SIB = 4,
    RM_RIP = 5,        // with mod 0
    SIB_NO_BASE = 5,   // with mod 0
    JUMP_NEAR_MAX = 6, // bytes of jcc rel32
};

typedef enum jump { JUMP_NONE, JUMP_ALWAYS, JUMP_IF, JUMP_CALL } jump_t;

typedef struct instruction {
    size_t length;
    size_t rip_at; // offset of a RIP-relative displacement, 0 = none
    jump_t jump;
    unsigned condition; // of JUMP_IF
    int64_t target;     // of a jump, from the instruction's end
} instruction_t;

// Bytes that follow an opcode.
typedef enum shape {
    UNKNOWN,
    PLAIN, // nothing
    IMM8,
    IMM32,
    IMM_MOV, // 4 bytes, 8 with REX.W
    MODRM,
    MODRM_IMM8,
    MODRM_IMM32,
    MODRM_TEST, // f6, f7: an immediate with /0 and /1 only
} shape_t;

typedef struct prefixes {
    bool operand16, repeat; // 66; f2 or f3
    unsigned rex;
} prefixes_t;

static shape_t prologue_one_byte_shape(unsigned char opcode)
{
    static const shape_t arithmetic[8] = {MODRM, MODRM, MODRM, MODRM, IMM8, IMM32, UNKNOWN, UNKNOWN};
    if (opcode < 0x40)
        return arithmetic[opcode & 7];
    if (opcode >= 0x50 && opcode <= 0x5f) // push, pop
        return PLAIN;
    if (opcode >= 0x84 && opcode <= 0x8b) // test, xchg, mov
        return MODRM;
    if (opcode >= 0xb8 && opcode <= 0xbf)
        return IMM_MOV;
    switch (opcode) {
    case 0x63: // movslq
    case 0x8d: // lea
    case 0xd1: // shifts
    case 0xd3:
        return MODRM;
    case 0x69: // imul
    case 0x81:
    case 0xc7:
        return MODRM_IMM32;
    case 0x6b:
    case 0x80:
    case 0x83:
    case 0xc0:
    case 0xc1:
    case 0xc6:
        return MODRM_IMM8;
    case 0xf6:
    case 0xf7:
        return MODRM_TEST;
    case 0x68: // push
    case 0xa9: // test
        return IMM32;
    case 0x6a:
    case 0xa8:
        return IMM8;
    case 0x90: // nop
    case 0x98: // cltq
    case 0x99: // cqto
        return PLAIN;
    default:
        return UNKNOWN;
    }
}

// Opcodes that begin with 0f.
static shape_t prologue_two_byte_shape(unsigned char opcode)
{
    if (opcode >= 0x40 && opcode <= 0x4f) // cmovcc
        return MODRM;
    switch (opcode) {
    case 0x10: // movups, movss and the like
    case 0x11:
    case 0x16:
    case 0x1e: // endbr64
    case 0x1f: // nop
    case 0x28: // movaps
    case 0x29:
    case 0x57: // xorps
    case 0x6e: // movd, movq
    case 0x6f:
    case 0x7e:
    case 0x7f:
    case 0xaf: // imul
    case 0xb6: // movzx
    case 0xb7:
    case 0xbe: // movsx
    case 0xbf:
    case 0xd6:
    case 0xef: // pxor
        return MODRM;
    default:
        return UNKNOWN;
    }
}

// stmxcsr, fnstcw and their opposites; push and incl of a memory operand: opcodes of which only some extensions are
// known.
static bool prologue_is_known_extension(bool two_bytes, unsigned char opcode, unsigned char modrm)
{
    unsigned extension = modrm >> 3 & 7;
    bool memory = modrm >> 6 != MOD_REGISTER;
    if (two_bytes)
        return opcode == 0xae && memory && (extension == 2 || extension == 3);
    if (opcode == 0xd9)
        return memory && (extension == 5 || extension == 7);
    return opcode == 0xff && memory && (extension < 2 || extension == 6);
}

// Bytes of a ModRM operand from its ModRM byte on, 0 where they go beyond `size`.
static size_t prologue_modrm_bytes(const unsigned char *at, size_t size, bool *rip)
{
    if (size < 2)
        return 0;
    unsigned mod = at[0] >> 6, rm = at[0] & 7;
    size_t bytes = 1;
    *rip = mod == 0 && rm == RM_RIP;
    if (mod != MOD_REGISTER && rm == RM_SIB) {
        bytes++;
        if (mod == 0 && (at[1] & 7) == SIB_NO_BASE)
            bytes += 4;
    }
    bytes += mod == 1 ? 1 : mod == 2 || *rip ? 4 : 0;
    return bytes;
}

static size_t prologue_immediate_bytes(shape_t shape, unsigned char opcode, unsigned char modrm,
                                       const prefixes_t *prefixes)
{
    switch (shape) {
    case IMM8:
    case MODRM_IMM8:
        return 1;
    case IMM32:
    case MODRM_IMM32:
        return 4;
    case IMM_MOV:
        return prefixes->rex & REX_W ? 8 : 4;
    case MODRM_TEST:
        return (modrm >> 3 & 7) > 1 ? 0 : opcode == 0xf6 ? 1 : 4;
    default:
        return 0;
    }
}

static bool prologue_is_modrm(shape_t shape)
{
    return shape == MODRM || shape == MODRM_IMM8 || shape == MODRM_IMM32 || shape == MODRM_TEST;
}

static size_t prologue_read_prefixes(const unsigned char *code, size_t size, prefixes_t *prefixes)
{
    size_t at = 0;
    *prefixes = (prefixes_t){0};
    for (; at < size; at++)
        if (code[at] == 0x66)
            prefixes->operand16 = true;
        else if (code[at] == 0xf2 || code[at] == 0xf3)
            prefixes->repeat = true;
        else if (code[at] != 0x64 && code[at] != 0x65 && code[at] != 0x2e) // %fs, %gs, %cs
            break;
    if (at < size && (code[at] & 0xf0) == 0x40)
        prefixes->rex = code[at++];
    return at;
}

static int64_t prologue_read_signed(const unsigned char *at, size_t bytes)
{
    int32_t value;
    if (bytes != 4)
        return at[0] < 0x80 ? at[0] : at[0] - 0x100;
    memcpy(&value, at, 4);
    return value;
}

static bool prologue_decode_jump(const unsigned char *code, size_t size, size_t at, instruction_t *out)
{
    bool two_bytes = code[at] == 0x0f;
    if (two_bytes && at + 1 >= size)
        return false;
    unsigned char opcode = code[at + two_bytes];
    bool is_call = !two_bytes && opcode == 0xe8;
    size_t operand = two_bytes || opcode == 0xe9 || is_call ? 4 : 1;
    bool conditional = two_bytes ? (opcode & 0xf0) == 0x80 : (opcode & 0xf0) == 0x70;
    if ((!conditional && (two_bytes || (opcode != 0xe9 && opcode != 0xeb && !is_call))) || at != 0 ||
        at + 1 + two_bytes + operand > size)
        return false;
    out->length = at + 1 + two_bytes + operand;
    out->jump = conditional ? JUMP_IF : is_call ? JUMP_CALL : JUMP_ALWAYS;
    out->condition = opcode & 0xf;
    out->target = prologue_read_signed(code + out->length - operand, operand);
    return true;
}

static bool prologue_decode(const unsigned char *code, size_t size, instruction_t *out)
{
    prefixes_t prefixes;
    *out = (instruction_t){0};
    size_t at = prologue_read_prefixes(code, size, &prefixes);
    if (at >= size)
        return false;
    if (prologue_decode_jump(code, size, at, out))
        return true;
    bool two_bytes = code[at] == 0x0f, rip = false;
    if (two_bytes && ++at >= size)
        return false;
    unsigned char opcode = code[at++], modrm = at < size ? code[at] : 0;
    shape_t shape = two_bytes ? prologue_two_byte_shape(opcode) : prologue_one_byte_shape(opcode);
    if (shape == UNKNOWN && at < size && prologue_is_known_extension(two_bytes, opcode, modrm))
        shape = MODRM;
    if (!two_bytes && (prefixes.repeat || (prefixes.operand16 && shape != MODRM && shape != PLAIN)))
        return false; // rep; or an immediate of another length
    if (shape == UNKNOWN)
        return false;
    if (prologue_is_modrm(shape)) {
        size_t bytes = prologue_modrm_bytes(code + at, size - at, &rip);
        if (bytes == 0 && at + 1 == size && modrm >> 6 == MOD_REGISTER)
            bytes = 1;
        if (bytes == 0)
            return false;
        out->rip_at = rip ? at + 1 : 0;
        at += bytes;
    }
    at += prologue_immediate_bytes(shape, opcode, modrm, &prefixes);
    out->length = at;
    return at <= size && at <= INSTRUCTION_MAX;
}

static int prologue_put_displacement(unsigned char *at, int64_t value)
{
    int32_t displacement = (int32_t)value;
    if (displacement != value)
        return -ERANGE;
    memcpy(at, &displacement, sizeof(displacement));
    return 0;
}

int gp_prologue_jump(unsigned char out[GP_PROLOGUE_JUMP_BYTES], uintptr_t at, uintptr_t to)
{
    int error = prologue_put_displacement(out + 1, (int64_t)(to - at - GP_PROLOGUE_JUMP_BYTES));
    if (error == 0)
        out[0] = 0xe9;
    return error;
}

// Append a jump to `target`, to be executed at `to` + out->bytes.
static int prologue_put_jump(const instruction_t *what, uintptr_t target, uintptr_t to, gp_prologue_t *out)
{
    unsigned char *at = out->code + out->bytes;
    size_t opcode = what->jump == JUMP_IF ? 2 : 1;
    int error = prologue_put_displacement(at + opcode, (int64_t)(target - (to + out->bytes + opcode + 4)));
    at[0] = what->jump == JUMP_IF ? 0x0f : 0xe9;
    if (what->jump == JUMP_IF)
        at[1] = (unsigned char)(0x80 | what->condition);
    out->bytes += opcode + 4;
    return error;
}

// A call returns to where it was, in the function: its frame is found there as it ever was.
static void prologue_put_return(uintptr_t address, gp_prologue_t *out)
{
    unsigned char *at = out->code + out->bytes;
    const unsigned char above[] = {0xc7, 0x44, 0x24, 0x04}; // movl $high, 4(%rsp)
    uint32_t low = (uint32_t)address, high = (uint32_t)(address >> 32);
    at[0] = 0x68; // push $low
    memcpy(at + 1, &low, sizeof(low));
    memcpy(at + 5, above, sizeof(above));
    memcpy(at + 9, &high, sizeof(high));
    out->bytes += 13;
}

static int prologue_put(const instruction_t *what, const unsigned char *code, uintptr_t from, uintptr_t to,
                        gp_prologue_t *out)
{
    unsigned char *at = out->code + out->bytes;
    if (what->jump == JUMP_CALL)
        prologue_put_return(from + what->length, out);
    if (what->jump != JUMP_NONE)
        return prologue_put_jump(what, from + what->length + (uintptr_t)what->target, to, out);
    memcpy(at, code, what->length);
    if (what->rip_at != 0) {
        int64_t moved = (int64_t)(from - (to + out->bytes));
        int error = prologue_put_displacement(at + what->rip_at, prologue_read_signed(code + what->rip_at, 4) + moved);
        if (error != 0)
            return error;
    }
    out->bytes += what->length;
    return 0;
}

// Does the function jump back into what is taken, but for its very start? Every byte is taken for an instruction.
static bool prologue_jumps_back(const unsigned char *code, size_t size, size_t taken)
{
    for (size_t at = 0; at < size; at++) {
        instruction_t jump = {0};
        if (!prologue_decode_jump(code + at, size - at, 0, &jump) || jump.jump == JUMP_CALL)
            continue;
        int64_t target = (int64_t)(at + jump.length) + jump.target;
        if (target > 0 && target < (int64_t)taken)
            return true;
    }
    return false;
}

int gp_prologue_move(const unsigned char *code, size_t size, uintptr_t from, uintptr_t to, gp_prologue_t *out)
{
    bool over = false;
    *out = (gp_prologue_t){0};
    while (out->taken < GP_PROLOGUE_JUMP_BYTES) {
        instruction_t what;
        bool fits = out->bytes + INSTRUCTION_MAX + JUMP_NEAR_MAX <= sizeof(out->code);
        if (over || !fits || !prologue_decode(code + out->taken, size - out->taken, &what))
            return -ENOTSUP;
        int error = prologue_put(&what, code + out->taken, from + out->taken, to, out);
        if (error != 0)
            return error;
        out->taken += what.length;
        over = what.jump == JUMP_ALWAYS || what.jump == JUMP_CALL;
    }
    if (prologue_jumps_back(code, size, out->taken))
        return -ENOTSUP;
    return prologue_put_jump(&(instruction_t){.jump = JUMP_ALWAYS}, from + out->taken, to, out);
}
