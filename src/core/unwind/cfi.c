// SPDX-License-Identifier: MIT
// The call frame instruction interpreter.
#include "unwind/cfi.h"

#include <string.h>

#include "base/cursor.h"

// Source: DWARF 5 table 7.29; the last block are vendor extensions.
enum cfa_op {
    CFA_ADVANCE_LOC = 0x40, // the two top bits, an operand in the rest
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_MIPS_ADVANCE_LOC8 = 0x1d,
    CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
    CFA_AARCH64_NEGATE_RA_STATE = 0x2d, // DW_CFA_GNU_window_save on SPARC
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

enum { REMEMBER_MAX = 6 }; // gcc and clang nest two deep; assembly by hand was seen with three

// The state that remember_state saves.
typedef struct frame_state {
    bool cfa_is_expr, ra_signed;
    uint8_t cfa_reg;
    int64_t cfa_offset;
    gp_rule_t regs[GP_REG_COUNT];
} frame_state_t;

typedef struct machine {
    const gp_cfi_section_t *section;
    const gp_fde_t *fde;
    gp_cursor_t r;
    uintptr_t loc, last_loc; // where the present row begins; where the one before did
    frame_state_t now;
    const gp_rule_t *initial; // rules after the CIE's program; NULL while that runs
    unsigned depth;
    frame_state_t saved[REMEMBER_MAX];
} machine_t;

// Rules of registers that are not tracked (vector registers) are read and dropped.
static void cfi_set_rule(machine_t *m, uint64_t reg, enum gp_rule_kind kind, int64_t value)
{
    if (value != (int32_t)value)
        m->r.bad = true;
    else if (reg < GP_REG_COUNT)
        m->now.regs[reg] = (gp_rule_t){.kind = (uint8_t)kind, .value = (int32_t)value};
}

static void cfi_restore_rule(machine_t *m, uint64_t reg)
{
    if (m->initial == NULL)
        m->r.bad = true;
    else if (reg < GP_REG_COUNT)
        m->now.regs[reg] = m->initial[reg];
}

static void cfi_set_cfa_reg(machine_t *m, uint64_t reg)
{
    m->now.cfa_is_expr = false;
    m->now.cfa_reg = (uint8_t)reg;
    m->r.bad |= reg >= GP_REG_COUNT;
}

// Remember where the expression block stands and step over it.
static int64_t cfi_skip_block(machine_t *m)
{
    int64_t at = m->r.pos - m->fde->base;
    gp_cursor_skip(&m->r, gp_read_uleb(&m->r));
    return at;
}

static int64_t cfi_factored(const machine_t *m, uint64_t value)
{
    return (int64_t)(value * (uint64_t)m->fde->cie.data_align);
}

static void cfi_push_state(machine_t *m)
{
    if (m->depth == REMEMBER_MAX) {
        m->r.bad = true;
        return;
    }
    m->saved[m->depth++] = m->now;
}

static void cfi_pop_state(machine_t *m)
{
    if (m->depth == 0) {
        m->r.bad = true;
        return;
    }
    m->now = m->saved[--m->depth];
}

static void cfi_advance(machine_t *m, uint64_t delta)
{
    m->last_loc = m->loc;
    m->loc += delta * m->fde->cie.code_align;
}

// Instructions about locations. Returns false when `op` is none of them.
static bool cfi_run_location(machine_t *m, uint8_t op)
{
    switch (op) {
    case CFA_SET_LOC:
        m->last_loc = m->loc;
        m->loc = (uintptr_t)gp_read_encoded(&m->r, m->fde->cie.fde_encoding, m->section->data_base, m->section->bias);
        return true;
    case CFA_ADVANCE_LOC1:
        cfi_advance(m, gp_read_u8(&m->r));
        return true;
    case CFA_ADVANCE_LOC2:
        cfi_advance(m, gp_read_uint(&m->r, 2));
        return true;
    case CFA_ADVANCE_LOC4:
        cfi_advance(m, gp_read_uint(&m->r, 4));
        return true;
    case CFA_MIPS_ADVANCE_LOC8:
        cfi_advance(m, gp_read_uint(&m->r, 8));
        return true;
    default:
        return false;
    }
}

// Instructions about the CFA. Returns false when `op` is none of them.
static bool cfi_run_cfa(machine_t *m, uint8_t op)
{
    switch (op) {
    case CFA_DEF_CFA:
        cfi_set_cfa_reg(m, gp_read_uleb(&m->r));
        m->now.cfa_offset = (int64_t)gp_read_uleb(&m->r);
        return true;
    case CFA_DEF_CFA_SF:
        cfi_set_cfa_reg(m, gp_read_uleb(&m->r));
        m->now.cfa_offset = cfi_factored(m, (uint64_t)gp_read_sleb(&m->r));
        return true;
    case CFA_DEF_CFA_REGISTER:
        m->r.bad |= m->now.cfa_is_expr; // there is no offset to keep
        cfi_set_cfa_reg(m, gp_read_uleb(&m->r));
        return true;
    case CFA_DEF_CFA_OFFSET:
        m->r.bad |= m->now.cfa_is_expr;
        m->now.cfa_offset = (int64_t)gp_read_uleb(&m->r);
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        m->r.bad |= m->now.cfa_is_expr;
        m->now.cfa_offset = cfi_factored(m, (uint64_t)gp_read_sleb(&m->r));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        m->now.cfa_is_expr = true;
        m->now.cfa_offset = cfi_skip_block(m);
        return true;
    default:
        return false;
    }
}

// Instructions about one register. Returns false when `op` is none of them.
static bool cfi_run_register(machine_t *m, uint8_t op)
{
    uint64_t reg;
    if (op < CFA_OFFSET_EXTENDED || (op > CFA_VAL_EXPRESSION && op != CFA_GNU_NEGATIVE_OFFSET_EXTENDED))
        return false;
    reg = gp_read_uleb(&m->r);
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        cfi_set_rule(m, reg, GP_RULE_OFFSET, cfi_factored(m, gp_read_uleb(&m->r)));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        cfi_set_rule(m, reg, GP_RULE_OFFSET, cfi_factored(m, (uint64_t)gp_read_sleb(&m->r)));
        return true;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        cfi_set_rule(m, reg, GP_RULE_OFFSET, -cfi_factored(m, gp_read_uleb(&m->r)));
        return true;
    case CFA_VAL_OFFSET:
        cfi_set_rule(m, reg, GP_RULE_VAL_OFFSET, cfi_factored(m, gp_read_uleb(&m->r)));
        return true;
    case CFA_VAL_OFFSET_SF:
        cfi_set_rule(m, reg, GP_RULE_VAL_OFFSET, cfi_factored(m, (uint64_t)gp_read_sleb(&m->r)));
        return true;
    case CFA_RESTORE_EXTENDED:
        cfi_restore_rule(m, reg);
        return true;
    case CFA_UNDEFINED:
        cfi_set_rule(m, reg, GP_RULE_UNDEFINED, 0);
        return true;
    case CFA_SAME_VALUE:
        cfi_set_rule(m, reg, GP_RULE_SAME, 0);
        return true;
    case CFA_REGISTER:
        cfi_set_rule(m, reg, GP_RULE_REGISTER, (int64_t)gp_read_uleb(&m->r));
        return true;
    case CFA_EXPRESSION:
        cfi_set_rule(m, reg, GP_RULE_EXPR, cfi_skip_block(m));
        return true;
    case CFA_VAL_EXPRESSION:
        cfi_set_rule(m, reg, GP_RULE_VAL_EXPR, cfi_skip_block(m));
        return true;
    default:
        return false;
    }
}

static void cfi_run_other(machine_t *m, uint8_t op)
{
    switch (op) {
    case CFA_NOP:
        break;
    case CFA_GNU_ARGS_SIZE: // bytes of pushed arguments: matters to landing pads only
        (void)gp_read_uleb(&m->r);
        break;
    case CFA_REMEMBER_STATE:
        cfi_push_state(m);
        break;
    case CFA_RESTORE_STATE:
        cfi_pop_state(m);
        break;
    case CFA_AARCH64_NEGATE_RA_STATE:
    case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
        m->now.ra_signed = !m->now.ra_signed;
        break;
    default:
        m->r.bad = true;
    }
}

static void cfi_run_one(machine_t *m)
{
    uint8_t op = gp_read_u8(&m->r);
    uint8_t low = op & 0x3f;
    switch (op & 0xc0) {
    case CFA_ADVANCE_LOC:
        cfi_advance(m, low);
        return;
    case CFA_OFFSET:
        cfi_set_rule(m, low, GP_RULE_OFFSET, cfi_factored(m, gp_read_uleb(&m->r)));
        return;
    case CFA_RESTORE:
        cfi_restore_rule(m, low);
        return;
    default:
        break;
    }
    // remember, restore and the CFA family lie inside the register family's numbers: they go first.
    if (op == CFA_REMEMBER_STATE || op == CFA_RESTORE_STATE)
        cfi_run_other(m, op);
    else if (!cfi_run_cfa(m, op) && !cfi_run_location(m, op) && !cfi_run_register(m, op))
        cfi_run_other(m, op);
}

// Instructions after an advance beyond `pc` belong to later rows: stop right at it.
static void cfi_run(machine_t *m, uintptr_t pc)
{
    while (gp_cursor_more(&m->r) && m->loc <= pc)
        cfi_run_one(m);
}

// The machine has stopped behind the row of `pc`: at the next one, or at the end of the program.
static void cfi_store_row(const machine_t *m, uintptr_t pc, gp_row_t *row)
{
    const gp_fde_t *fde = m->fde;
    row->cfa_is_expr = m->now.cfa_is_expr;
    row->ra_signed = m->now.ra_signed;
    row->cfa_reg = m->now.cfa_reg;
    row->cfa_offset = m->now.cfa_offset;
    memcpy(row->regs, m->now.regs, sizeof row->regs);
    row->signal_frame = fde->cie.signal_frame;
    row->base = fde->base;
    row->expr_limit = m->section->end;
    row->start = fde->start;
    row->end = fde->end;
    row->lo = m->loc > pc ? m->last_loc : m->loc;
    row->hi = m->loc > pc && m->loc < fde->end ? m->loc : fde->end;
    row->ra_reg = fde->cie.ra_reg;
}

// Bring the machine to the start of the FDE's own program. `initial` outlives it.
static bool cfi_begin(machine_t *m, const gp_cfi_section_t *section, const gp_fde_t *fde,
                      gp_rule_t initial[GP_REG_COUNT])
{
    m->section = section;
    m->fde = fde;
    m->loc = m->last_loc = fde->start;
    m->depth = 0;
    m->initial = NULL;
    memset(&m->now, 0, sizeof m->now);
    m->now.cfa_reg = GP_REG_COUNT; // no rule yet
    m->r = gp_cursor_over(fde->cie.insns, fde->cie.insns_end);
    cfi_run(m, UINTPTR_MAX);
    if (m->r.bad)
        return false;
    memcpy(initial, m->now.regs, sizeof m->now.regs);
    m->initial = initial;
    m->depth = 0;
    m->loc = m->last_loc = fde->start;
    m->r = gp_cursor_over(fde->insns, fde->insns_end);
    return true;
}

static bool cfi_find_row(machine_t *m, uintptr_t pc, gp_row_t *row)
{
    cfi_run(m, pc);
    cfi_store_row(m, pc, row);
    return !m->r.bad && (m->now.cfa_is_expr || m->now.cfa_reg < GP_REG_COUNT);
}

bool gp_cfi_row(const gp_cfi_section_t *section, const gp_fde_t *fde, uintptr_t pc, gp_row_t *row)
{
    machine_t m;
    gp_rule_t initial[GP_REG_COUNT];
    return cfi_begin(&m, section, fde, initial) && cfi_find_row(&m, pc, row);
}

void gp_cfi_each_row(const gp_cfi_section_t *section, const gp_fde_t *fde,
                     bool (*each)(void *context, const gp_row_t *row), void *context)
{
    machine_t m;
    gp_rule_t initial[GP_REG_COUNT];
    gp_row_t row;
    uintptr_t pc = fde->start;
    if (!cfi_begin(&m, section, fde, initial))
        return;
    while (pc < fde->end && cfi_find_row(&m, pc, &row) && each(context, &row))
        pc = row.hi;
}
