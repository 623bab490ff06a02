// SPDX-License-Identifier: MIT
// Fixed rules for switch routines that carry no unwind table, recognised by their whole body.
//
// A routine's body is compared byte by byte, so the rule at each offset is exact. Up to the
// instruction that loads the stack pointer the frame is the old coroutine's, from then on the new
// one's: both saved the same layout.
#include <string.h>

#include "unwind/resolve.h"

// From `offset` on (until the next entry) this row holds. A return address just below the stack
// pointer is still where it was: nothing writes there before the routine's final jump.
typedef struct rule_step {
    uint8_t offset;
    uint8_t cfa_words; // CFA = stack pointer + 8n
    uint8_t fp_slot;   // frame pointer at CFA - 8n, 0: in its register
} rule_step_t;

typedef struct switch_routine {
    const uint8_t *body;
    size_t len;
    const rule_step_t *steps;
    size_t step_count;
} switch_routine_t;

// Boost.Context 1.74, jump_x86_64_sysv_elf_gas.S (measured in Debian 12's libboost_context).
static const uint8_t boost_jump[] = {
    0x48, 0x8d, 0x64, 0x24, 0xc8, 0x0f, 0xae, 0x1c, 0x24, 0xd9, 0x7c, 0x24, 0x04, 0x4c, 0x89, 0x64, 0x24, 0x08,
    0x4c, 0x89, 0x6c, 0x24, 0x10, 0x4c, 0x89, 0x74, 0x24, 0x18, 0x4c, 0x89, 0x7c, 0x24, 0x20, 0x48, 0x89, 0x5c,
    0x24, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x89, 0xfc, 0x4c, 0x8b, 0x44, 0x24, 0x38,
    0x0f, 0xae, 0x14, 0x24, 0xd9, 0x6c, 0x24, 0x04, 0x4c, 0x8b, 0x64, 0x24, 0x08, 0x4c, 0x8b, 0x6c, 0x24, 0x10,
    0x4c, 0x8b, 0x74, 0x24, 0x18, 0x4c, 0x8b, 0x7c, 0x24, 0x20, 0x48, 0x8b, 0x5c, 0x24, 0x28, 0x48, 0x8b, 0x6c,
    0x24, 0x30, 0x48, 0x8d, 0x64, 0x24, 0x40, 0x48, 0x89, 0xf2, 0x48, 0x89, 0xc7, 0x41, 0xff, 0xe0,
};
static const rule_step_t boost_jump_steps[] = {
    {0x00, 1, 0},               // not yet begun
    {0x05, 8, 0},               // saving
    {0x31, 8, 2},               // on the new stack, its frame pointer not yet loaded
    {0x5c, 8, 0}, {0x61, 0, 0}, // popped: the target is in r8, and still below the stack pointer
};

// Boost.Context 1.74, ontop_x86_64_sysv_elf_gas.S.
static const uint8_t boost_ontop[] = {
    0x49, 0x89, 0xd0, 0x48, 0x8d, 0x64, 0x24, 0xc8, 0x0f, 0xae, 0x1c, 0x24, 0xd9, 0x7c, 0x24, 0x04, 0x4c, 0x89,
    0x64, 0x24, 0x08, 0x4c, 0x89, 0x6c, 0x24, 0x10, 0x4c, 0x89, 0x74, 0x24, 0x18, 0x4c, 0x89, 0x7c, 0x24, 0x20,
    0x48, 0x89, 0x5c, 0x24, 0x28, 0x48, 0x89, 0x6c, 0x24, 0x30, 0x48, 0x89, 0xe0, 0x48, 0x89, 0xfc, 0x0f, 0xae,
    0x14, 0x24, 0xd9, 0x6c, 0x24, 0x04, 0x4c, 0x8b, 0x64, 0x24, 0x08, 0x4c, 0x8b, 0x6c, 0x24, 0x10, 0x4c, 0x8b,
    0x74, 0x24, 0x18, 0x4c, 0x8b, 0x7c, 0x24, 0x20, 0x48, 0x8b, 0x5c, 0x24, 0x28, 0x48, 0x8b, 0x6c, 0x24, 0x30,
    0x48, 0x8d, 0x64, 0x24, 0x38, 0x48, 0x89, 0xf2, 0x48, 0x89, 0xc7, 0x41, 0xff, 0xe0,
};
static const rule_step_t boost_ontop_steps[] = {
    {0x00, 1, 0}, {0x08, 8, 0}, {0x34, 8, 2},
    {0x5a, 8, 0}, {0x5f, 1, 0}, // the return address stays for the function it jumps to
};

#define ROUTINE(name)                                                                                                  \
    {                                                                                                                  \
        name, sizeof name, name##_steps, sizeof name##_steps / sizeof(rule_step_t)                                     \
    }

static const switch_routine_t routines[] = {
    ROUTINE(boost_jump),
    ROUTINE(boost_ontop),
};

static gp_packed_row_t row_at(const switch_routine_t *routine, size_t offset)
{
    size_t i = routine->step_count - 1;
    while (routine->steps[i].offset > offset)
        i--;
    return gp_row_simple(GP_ROW_SP, routine->steps[i].cfa_words, routine->steps[i].fp_slot, 1);
}

// Where in `routine` is `pc`? Its length where it is not inside.
static size_t offset_in(const switch_routine_t *routine, uintptr_t pc, uintptr_t lo, uintptr_t hi)
{
    for (size_t offset = 0; offset < routine->len && offset <= pc - lo; offset++) {
        const uint8_t *start = (const uint8_t *)(pc - offset);
        if (start[0] == routine->body[0] && routine->len <= hi - (uintptr_t)start &&
            memcmp(start, routine->body, routine->len) == 0)
            return offset;
    }
    return routine->len;
}

gp_packed_row_t gp_switch_rule(uintptr_t pc, uintptr_t lo, uintptr_t hi)
{
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++) {
        size_t offset = offset_in(&routines[i], pc, lo, hi);
        if (offset < routines[i].len)
            return row_at(&routines[i], offset);
    }
    return 0;
}
