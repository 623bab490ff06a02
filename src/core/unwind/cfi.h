// SPDX-License-Identifier: MIT
// Call frame information: one FDE of .eh_frame or .debug_frame in, the full row for one pc out.
//
// Signals: safe; no allocation, under 3 KiB of stack. Cost: 100-200 ns for what gcc emits.
// Source: DWARF 5 section 6.4, LSB Core "Exception Frames", GNU and AArch64 extensions in binutils dwarf2.def.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "unwind/arch.h"

enum gp_rule_kind {
    GP_RULE_SAME,       // still in the register (also: no rule given)
    GP_RULE_UNDEFINED,  // lost; for the return address: outermost frame
    GP_RULE_OFFSET,     // saved at CFA + value
    GP_RULE_VAL_OFFSET, // is CFA + value
    GP_RULE_REGISTER,   // in register `value`
    GP_RULE_EXPR,       // saved at the address that the expression yields
    GP_RULE_VAL_EXPR,   // is what the expression yields
};

typedef struct gp_rule {
    uint8_t kind;  // enum gp_rule_kind
    int32_t value; // bytes, a register number, or where the expression is, relative to gp_row.base
} gp_rule_t;

// Which bytes an expression has: a block; its ULEB128 length stands at base + value.
typedef struct gp_row {
    bool cfa_is_expr;
    bool ra_signed; // aarch64: the return address carries an authentication code
    uint8_t cfa_reg;
    bool signal_frame;
    int64_t cfa_offset; // bytes to add to cfa_reg, or the expression's place relative to base
    gp_rule_t regs[GP_REG_COUNT];
    const uint8_t *base;       // start of the FDE
    const uint8_t *expr_limit; // no expression reaches beyond
    uintptr_t start, end;      // code that the FDE covers
    uintptr_t lo, hi;          // code that this row holds for; lo <= pc < hi
    uint8_t ra_reg;
} gp_row_t;

// Where frame information is read from.
typedef struct gp_cfi_section {
    const uint8_t *start, *end; // readable bytes
    uintptr_t data_base;        // .eh_frame_hdr
    uintptr_t bias;             // added to absolute pointers
    bool debug_frame;           // CIE pointers are section offsets, the CIE id is ~0
} gp_cfi_section_t;

typedef struct gp_cie {
    const uint8_t *insns, *insns_end;
    uint64_t code_align;
    int64_t data_align;
    uint8_t ra_reg;
    uint8_t fde_encoding;
    bool augmented; // 'z': FDEs have an augmentation length
    bool signal_frame;
} gp_cie_t;

typedef struct gp_fde {
    const uint8_t *base;
    const uint8_t *insns, *insns_end;
    uintptr_t start, end; // code covered, half-open
    gp_cie_t cie;
} gp_fde_t;

// Decode the entry at `at`. Returns false for a CIE, a terminator or bytes that make no sense;
// `*next` is then still the following entry, or NULL where there is none.
bool gp_cfi_decode(const gp_cfi_section_t *section, const uint8_t *at, gp_fde_t *fde, const uint8_t **next);

// Run the program of `fde` up to `pc`, which it covers. Returns false for a program that makes no sense.
bool gp_cfi_row(const gp_cfi_section_t *section, const gp_fde_t *fde, uintptr_t pc, gp_row_t *row);

// Run the program of `fde` once and give all its rows to `each`, by address, until it returns false or the program
// makes no sense.
void gp_cfi_each_row(const gp_cfi_section_t *section, const gp_fde_t *fde,
                     bool (*each)(void *context, const gp_row_t *row), void *context);
