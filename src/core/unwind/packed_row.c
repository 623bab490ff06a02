// SPDX-License-Identifier: MIT
// Squeeze full rows into packed ones.
#include "unwind/packed_row.h"

#include "unwind/expr.h"

enum { WORD = sizeof(uintptr_t), OP_BREG0 = 0x70, OP_DEREF = 0x06 };

// CFA - 8n as n, or 0 where it is none of 1 to 63.
static unsigned packed_row_slot_of(int32_t offset)
{
    if (offset >= 0 || offset % WORD != 0 || -offset / WORD > (int32_t)GP_ROW_SLOT_MASK)
        return 0;
    return (unsigned)(-offset / WORD);
}

static bool packed_row_pack_fp(const gp_row_t *row, unsigned *slot)
{
    const gp_rule_t *fp = &row->regs[GP_REG_FP];
    *slot = fp->kind == GP_RULE_OFFSET ? packed_row_slot_of(fp->value) : 0;
    // "Undefined" is as good as unchanged: a later use is caught by the CFA checks.
    return fp->kind == GP_RULE_SAME || fp->kind == GP_RULE_UNDEFINED || *slot != 0;
}

static bool packed_row_pack_ra(const gp_row_t *row, unsigned *slot)
{
    const gp_rule_t *ra = &row->regs[row->ra_reg];
    *slot = ra->kind == GP_RULE_OFFSET ? packed_row_slot_of(ra->value) : 0;
    if (row->ra_reg != GP_REG_RA)
        return false;
    if (!GP_RA_IN_REGISTER)
        return *slot == 1;
    return ra->kind == GP_RULE_SAME || *slot != 0;
}

static gp_packed_row_t packed_row_pack_register(const gp_row_t *row, unsigned reg, int64_t offset)
{
    unsigned fp, ra;
    int64_t words = offset / WORD;
    bool enough = words >= (GP_RA_IN_REGISTER ? 0 : 1);
    if (!enough || offset % WORD != 0 || words > (int64_t)GP_ROW_OFF_MASK || !packed_row_pack_fp(row, &fp) ||
        !packed_row_pack_ra(row, &ra))
        return gp_row_special(GP_SPECIAL_FULL, 0);
    if (reg == GP_REG_SP)
        return gp_row_simple(GP_ROW_SP, (unsigned)words, fp, ra);
    if (reg == GP_REG_FP)
        return gp_row_simple(GP_ROW_FP, (unsigned)words, fp, ra);
    return gp_row_special(GP_SPECIAL_FULL, 0);
}

// Frames that realign their stack keep the CFA in a slot: `breg(fp) -8n; deref`, and save the frame
// pointer where it points to. Returns n or 0.
static unsigned packed_row_realign_slot(const gp_row_t *row)
{
    const uint8_t *cfa = row->base + row->cfa_offset;
    const gp_rule_t *fp = &row->regs[GP_REG_FP];
    if (cfa[0] != 3 || cfa[1] != OP_BREG0 + GP_REG_FP || cfa[3] != OP_DEREF || fp->kind != GP_RULE_EXPR)
        return 0;
    const uint8_t *saved = row->base + fp->value;
    if (saved[0] != 2 || saved[1] != OP_BREG0 + GP_REG_FP || saved[2] != 0)
        return 0;
    int offset = (cfa[2] & 0x40) ? (int)cfa[2] - 0x80 : (int)cfa[2]; // one-byte SLEB128
    return (cfa[2] & 0x80) ? 0 : packed_row_slot_of(offset);
}

static bool packed_row_eval_at(const gp_row_t *row, uintptr_t pc, uintptr_t sp, uintptr_t *cfa)
{
    gp_stack_memory_t nothing = gp_stack_of(16, 16);
    gp_regfile_t regs = {.known = 1ull << GP_REG_SP};
    regs.reg[GP_REG_SP] = sp;
    regs.reg[GP_REG_PC] = pc;
    regs.known |= 1ull << GP_REG_PC;
    return gp_expr_eval(row->base + row->cfa_offset, row->expr_limit, &regs, &nothing, NULL, cfa) == GP_EXPR_OK;
}

// A PLT's expression is stack pointer + constant once the pc is known. Instead of reasoning about operations, evaluate
// it at stack pointers that differ in every important bit.
static bool packed_row_is_sp_relative(const gp_row_t *row, uintptr_t pc, int64_t *offset)
{
    static const uintptr_t probe[] = {0x7ffe12345008, 0x7ffe12345670, 0x10000000ff8, 0x5a5a5a5a5a58};
    for (unsigned i = 0; i < sizeof probe / sizeof *probe; i++) {
        uintptr_t cfa;
        if (!packed_row_eval_at(row, pc, probe[i], &cfa))
            return false;
        if (i > 0 && (int64_t)(cfa - probe[i]) != *offset)
            return false;
        *offset = (int64_t)(cfa - probe[i]);
    }
    return true;
}

gp_packed_row_t gp_row_pack(const gp_row_t *row, uintptr_t pc)
{
    unsigned slot;
    int64_t offset;
    if (row->regs[row->ra_reg].kind == GP_RULE_UNDEFINED)
        return gp_row_special(GP_SPECIAL_END, 0);
    // A signal frame's return address is the interrupted pc itself, and the frame need not end
    // above the one it interrupted: the slow step knows.
    if (row->signal_frame || row->regs[GP_REG_SP].kind != GP_RULE_SAME ||
        row->regs[GP_REG_EH_DATA].kind == GP_RULE_OFFSET)
        return gp_row_special(GP_SPECIAL_FULL, 0);
    if (!row->cfa_is_expr)
        return packed_row_pack_register(row, row->cfa_reg, row->cfa_offset);
    slot = packed_row_realign_slot(row);
    if (slot != 0 && row->regs[row->ra_reg].kind == GP_RULE_OFFSET && row->regs[row->ra_reg].value == -WORD)
        return gp_row_special(GP_SPECIAL_REALIGN, slot);
    if (packed_row_is_sp_relative(row, pc, &offset))
        return packed_row_pack_register(row, GP_REG_SP, offset);
    return gp_row_special(GP_SPECIAL_FULL, 0);
}
