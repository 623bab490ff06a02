// SPDX-License-Identifier: MIT
#include "patch/hooks.h"

#include <stddef.h>
#include <string.h>

#include "patch_functions.h" // generated: the functions that the runtimes' folders declare

#define DECLARE(name)                                                                                                  \
    extern const char gp_patch_##name[] __attribute__((visibility("hidden")));                                         \
    extern void *gp_patch_real_##name __attribute__((visibility("hidden")));
GP_PATCH_EACH_FUNCTION(DECLARE)

const gp_patch_hook_t *gp_patch_hook(const char *symbol)
{
#define ROW(name) {#name, gp_patch_##name, &gp_patch_real_##name},
    static const gp_patch_hook_t hooks[] = {GP_PATCH_EACH_FUNCTION(ROW)};
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++)
        if (strcmp(hooks[i].symbol, symbol) == 0)
            return &hooks[i];
    return NULL;
}
