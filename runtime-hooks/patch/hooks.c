// SPDX-License-Identifier: MIT
#include "patch/hooks.h"

#include <stddef.h>
#include <string.h>

#include "patch_functions.h" // generated: the functions that the runtimes' folders declare
#include "patch_words.h"     // generated: their places

#define DECLARE(name)                                                                                                  \
    extern const char gp_patch_##name[] __attribute__((visibility("hidden")));                                         \
    extern void *gp_patch_real_##name __attribute__((visibility("hidden")));
GP_PATCH_EACH_FUNCTION(DECLARE)

const gp_patch_hook_t *gp_patch_hook(const char *symbol)
{
#define ROW(name) {#name, gp_patch_##name, &gp_patch_real_##name},
    static const gp_patch_hook_t hooks[] = {GP_PATCH_EACH_FUNCTION(ROW)};
    const struct patch_word *word = patch_word_find(symbol, strlen(symbol)); // functions first
    return word != NULL && (size_t)word->place < sizeof(hooks) / sizeof(hooks[0]) ? &hooks[word->place] : NULL;
}
