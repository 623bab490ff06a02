// SPDX-License-Identifier: MIT
#include "signal/call_number.h"

#include <string.h>

#include "base/peek.h"
#include "signal/instruction.h"
#include "unwind/resolve.h"
#include "unwind/step.h"
#include "unwind/unwind.h"

enum {
    RAX,
    RCX,
    RDX,
    RBX,
    RSP,
    RBP,
    R11 = 11,
    REGISTERS = 16,
    SYSCALL_BYTES = 2,
    FUNCTION_BYTES_MAX = 16 << 10,
    STACK_BYTES_MAX = 4096, // above the stack pointer: the frames of the C library's wrappers
    RED_ZONE_BYTES = 128,
    CALLERS_MAX = 4,
    STORE_BYTES_MAX = 64,
    MOD_REGISTER = 3,
};

// A bit for each register. Source: System V psABI: what a call keeps; syscall(2): what a system call does not.
enum {
    KEPT_BY_CALL = 1 << RBX | 1 << RSP | 1 << RBP | 0xf000,
    KEPT_BY_SYSCALL = 0xffff & ~(1 << RAX | 1 << RCX | 1 << R11),
};

static const uint8_t syscall_instruction[SYSCALL_BYTES] = {0x0f, 0x05};

// The value of a register, as far as it is known; equal ones stand for equal values.
typedef struct value {
    enum {
        OPAQUE,   // below REGISTERS, what that register had where the block begins
        CONSTANT, // the number
        STACKED,  // what is on the stack, so far above the stack pointer where the block begins
    } kind;
    int64_t of;
} value_t;

typedef struct block { // code that is only entered at its beginning
    value_t of[REGISTERS], pushed;
    int64_t depth; // bytes that the stack pointer is below where it was
    int64_t pushed_at, next;
    bool is_function; // its beginning is the function's
    bool has_lost_sp;
} block_t;

static bool call_number_is_equal(value_t a, value_t b)
{
    return a.kind == b.kind && a.of == b.of;
}

static void call_number_block_forget(block_t *block, unsigned reg)
{
    block->of[reg] = (value_t){OPAQUE, block->next++};
    block->has_lost_sp |= reg == RSP;
}

// All but those of `kept`, which has a bit for each register.
static void call_number_block_forget_but(block_t *block, unsigned kept)
{
    for (unsigned reg = 0; reg < REGISTERS; reg++)
        if (!(kept >> reg & 1))
            call_number_block_forget(block, reg);
}

// Something is stored at [at, at + STORE_BYTES_MAX) of the stack, or below.
static void call_number_block_forget_stacked(block_t *block, int64_t at)
{
    for (unsigned reg = 0; reg < REGISTERS; reg++)
        if (block->of[reg].kind == STACKED && block->of[reg].of > at - 8 && block->of[reg].of < at + STORE_BYTES_MAX)
            call_number_block_forget(block, reg);
    block->pushed_at = INT64_MAX;
}

static void call_number_block_push(block_t *block, value_t value)
{
    block->depth += 8;
    block->pushed = value;
    block->pushed_at = -block->depth;
}

static void call_number_block_pop(block_t *block, unsigned reg)
{
    bool is_that = block->pushed_at == -block->depth && !block->has_lost_sp;
    block->depth -= 8;
    call_number_block_forget(block, reg);
    if (is_that)
        block->of[reg] = block->pushed;
}

static void call_number_block_set_narrow(block_t *block, const gp_instruction_t *in, unsigned reg)
{
    call_number_block_forget(block, reg);
    if (!in->rex && reg >= RSP) // %ah and so on
        call_number_block_forget(block, reg & 3);
}

static void call_number_block_call(block_t *block)
{
    call_number_block_forget_but(block, KEPT_BY_CALL);
    call_number_block_forget_stacked(block, INT64_MIN / 2);
    for (unsigned reg = 0; reg < REGISTERS; reg++) // a callee may have a pointer to it
        if (block->of[reg].kind == STACKED)
            call_number_block_forget(block, reg);
}

static void call_number_block_move(block_t *block, const gp_instruction_t *in)
{
    bool is_load = in->opcode == 0x8b, is_register = in->mod == MOD_REGISTER;
    unsigned to = is_load ? in->reg : in->rm;
    if (is_register && !in->is_narrow && to != RSP)
        block->of[to] = block->of[is_load ? in->rm : in->reg];
    else if (is_load || is_register)
        call_number_block_forget(block, to);
    if (is_load && in->is_sp_based && !in->is_narrow && !block->has_lost_sp)
        block->of[to] = (value_t){STACKED, in->displacement - block->depth};
}

// add, or, ..., cmp: group 1 and the opcodes below 40.
static void call_number_block_arithmetic(block_t *block, const gp_instruction_t *in)
{
    unsigned operation = in->opcode >= 0x80 ? in->reg & 7u : in->opcode >> 3, form = in->opcode & 7;
    bool is_group = in->opcode >= 0x80, is_register = in->mod == MOD_REGISTER;
    if (operation == 7) // cmp
        return;
    if (is_group && is_register && in->rm == RSP && (operation == 0 || operation == 5)) {
        block->depth += operation == 5 ? in->immediate : -in->immediate;
        return;
    }
    if (!is_group && form >= 4) {
        call_number_block_forget(block, RAX);
        return;
    }
    bool is_zero = !is_group && is_register && (form & 1) && in->reg == in->rm && (operation == 5 || operation == 6);
    unsigned to = !is_group && form >= 2 ? in->reg : in->rm;
    if (is_zero)
        block->of[to] = (value_t){CONSTANT, 0};
    else if (is_register || (!is_group && form >= 2))
        call_number_block_set_narrow(block, in, to);
}

static void call_number_block_lea(block_t *block, const gp_instruction_t *in)
{
    if (in->reg == RSP && in->is_sp_based)
        block->depth -= in->displacement;
    else
        call_number_block_forget(block, in->reg);
}

// The opcodes from 40 on that are one byte.
static void call_number_block_one_byte(block_t *block, const gp_instruction_t *in)
{
    unsigned low = (in->opcode & 7u) | (in->rex & 1 ? 8 : 0), extension = in->reg & 7u;
    bool is_register = in->mod == MOD_REGISTER;
    switch (in->opcode) {
    case 0x63: // movslq
    case 0x69: // imul
    case 0x6b:
    case 0x8a:
        call_number_block_set_narrow(block, in, in->reg);
        return;
    case 0x68:
    case 0x6a:
        call_number_block_push(block, (value_t){CONSTANT, in->immediate});
        return;
    case 0x84: // test
    case 0x85:
    case 0xa8:
    case 0xa9:
    case 0xe9: // jumps, where they are not taken
    case 0xeb:
    case 0xcc:
        return;
    case 0x89:
    case 0x8b:
        call_number_block_move(block, in);
        return;
    case 0x8d:
        call_number_block_lea(block, in);
        return;
    case 0x90:
        call_number_block_forget_but(block, in->rex & 1 ? ~(1u << RAX | 1u << 8) : ~0u);
        return;
    case 0x98:
        call_number_block_forget(block, RAX);
        return;
    case 0x99:
        call_number_block_forget(block, RDX);
        return;
    case 0xc7:
        if (is_register)
            block->of[in->rm] = (value_t){CONSTANT, in->immediate};
        return;
    case 0xe8:
        call_number_block_call(block);
        return;
    case 0xf7:
    case 0xf6:
        if (extension >= 4) // mul, div
            call_number_block_forget_but(block, ~(1u << RAX | 1u << RDX));
        else if (extension >= 2 && is_register)
            call_number_block_set_narrow(block, in, in->rm);
        return;
    case 0xff:
        if (extension == 2)
            call_number_block_call(block);
        else if (extension == 6)
            call_number_block_push(block, (value_t){OPAQUE, block->next++});
        else if (is_register)
            call_number_block_forget(block, in->rm);
        return;
    default:
        break;
    }
    if ((in->opcode & 0xf8) == 0x50)
        call_number_block_push(block, block->of[low]);
    else if ((in->opcode & 0xf8) == 0x58)
        call_number_block_pop(block, low);
    else if ((in->opcode & 0xf8) == 0xb8 && !in->is_narrow)
        block->of[low] = (value_t){CONSTANT, in->immediate};
    else if ((in->opcode & 0xf0) == 0xb0)
        call_number_block_set_narrow(block, in, low);
    else if (in->opcode == 0x88 || in->opcode == 0xc6 || in->opcode == 0xc0 || in->opcode == 0xc1 ||
             (in->opcode >= 0xd0 && in->opcode <= 0xd3) || in->opcode == 0xfe) {
        if (is_register)
            call_number_block_set_narrow(block, in, in->rm);
    } else if ((in->opcode & 0xf0) != 0x70) {
        call_number_block_forget_but(block, 1 << RSP);
        block->has_lost_sp |= in->opcode == 0x9c || in->opcode == 0x9d || in->opcode == 0xc8 || in->opcode == 0xc9;
    }
}

static void call_number_block_two_bytes(block_t *block, const gp_instruction_t *in)
{
    unsigned opcode = in->opcode;
    bool is_register = in->mod == MOD_REGISTER;
    if (opcode == 0x05)
        call_number_block_forget_but(block, KEPT_BY_SYSCALL);
    else if ((opcode & 0xf0) == 0x40 || opcode == 0xaf || opcode == 0xb6 || opcode == 0xb7 || opcode == 0xbe ||
             opcode == 0xbf || opcode == 0xbc || opcode == 0xbd || opcode == 0xb8 || opcode == 0x2c || opcode == 0x2d ||
             opcode == 0x50 || opcode == 0xd7 || opcode == 0xc5)
        call_number_block_forget(block, in->reg);
    else if ((opcode & 0xf0) == 0x90 || opcode == 0x7e || opcode == 0xba || opcode == 0xab || opcode == 0xb3 ||
             opcode == 0xbb || opcode == 0xa4 || opcode == 0xa5 || opcode == 0xac || opcode == 0xad ||
             (opcode == 0x1e && (in->reg & 7) == 1)) {
        if (is_register)
            call_number_block_set_narrow(block, in, in->rm);
    } else if (!(opcode == 0x0d || (opcode >= 0x10 && opcode <= 0x1f) || (opcode >= 0x28 && opcode <= 0x2f) ||
                 (opcode >= 0x51 && opcode <= 0x7f) || (opcode & 0xf0) == 0x80 || opcode == 0xa3 || opcode == 0xc2 ||
                 opcode == 0xc6 || opcode >= 0xd0)) {
        call_number_block_forget_but(block, 1 << RSP);
    }
}

static bool call_number_may_store(const gp_instruction_t *in)
{
    if (in->map == 0)
        return in->opcode < 0x40 ? (in->opcode & 7) < 2 && in->opcode >> 3 != 7
                                 : in->opcode != 0x8a && in->opcode != 0x8b && in->opcode != 0x8d && in->opcode != 0x63;
    return !(in->opcode >= 0x40 && in->opcode <= 0x4f) && in->opcode != 0x10 && in->opcode != 0x28 &&
           in->opcode != 0x6f && in->opcode != 0x6e && in->opcode != 0xb6 && in->opcode != 0xb7 && in->opcode != 0xbe;
}

static void call_number_block_step(block_t *block, const gp_instruction_t *in)
{
    if (in->is_sp_based && call_number_may_store(in))
        call_number_block_forget_stacked(block, in->displacement - block->depth);
    if (in->is_vex || in->map > 1)
        call_number_block_forget_but(block, 1 << RSP); // of bits, some have a register
    else if (in->map == 1)
        call_number_block_two_bytes(block, in);
    else if (in->opcode < 0x40 || in->opcode == 0x80 || in->opcode == 0x81 || in->opcode == 0x83)
        call_number_block_arithmetic(block, in);
    else
        call_number_block_one_byte(block, in);
}

// After this comes what is jumped to, or nothing.
static bool call_number_ends_block(const gp_instruction_t *in)
{
    return in->map == 0 && !in->is_vex &&
           (in->opcode == 0xc3 || in->opcode == 0xc2 || in->opcode == 0xe9 || in->opcode == 0xeb ||
            in->opcode == 0xf4 || (in->opcode == 0xff && (in->reg & 7) == 4));
}

// Where the block begins that ends at `at`, an instruction of the function [start, end). Returns 0 where not all of it
// is known, or something jumps to `at`.
static uintptr_t call_number_find_block(uintptr_t start, uintptr_t end, uintptr_t at)
{
    uintptr_t begin = start;
    bool is_instruction = false;
    gp_instruction_t in;
    for (uintptr_t pc = start; pc < end; pc += in.length) {
        if (!gp_instruction_decode((const uint8_t *)pc, end - pc, &in))
            return 0;
        uintptr_t next = pc + in.length, target = 0;
        is_instruction |= pc == at;
        if (gp_instruction_is_jump(&in))
            target = next + (uintptr_t)in.immediate;
        if (target > begin && target <= at)
            begin = target;
        if (next > begin && next <= at && call_number_ends_block(&in))
            begin = next;
    }
    return is_instruction && begin < at ? begin : 0;
}

// Follow the block to `at`. Returns false where its beginning is amid an instruction.
static bool call_number_follow(block_t *block, uintptr_t begin, uintptr_t at)
{
    gp_instruction_t in;
    *block = (block_t){.next = REGISTERS, .pushed_at = INT64_MAX};
    for (unsigned reg = 0; reg < REGISTERS; reg++)
        block->of[reg].of = reg;
    for (; begin < at; begin += in.length) {
        if (!gp_instruction_decode((const uint8_t *)begin, at - begin, &in))
            return false;
        call_number_block_step(block, &in);
    }
    return begin == at;
}

// DWARF's number of a register as instructions number it.
static unsigned call_number_dwarf(unsigned reg)
{
    static const uint8_t numbers[] = {0, 2, 1, 3, 7, 6, 4, 5};
    return reg < sizeof(numbers) ? numbers[reg] : reg;
}

typedef enum answer { UNKNOWN, KNOWN, FROM_CALLER } answer_t;

typedef struct search {
    gp_unwind_cursor_t cursor;
    gp_stack_memory_t stack;
    unsigned reg;  // what is looked for: it has the number before the instruction
    unsigned live; // registers unchanged since then
} search_t;

static answer_t call_number_read_value(search_t *search, const block_t *block, uint64_t *number)
{
    const gp_regfile_t *regs = &search->cursor.regs;
    value_t value = block->of[search->reg];
    uintptr_t word = 0;
    *number = (uint32_t)value.of;
    if (value.kind == CONSTANT)
        return KNOWN;
    if (value.kind == STACKED) {
        bool is_there =
            !block->has_lost_sp &&
            gp_stack_read(&search->stack, regs->reg[GP_REG_SP] + (uintptr_t)(block->depth + value.of), &word);
        *number = (uint32_t)word;
        return is_there ? KNOWN : UNKNOWN;
    }
    for (unsigned reg = 0; reg < REGISTERS; reg++)
        if ((search->live >> reg & 1) && call_number_is_equal(block->of[reg], value) &&
            (regs->known >> call_number_dwarf(reg) & 1)) {
            *number = (uint32_t)regs->reg[call_number_dwarf(reg)];
            return KNOWN;
        }
    search->reg = (unsigned)value.of;
    return block->is_function && value.of < REGISTERS ? FROM_CALLER : UNKNOWN;
}

// Search a frame. `size` is that of the instruction before the cursor's pc.
static answer_t call_number_search_frame(search_t *search, const gp_row_t *row, size_t size, uint64_t *number)
{
    uintptr_t at = search->cursor.regs.reg[GP_REG_PC] - size;
    block_t block;
    if (row->end - row->start > FUNCTION_BYTES_MAX)
        return UNKNOWN;
    uintptr_t begin = call_number_find_block(row->start, row->end, at);
    if (begin == 0 || !call_number_follow(&block, begin, at))
        return UNKNOWN;
    block.is_function = begin == row->start;
    return call_number_read_value(search, &block, number);
}

// Bytes of the call with return address `pc`; 0 = no known form of call.
static size_t call_number_bytes(uintptr_t pc, const gp_row_t *row)
{
    const uint8_t *code = (const uint8_t *)pc;
    if (pc - row->start >= 5 && code[-5] == 0xe8)
        return 5;
    if (pc - row->start >= 6 && code[-6] == 0xff && code[-5] == 0x15) // by the global offset table
        return 6;
    return pc - row->start >= 2 && code[-2] == 0xff && (code[-1] & 0xf8) == 0xd0 ? 2 : 0;
}

static bool call_number_search_callers(search_t *search, uint64_t *number)
{
    gp_unwind_module_t storage;
    const gp_unwind_module_t *module;
    gp_row_t row;
    answer_t answer = FROM_CALLER;
    for (int i = 0; i < CALLERS_MAX && answer == FROM_CALLER; i++) {
        if (gp_step_full(&search->cursor, &search->stack) != GP_STEP_OK || search->cursor.exact ||
            !gp_resolve_full(search->cursor.regs.reg[GP_REG_PC], true, &storage, &module, &row))
            return false;
        size_t size = call_number_bytes(search->cursor.regs.reg[GP_REG_PC], &row);
        search->live = KEPT_BY_CALL & ~(1u << RSP);
        answer = size != 0 ? call_number_search_frame(search, &row, size, number) : UNKNOWN;
    }
    return answer == KNOWN;
}

static void call_number_begin(search_t *search, const ucontext_t *context)
{
    uintptr_t registers[33];
    gp_unwind_regs_t regs;
    gp_unwind_regs_from_ucontext(&regs, registers, context);
    memcpy(search->cursor.regs.reg, registers, sizeof(search->cursor.regs.reg));
    search->cursor.regs.known = (1ull << GP_REG_COUNT) - 1;
    search->cursor.exact = true;
    search->stack = (gp_stack_memory_t){.lo = regs.sp - RED_ZONE_BYTES, .hi = regs.sp + STACK_BYTES_MAX};
    search->reg = RAX;
    search->live = KEPT_BY_SYSCALL & ~(1u << RSP);
}

uint64_t gp_call_number_hint(const ucontext_t *context)
{
    enum { PAGE = 4096, BYTES = 5 + SYSCALL_BYTES };
    const uint8_t *end = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP] - SYSCALL_BYTES;
    uint32_t constant;
    if (context->uc_mcontext.gregs[REG_RIP] % PAGE < BYTES)
        return UINT64_MAX;
    memcpy(&constant, end - sizeof(constant), sizeof(constant));
    if (end[-5] == 0xb8)
        return constant;
    return end[-2] == 0x31 && end[-1] == 0xc0 ? 0 : UINT64_MAX;
}

// By the instruction right before alone: a constant, or a register that still has it.
static bool call_number_find_without_row(const search_t *search, uint64_t *number)
{
    enum { MOVE_BYTES = 5, REX_BYTES = 1 };
    uint8_t code[REX_BYTES + MOVE_BYTES + SYSCALL_BYTES];
    gp_instruction_t in;
    if (!gp_peek(search->cursor.regs.reg[GP_REG_PC] - sizeof(code), code, sizeof(code)) ||
        memcmp(code + sizeof(code) - SYSCALL_BYTES, syscall_instruction, SYSCALL_BYTES) != 0)
        return false;
    if (code[1] == 0xb8 && (code[0] & 0xf0) != 0x40) {
        memcpy(number, code + 2, sizeof(uint32_t));
        *number = (uint32_t)*number;
        return true;
    }
    const uint8_t *move = code + sizeof(code) - SYSCALL_BYTES - 2;
    bool has_prefix = (move[-1] & 0xf0) == 0x40;
    if (!gp_instruction_decode(move - has_prefix, SYSCALL_BYTES + has_prefix, &in) || in.length != 2 + has_prefix ||
        in.mod != MOD_REGISTER || in.rm != RAX || (in.opcode != 0x89 && (in.opcode != 0x31 || in.reg != RAX)))
        return false;
    *number = in.opcode == 0x31 ? 0 : (uint32_t)search->cursor.regs.reg[call_number_dwarf(in.reg)];
    return in.opcode == 0x31 || (search->live >> in.reg & 1);
}

bool gp_call_number(const ucontext_t *context, uint64_t *number)
{
    search_t search;
    gp_unwind_module_t storage;
    const gp_unwind_module_t *module;
    gp_row_t row;
    call_number_begin(&search, context);
    uintptr_t pc = search.cursor.regs.reg[GP_REG_PC];
    if (!gp_resolve_full(pc - SYSCALL_BYTES, false, &storage, &module, &row))
        return call_number_find_without_row(&search, number);
    if (pc - row.start < SYSCALL_BYTES ||
        memcmp((const void *)(pc - SYSCALL_BYTES), syscall_instruction, SYSCALL_BYTES) != 0)
        return false;
    answer_t answer = call_number_search_frame(&search, &row, SYSCALL_BYTES, number);
    return answer == KNOWN || (answer == FROM_CALLER && call_number_search_callers(&search, number));
}
