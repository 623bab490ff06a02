// SPDX-License-Identifier: MIT
// What must be done outside any handler.
#include <stdatomic.h>

#include "unwind/debug_frame.h"
#include "unwind/module.h"
#include "unwind/unwind.h"

static _Atomic unsigned refreshing;

int gp_unwind_init(void)
{
    gp_module_fixed_prepare();
    gp_unwind_refresh();
    return 0;
}

void gp_unwind_refresh(void)
{
    unsigned idle = 0;
    // The second caller may return: the first one is looking at the same modules.
    if (!atomic_compare_exchange_strong_explicit(&refreshing, &idle, 1, memory_order_acquire, memory_order_relaxed))
        return;
    gp_module_locate_prepare();
    gp_debug_frame_prepare();
    atomic_store_explicit(&refreshing, 0, memory_order_release);
}
