// SPDX-License-Identifier: MIT
#include "unwind/leaf.h"

#include <string.h>

#include "unwind/resolve.h"

enum {
    // Pushes and locals of an assembly routine: the ones seen keep less than this. musl's qsort() has 96 in one array.
    SCAN_WORDS = GP_LIBC_HAS_ROWS ? 48 : 192,
    ROUTINE_BYTES = 16384, // a longer one would be a surprise
    JUMPS_MAX = 2,         // PLT entry, then the routine or a jump to it
};

static int32_t leaf_x86_64_read_i32(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

// Code that may be read: a word on the stack may lead into a module just being unloaded, so only permanent modules, or
// the interrupted one, will do.
static bool leaf_x86_64_in_text(uintptr_t address, uintptr_t pc)
{
    gp_unwind_module_t module;
    gp_location_t where;
    if (!gp_addr_plausible(address) || !gp_module_locate(address, &where) ||
        !(gp_module_is_fixed(where.link_map) || (pc >= where.lo && pc < where.hi)))
        return false;
    return gp_module_find(address, &module) != GP_MODULE_NONE && address + 16 <= module.text_hi;
}

// Where code at `target` goes at once: through `jmp rel32`, or `jmp *slot(%rip)` as PLT entries do; else `target`.
static uintptr_t leaf_x86_64_through_jump(uintptr_t target)
{
    static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    const uint8_t *code = (const uint8_t *)target;
    if (memcmp(code, endbr64, sizeof(endbr64)) == 0)
        code += sizeof(endbr64);
    if (*code == 0xf2) // bnd
        code++;
    if (*code == 0xe9)
        return (uintptr_t)code + 5 + (uintptr_t)(intptr_t)leaf_x86_64_read_i32(code + 1);
    if (code[0] != 0xff || code[1] != 0x25)
        return target;
    uintptr_t slot = (uintptr_t)code + 6 + (uintptr_t)(intptr_t)leaf_x86_64_read_i32(code + 2), resolved;
    gp_location_t where;
    if (!gp_module_locate(target, &where) || !gp_module_reads(&where, slot, sizeof(resolved)))
        return target;
    memcpy(&resolved, (const void *)slot, sizeof(resolved));
    return resolved;
}

// In a library without rows the routine may have come from a function behind it, by a jump: qsort() to qsort_r().
static bool leaf_x86_64_is_near(uintptr_t target, uintptr_t pc)
{
    return (target <= pc && pc - target < ROUTINE_BYTES) || (!GP_LIBC_HAS_ROWS && target - pc < ROUTINE_BYTES);
}

static bool leaf_x86_64_leads_to(uintptr_t target, uintptr_t pc)
{
    for (int jumps = 0; jumps <= JUMPS_MAX; jumps++) {
        if (leaf_x86_64_is_near(target, pc))
            return true;
        if (!leaf_x86_64_in_text(target, pc))
            return false;
        uintptr_t next = leaf_x86_64_through_jump(target);
        if (next == target)
            return false;
        target = next;
    }
    return false;
}

static bool leaf_x86_64_is_direct_call(uintptr_t ra)
{
    return *(const uint8_t *)(ra - 5) == 0xe8;
}

static bool leaf_x86_64_direct_call_leads_to(uintptr_t ra, uintptr_t pc)
{
    return leaf_x86_64_is_direct_call(ra) &&
           leaf_x86_64_leads_to(ra + (uintptr_t)(intptr_t)leaf_x86_64_read_i32((const uint8_t *)(ra - 4)), pc);
}

bool gp_call_may_enter(uintptr_t ra, uintptr_t start)
{
    if (!gp_is_return_address(ra))
        return false;
    if (!leaf_x86_64_is_direct_call(ra))
        return true;
    uintptr_t target = ra + (uintptr_t)(intptr_t)leaf_x86_64_read_i32((const uint8_t *)(ra - 4));
    for (int jumps = 0; jumps < JUMPS_MAX && target != start; jumps++) {
        if (!leaf_x86_64_in_text(target, ra - 1))
            return false;
        target = leaf_x86_64_through_jump(target);
    }
    return target == start;
}

enum gp_step gp_step_leaf(gp_frame_t *frame, gp_stack_memory_t *stack)
{
    uintptr_t at = frame->sp, ra;
    if (!leaf_x86_64_in_text(frame->pc, frame->pc))
        return GP_STEP_LOST; // made at run time: nothing is known of its calls
    for (int i = 0; i < SCAN_WORDS && gp_stack_read(stack, at, &ra); i++, at += sizeof(ra)) {
        if (!gp_is_return_address(ra))
            continue;
        // A call through a register or a table cannot be checked: believed only where nothing has been pushed.
        if (leaf_x86_64_direct_call_leads_to(ra, frame->pc) ||
            (i == 0 && frame->exact && !leaf_x86_64_is_direct_call(ra))) {
            *frame = (gp_frame_t){.pc = ra, .sp = at + sizeof(ra), .fp = frame->fp};
            return GP_STEP_OK;
        }
    }
    return GP_STEP_LOST;
}
