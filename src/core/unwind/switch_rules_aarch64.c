// SPDX-License-Identifier: MIT
// No switch routine of an aarch64 runtime has been measured yet.
#include "unwind/resolve.h"

gp_packed_row_t gp_switch_rule(uintptr_t pc, uintptr_t lo, uintptr_t hi)
{
    (void)pc, (void)lo, (void)hi;
    return 0;
}
