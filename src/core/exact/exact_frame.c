// SPDX-License-Identifier: MIT
// The frame of an instrumented function, from the unwind tables.
#include "exact/exact_site.h"
#include "unwind/resolve.h"

enum {
    PROLOGUE_BYTES = 256, // without unwind tables: the hook is called within so much of the start
    WORD = sizeof(uintptr_t),
};

// Where the frame ends at `site->pc`. Without a row: a word above the stack pointer, which is the least it can be.
void gp_exact_site_read_frame(gp_exact_site_t *site, bool manual)
{
    gp_unwind_module_t storage;
    const gp_unwind_module_t *module;
    gp_row_t row;
    site->cfa = GP_EXACT_CFA_SP;
    site->offset = WORD;
    if (gp_resolve_full(site->pc, true, &storage, &module, &row)) {
        gp_packed_row_t packed = gp_row_pack(&row, site->pc);
        unsigned kind = gp_row_kind(packed);
        site->physical = row.start;
        if (kind == GP_ROW_SP || kind == GP_ROW_FP) {
            site->cfa = kind == GP_ROW_SP ? GP_EXACT_CFA_SP : GP_EXACT_CFA_FP;
            site->offset = (int32_t)(gp_row_off(packed) * WORD);
        } else if (gp_row_special_of(packed) == GP_SPECIAL_REALIGN) {
            site->cfa = GP_EXACT_CFA_REALIGN;
            site->offset = -(int32_t)(gp_row_argument(packed) * WORD);
        }
        site->first = row.start == site->address;
    } else {
        site->first = site->pc > site->address && site->pc - site->address < PROLOGUE_BYTES;
        site->physical = site->first ? site->address : 0;
    }
    site->manual_inline = manual && !site->first;
    site->first = site->first && !manual; // prof_enter() may come twice in one frame
}
