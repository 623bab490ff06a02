// SPDX-License-Identifier: MIT
// From a program counter to a packed row: module, FDE, program, and the rules for code without any.
#define _GNU_SOURCE
#include "unwind/resolve.h"

#include <stddef.h>

#include "base/peek.h"
#include "unwind/row_cache.h"
#include "unwind/row_table.h"
#include "unwind/switch_rules.h"

// A return address follows a call. Where it does not, the word was put there:
// - a coroutine's creator forged a bottom: the address is not inside the function that its row came
// from, or
//   the row itself says "outermost". The first instruction of __start_context, abort, crash();
//   Boost's finish.
// - _Unwind_RaiseException has written the landing pad over its own return address and is about to jump.
//   Its caller is lost, and the landing pad's row does not hold yet.
static gp_packed_row_t resolve_without_call(const gp_row_t *row, uintptr_t pc)
{
    bool inside = row != NULL && pc < row->end && row->regs[row->ra_reg].kind != GP_RULE_UNDEFINED;
    return gp_row_special(inside ? GP_SPECIAL_NO_CALL : GP_SPECIAL_HIDDEN, 0);
}

static gp_packed_row_t resolve_without_row(const gp_unwind_module_t *module, uintptr_t pc, bool is_return)
{
    if (is_return && !gp_arch_follows_call(pc, module->text_lo))
        return resolve_without_call(NULL, pc);
    gp_packed_row_t rule = is_return ? 0 : gp_switch_rule(pc, module->text_lo, module->text_hi);
    return rule != 0 ? rule : gp_row_special(GP_SPECIAL_NO_CFI, 0);
}

// Does the row that holds for [lo, hi), and nothing else, hold for each interrupted pc in the block of `pc`?
static bool resolve_holds_for_block(uintptr_t lo, uintptr_t hi, uintptr_t pc)
{
    uintptr_t first = pc & ~(uintptr_t)(GP_CACHE_BLOCK - 1), end = first + GP_CACHE_BLOCK;
    return lo <= first && end <= hi && !gp_entry_meets(first, end);
}

// Padding between two functions, where the first runs on into the second (glibc's __memmove_chk): what holds as the
// second one begins holds there. Returns false where `pc` is in none.
static bool resolve_padding(const gp_unwind_module_t *module, uintptr_t pc, gp_row_t *row)
{
    enum { PADDING_MAX = 64 }; // as far as functions are aligned
    uintptr_t at = pc;
    for (size_t len = gp_arch_nop(at, module->text_hi); len != 0 && at - pc < PADDING_MAX;
         len = gp_arch_nop(at, module->text_hi)) {
        at += len;
        if (gp_fde_row(module, at, row))
            return row->start == at;
    }
    return false;
}

static gp_packed_row_t resolve_compute(const gp_unwind_module_t *module, uintptr_t pc, bool is_return, bool *by_block)
{
    gp_row_t row;
    uintptr_t lookup = pc - is_return;
    *by_block = false;
    if (gp_entry_meets(lookup, lookup + 1))
        return gp_row_special(is_return ? GP_SPECIAL_HIDDEN : GP_SPECIAL_END, 0);
    if (!gp_fde_row(module, lookup, &row))
        return !is_return && resolve_padding(module, pc, &row) ? gp_row_pack(&row, row.start)
                                                               : resolve_without_row(module, pc, is_return);
    // A signal trampoline is returned to without ever having called.
    if (is_return && !row.signal_frame && !gp_arch_follows_call(pc, module->text_lo))
        return resolve_without_call(&row, pc);
    gp_row_t next;
    if (is_return && pc == row.end && gp_fde_row(module, pc, &next) && next.start == pc)
        return gp_row_special(GP_SPECIAL_LAST_CALL, 0);
    *by_block = !is_return && !row.cfa_is_expr && resolve_holds_for_block(row.lo, row.hi, pc);
    return gp_row_pack(&row, pc);
}

// The result of resolve_compute(), where it was put down and is as plain. Returns 0 where it is not: at a place that
// coroutines start at, for a return address with no call before it, or with another row behind it.
static gp_packed_row_t resolve_find_prepared(uintptr_t pc, bool is_return, bool *by_block)
{
    gp_row_range_t range;
    uintptr_t lookup = pc - is_return;
    if (gp_row_table_find(lookup, &range) == 0 || gp_entry_meets(lookup, lookup + 1) ||
        (is_return && (pc == range.hi || !gp_arch_follows_call(pc, range.text_lo))))
        return 0;
    *by_block = !is_return && resolve_holds_for_block(range.lo, range.hi, pc);
    return range.row;
}

// Where the row of `pc` belongs in the cache. Returns false where this place belongs to a block with more than one row.
static bool resolve_find_place(uintptr_t pc, bool is_return, bool by_block, uint64_t *hash)
{
    uint64_t of_block = gp_cache_hash_of_block(pc);
    *hash = by_block ? of_block : gp_cache_hash_of(pc, is_return);
    return by_block || is_return || *hash != of_block;
}

// Returns the slot, GP_CACHE_SLOTS where there is none.
static uint32_t resolve_keep(uintptr_t pc, bool is_return, bool by_block, gp_packed_row_t row, uint32_t module,
                             unsigned epoch)
{
    uint64_t hash;
    return resolve_find_place(pc, is_return, by_block, &hash) ? gp_cache_store(hash, row, module, epoch)
                                                              : GP_CACHE_SLOTS;
}

gp_packed_row_t gp_resolve(uintptr_t pc, bool is_return, uint32_t *slot, uint32_t *module)
{
    gp_unwind_module_t found;
    bool by_block;
    *slot = GP_CACHE_SLOTS;
    *module = UINT32_MAX;
    if (!gp_addr_plausible(pc))
        return gp_row_special(GP_SPECIAL_NO_CODE, 0);
    unsigned epoch = gp_cache_epoch();
    gp_packed_row_t row = resolve_find_prepared(pc, is_return, &by_block);
    if (row != 0) {
        *slot = resolve_keep(pc, is_return, by_block, row, *module, epoch);
        return row;
    }
    int number = gp_module_find(pc - is_return, &found);
    if (number == GP_MODULE_NONE)
        return gp_row_special(GP_SPECIAL_NO_CODE, 0);
    row = resolve_compute(&found, pc, is_return, &by_block) | (found.fixed ? 0 : GP_ROW_VOLATILE);
    if (number >= 0)
        *module = (uint32_t)number;
    if (number >= 0 || found.fixed)
        *slot = resolve_keep(pc, is_return, by_block, row, *module, epoch);
    return row;
}

// A word found on the stack, not read by a rule, may point into a module just being unloaded: the loader forgets a
// module only after it is unmapped. Ask the kernel whether its code can still be read.
static bool resolve_is_readable(uintptr_t at, size_t len)
{
    uint8_t bytes[16];
    return gp_peek(at, bytes, len);
}

bool gp_is_return_address(uintptr_t pc)
{
    gp_unwind_module_t module;
    gp_location_t where;
    enum { CALL_MAX = 8 };
    if (!gp_addr_plausible(pc) || !gp_module_locate(pc - 1, &where) ||
        (!gp_module_is_fixed(where.link_map) && !resolve_is_readable(pc - CALL_MAX, CALL_MAX)))
        return false;
    return gp_module_find(pc - 1, &module) != GP_MODULE_NONE && gp_arch_follows_call(pc, module.text_lo);
}

bool gp_resolve_full(uintptr_t pc, bool is_return, gp_unwind_module_t *storage, const gp_unwind_module_t **module,
                     gp_row_t *row)
{
    *module = NULL;
    if (!gp_addr_plausible(pc) || gp_module_find(pc - is_return, storage) == GP_MODULE_NONE)
        return false;
    *module = storage;
    return gp_fde_row(*module, pc - is_return, row);
}
