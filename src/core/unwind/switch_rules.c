// SPDX-License-Identifier: MIT
#include "unwind/switch_rules.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "unwind/row_cache.h"

enum { ROUTINES_MAX = 16 };

static const gp_switch_routine_t *routines[ROUTINES_MAX];
static _Atomic unsigned routine_count;

int gp_switch_routine_add(const gp_switch_routine_t *routine)
{
    unsigned count = atomic_load_explicit(&routine_count, memory_order_relaxed);
    if (count == ROUTINES_MAX)
        return -ENOSPC;
    routines[count] = routine;
    // Release: pairs with gp_switch_rule()'s acquire.
    atomic_store_explicit(&routine_count, count + 1, memory_order_release);
    gp_cache_flush(); // of rows from before
    return 0;
}

static gp_packed_row_t switch_rules_row_at(const gp_switch_routine_t *routine, size_t offset)
{
    size_t i = routine->step_count - 1;
    while (routine->steps[i].offset > offset)
        i--;
    return gp_row_simple(GP_ROW_SP, routine->steps[i].cfa_words, routine->steps[i].fp_slot, 1);
}

// Where in `routine` is `pc`? Its length where it is not inside.
static size_t switch_rules_offset_in(const gp_switch_routine_t *routine, uintptr_t pc, uintptr_t lo, uintptr_t hi)
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
    // Acquire: pairs with gp_switch_routine_add()'s release.
    unsigned count = atomic_load_explicit(&routine_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        size_t offset = switch_rules_offset_in(routines[i], pc, lo, hi);
        if (offset < routines[i]->len)
            return switch_rules_row_at(routines[i], offset);
    }
    return 0;
}
