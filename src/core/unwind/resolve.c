// SPDX-License-Identifier: MIT
// From a program counter to a packed row: module, FDE, program, and the rules for code without any.
#define _GNU_SOURCE
#include "unwind/resolve.h"

#include <stddef.h>

#include "base/peek.h"
#include "unwind/leaf_rows.h"
#include "unwind/switch_rules.h"

// A return address follows a call. Where it does not, the word was put there:
// - a coroutine's creator forged a bottom: the address is not inside the function that its row came
// from, or
//   the row itself says "outermost". The first instruction of __start_context, abort, crash();
//   Boost's finish.
// - _Unwind_RaiseException has written the landing pad over its own return address and is about to jump.
//   Its caller is lost, and the landing pad's row does not hold yet.
static gp_packed_row_t without_call(const gp_row_t *row, uintptr_t pc)
{
    bool inside = row != NULL && pc < row->end && row->regs[row->ra_reg].kind != GP_RULE_UNDEFINED;
    return gp_row_special(inside ? GP_SPECIAL_NO_CALL : GP_SPECIAL_HIDDEN, 0);
}

static gp_packed_row_t without_row(const gp_module_t *module, uintptr_t pc, bool is_return)
{
    if (is_return && !gp_arch_follows_call(pc, module->text_lo))
        return without_call(NULL, pc);
    gp_packed_row_t rule = is_return ? 0 : gp_switch_rule(pc, module->text_lo, module->text_hi);
    return rule != 0 ? rule : gp_row_special(GP_SPECIAL_NO_CFI, 0);
}

static bool is_simple(gp_packed_row_t row)
{
    return gp_row_kind(row) == GP_ROW_SP || gp_row_kind(row) == GP_ROW_FP;
}

// The row of an interrupted pc holds for others near it, unless it comes from an expression, which may see the pc.
static void keep_for_leaves(const gp_module_t *module, uintptr_t pc, const gp_row_t *row, gp_packed_row_t packed,
                            unsigned epoch)
{
    if (module->fixed && !row->cfa_is_expr && is_simple(packed) && !gp_entry_overlaps(row->lo, row->hi))
        gp_leaf_store(pc, row->lo, row->hi, packed, epoch);
}

static gp_packed_row_t compute(const gp_module_t *module, uintptr_t pc, bool is_return, unsigned epoch)
{
    gp_row_t row;
    uintptr_t lookup = pc - is_return;
    if (gp_entry_contains(lookup))
        return gp_row_special(is_return ? GP_SPECIAL_HIDDEN : GP_SPECIAL_END, 0);
    if (!gp_fde_row(module, lookup, &row))
        return without_row(module, pc, is_return);
    // A signal trampoline is returned to without ever having called.
    if (is_return && !row.signal_frame && !gp_arch_follows_call(pc, module->text_lo))
        return without_call(&row, pc);
    gp_packed_row_t packed = gp_row_pack(&row, pc);
    if (!is_return)
        keep_for_leaves(module, pc, &row, packed, epoch);
    gp_row_t next;
    if (is_return && pc == row.end && gp_fde_row(module, pc, &next) && next.start == pc)
        return gp_row_special(GP_SPECIAL_LAST_CALL, 0);
    return packed;
}

gp_packed_row_t gp_resolve(uintptr_t pc, bool is_return, uint32_t *slot, uint32_t *module)
{
    gp_module_t found;
    *slot = GP_CACHE_SLOTS;
    *module = UINT32_MAX;
    if (!gp_addr_plausible(pc))
        return gp_row_special(GP_SPECIAL_NO_CODE, 0);
    unsigned epoch = gp_cache_epoch();
    int number = gp_module_find(pc - is_return, &found);
    if (number == GP_MODULE_NONE)
        return gp_row_special(GP_SPECIAL_NO_CODE, 0);
    gp_packed_row_t row = compute(&found, pc, is_return, epoch) | (found.fixed ? 0 : GP_ROW_VOLATILE);
    if (number >= 0)
        *module = (uint32_t)number;
    if (number >= 0 || found.fixed) {
        uint64_t hash = gp_cache_hash(gp_arch_key(pc - is_return, is_return));
        *slot = gp_cache_store(hash, row, *module, epoch);
    }
    return row;
}

// A word that was found rather than read by a rule may point into a module that another thread is unloading: the loader
// forgets a module only after it is unmapped. Ask the kernel whether its code can still be read.
static bool is_readable(uintptr_t at, size_t len)
{
    uint8_t bytes[16];
    return gp_peek(at, bytes, len);
}

bool gp_is_return_address(uintptr_t pc)
{
    gp_module_t module;
    gp_location_t where;
    enum { CALL_MAX = 8 };
    if (!gp_addr_plausible(pc) || !gp_module_locate(pc - 1, &where) || pc - where.lo < CALL_MAX ||
        (!gp_module_is_fixed(where.link_map) && !is_readable(pc - CALL_MAX, CALL_MAX)))
        return false;
    return gp_module_find(pc - 1, &module) != GP_MODULE_NONE && gp_arch_follows_call(pc, module.text_lo);
}

bool gp_resolve_full(uintptr_t pc, bool is_return, gp_module_t *storage, const gp_module_t **module, gp_row_t *row)
{
    *module = NULL;
    if (!gp_addr_plausible(pc) || gp_module_find(pc - is_return, storage) == GP_MODULE_NONE)
        return false;
    *module = storage;
    return gp_fde_row(*module, pc - is_return, row);
}
