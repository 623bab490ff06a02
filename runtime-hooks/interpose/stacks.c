// SPDX-License-Identifier: MIT
// The place of a stack, and a frame of it.

#include <link.h>

#include "base/maps.h"
#include "interpose/interpose.h"
#include "unwind/resolve.h"
#include "unwind/row_cache.h"
#include "unwind/step.h"

enum { FRAME_MAX_BYTES = 4096 };

void gp_hook_code_of(const void *base, uintptr_t *lo, uintptr_t *hi)
{
    const ElfW(Ehdr) *head = base;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)((uintptr_t)base + head->e_phoff);
    uintptr_t moved = head->e_type == ET_DYN ? (uintptr_t)base : 0;
    for (int i = 0; i < head->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X) {
            *lo = moved + segments[i].p_vaddr;
            *hi = *lo + segments[i].p_memsz;
        }
}

bool gp_hook_mapping(uintptr_t address, uintptr_t *lo, uintptr_t *hi)
{
    gp_mapping_t mapping = {0};
    bool found = gp_maps_find(address, &mapping) == 0;
    *lo = mapping.lo;
    *hi = mapping.hi;
    return found;
}

// The row of the one helper that is asked for: a runtime has one. Published once.
static gp_packed_row_t stacks_row_of(uintptr_t pc)
{
    static _Atomic uintptr_t known_pc;
    static _Atomic gp_packed_row_t known_row;
    uint32_t slot, module;
    if (atomic_load_explicit(&known_pc, memory_order_acquire) == pc)
        return atomic_load_explicit(&known_row, memory_order_relaxed);
    gp_packed_row_t row = gp_resolve(pc, true, &slot, &module), none = 0;
    if (atomic_compare_exchange_strong_explicit(&known_row, &none, row, memory_order_relaxed, memory_order_relaxed))
        atomic_store_explicit(&known_pc, pc, memory_order_release);
    return row;
}

bool gp_hook_park_outward(gp_park_t *park)
{
    gp_packed_row_t row = stacks_row_of(park->pc);
    gp_stack_memory_t stack = gp_stack_of(park->sp, park->sp + FRAME_MAX_BYTES);
    gp_frame_t frame = {.pc = park->pc, .sp = park->sp, .fp = park->fp};
    if (gp_row_kind(row) == GP_ROW_SPECIAL || gp_step_packed(row, &frame, &stack) != GP_STEP_OK)
        return false;
    *park = (gp_park_t){.pc = frame.pc, .sp = frame.sp, .fp = frame.fp};
    return true;
}
