// SPDX-License-Identifier: MIT
// libFuzzer target: any bytes as .eh_frame (or .debug_frame), any pc, through decoding,
// interpreting, packing and evaluating. The lowest bit of the first byte chooses the kind of
// section.
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"
#include "unwind/expr.h"
#include "unwind/packed_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_row(const gp_row_t *row, uintptr_t pc)
{
    static _Alignas(8) uintptr_t memory[64];
    gp_stack_memory_t stack = gp_stack_of((uintptr_t)memory, (uintptr_t)(memory + 64));
    gp_regfile_t regs = {.known = (1ull << GP_REG_COUNT) - 1};
    uintptr_t value, cfa = (uintptr_t)memory + 128;
    for (unsigned reg = 0; reg < GP_REG_COUNT; reg++)
        regs.reg[reg] = (uintptr_t)(memory + reg);
    (void)gp_row_pack(row, pc);
    if (row->cfa_is_expr)
        (void)gp_expr_eval(row->base + row->cfa_offset, row->expr_limit, &regs, &stack, NULL, &value);
    for (unsigned reg = 0; reg < GP_REG_COUNT; reg++)
        if (row->regs[reg].kind == GP_RULE_EXPR || row->regs[reg].kind == GP_RULE_VAL_EXPR)
            (void)gp_expr_eval(row->base + row->regs[reg].value, row->expr_limit, &regs, &stack, &cfa, &value);
}

static void use_fde(const gp_cfi_section_t *section, const gp_fde_t *fde)
{
    gp_row_t row;
    uintptr_t len = fde->end - fde->start;
    for (uintptr_t part = 0; part < 4; part++) {
        uintptr_t pc = fde->start + len / 4 * part;
        if (gp_cfi_row(section, fde, pc, &row))
            use_row(&row, pc);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    // Exactly sized, so that the sanitizer sees a read past the end.
    uint8_t *bytes = malloc(size - 1);
    memcpy(bytes, data + 1, size - 1);
    gp_cfi_section_t section = {
        .start = bytes,
        .end = bytes + size - 1,
        .debug_frame = data[0] & 1,
        .data_base = (uintptr_t)bytes,
    };
    const uint8_t *at = bytes, *next;
    for (unsigned i = 0; i < 64 && at != NULL; i++) {
        gp_fde_t fde;
        if (gp_cfi_decode(&section, at, &fde, &next))
            use_fde(&section, &fde);
        at = next;
    }
    free(bytes);
    return 0;
}
