// From a program counter to a packed row: module, FDE, program, and the rules for code without any.
#include "unwind/resolve.h"

#include <stddef.h>

#include "unwind/row_cache.h"

// No call stands before a return address that a coroutine's creator forged. Where the address is
// not inside the function that its row came from, or the row itself says "outermost", it is such a
// bottom: the first instruction of __start_context, abort, crash(); Boost's finish. Code whose
// calls were patched away lies inside its function and is not mistaken for one.
static bool is_forged_bottom(const gp_module_t *module, const gp_row_t *row, uintptr_t pc)
{
    if (row != NULL && (row->signal_frame ||
                        (pc < row->end && row->regs[row->ra_reg].kind != GP_RULE_UNDEFINED))) {
        return false;
    }
    return !gp_arch_follows_call(pc, module->text_lo);
}

static gp_packed_row_t without_row(const gp_module_t *module, uintptr_t pc, bool is_return)
{
    if (is_return && is_forged_bottom(module, NULL, pc)) {
        return gp_row_special(GP_SPECIAL_HIDDEN, 0);
    }
    gp_packed_row_t rule = is_return ? 0 : gp_switch_rule(pc, module->text_lo, module->text_hi);
    return rule != 0 ? rule : gp_row_special(GP_SPECIAL_NO_CFI, 0);
}

static gp_packed_row_t compute(const gp_module_t *module, uintptr_t pc, bool is_return)
{
    gp_row_t row;
    uintptr_t lookup = pc - is_return;
    if (gp_entry_contains(lookup)) {
        return gp_row_special(is_return ? GP_SPECIAL_HIDDEN : GP_SPECIAL_END, 0);
    }
    if (!gp_fde_row(module, lookup, &row)) {
        return without_row(module, pc, is_return);
    }
    if (is_return && is_forged_bottom(module, &row, pc)) {
        return gp_row_special(GP_SPECIAL_HIDDEN, 0);
    }
    return gp_row_pack(&row, pc);
}

gp_packed_row_t gp_resolve(uintptr_t pc, bool is_return, uint32_t *slot, uint32_t *module)
{
    gp_module_t storage;
    const gp_module_t *found;
    *slot = GP_CACHE_SLOTS;
    *module = UINT32_MAX;
    if (!gp_addr_plausible(pc)) {
        return gp_row_special(GP_SPECIAL_NO_CODE, 0);
    }
    unsigned epoch = gp_cache_epoch();
    int number = gp_module_find(pc - is_return, &storage, &found);
    if (number == GP_MODULE_NONE) {
        return gp_row_special(GP_SPECIAL_NO_CODE, 0);
    }
    gp_packed_row_t row = compute(found, pc, is_return) | (found->fixed ? 0 : GP_ROW_VOLATILE);
    if (number >= 0) {
        *module = (uint32_t)number;
    }
    if (number >= 0 || found->fixed) {
        uint64_t hash = gp_cache_hash(gp_arch_key(pc - is_return, is_return));
        *slot = gp_cache_store(hash, row, *module, epoch);
    }
    return row;
}

bool gp_is_return_address(uintptr_t pc)
{
    gp_module_t storage;
    const gp_module_t *module;
    return gp_addr_plausible(pc) && gp_module_find(pc - 1, &storage, &module) != GP_MODULE_NONE &&
           gp_arch_follows_call(pc, module->text_lo);
}

bool gp_resolve_full(uintptr_t pc, bool is_return, gp_module_t *storage, const gp_module_t **module,
                     gp_row_t *row)
{
    *module = NULL;
    if (!gp_addr_plausible(pc) ||
        gp_module_find(pc - is_return, storage, module) == GP_MODULE_NONE) {
        *module = NULL;
        return false;
    }
    return gp_fde_row(*module, pc - is_return, row);
}
