// SPDX-License-Identifier: MIT
#include "patch/hooks.h"

#include <stddef.h>
#include <string.h>

// clang-format off
#define FUNCTIONS(EACH) \
    EACH(coro_transfer) EACH(coro_create) EACH(fiber_new_ex) EACH(fiber_set_name) EACH(fiber_recycle) \
    EACH(lua_resume) \
    EACH(jump_fcontext) EACH(ontop_fcontext) EACH(make_fcontext) \
    EACH(_mco_switch) EACH(mco_create)
// clang-format on

#define DECLARE(name)                                                                                                  \
    extern const char gp_patch_##name[] __attribute__((visibility("hidden")));                                         \
    extern void *gp_patch_real_##name __attribute__((visibility("hidden")));
FUNCTIONS(DECLARE)

const gp_patch_hook_t *gp_patch_hook(const char *symbol)
{
#define ROW(name) {#name, gp_patch_##name, &gp_patch_real_##name},
    static const gp_patch_hook_t hooks[] = {FUNCTIONS(ROW)};
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
        if (strcmp(hooks[i].symbol, symbol) == 0)
            return &hooks[i];
    return NULL;
}
