// SPDX-License-Identifier: MIT
// minicoro, implemented anywhere in the program: its switch routine, _mco_switch(from, to), and mco_create()
// are patched (../patch).
#include "coro/announce.h"
#include "minicoro/minicoro_layout.h"

#include "interpose/interpose.h"
#include "patch/hooks.h"

typedef int create_t(mco_coro_t **out, void *description);

void gp_minicoro_switch(const uintptr_t *arguments, const gp_park_t *park);
create_t gp_patch_mco_create;
void *gp_patch_real_mco_create;

void gp_minicoro_switch(const uintptr_t *arguments, const gp_park_t *park)
{
    gp_switch_to_stack(((const mco_registers_t *)arguments[1])->sp, park);
}

int gp_patch_mco_create(mco_coro_t **out, void *description)
{
    int result = GP_PATCHED(create_t, mco_create)(out, description);
    if (result == 0) {
        uintptr_t lo = (uintptr_t)(*out)->stack_low;
        gp_coro_announce(lo, lo + (*out)->stack_bytes, (uintptr_t)(*out)->run, NULL);
    }
    return result;
}
