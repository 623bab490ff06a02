// SPDX-License-Identifier: MIT
#include "patch/targets.h"

#include <string.h>

enum { UNKNOWN_SIZE = 256 }; // looked through of a function of unknown size

// The next word of a comma-separated list; its length, 0 at the end.
static size_t targets_next_word(const char **at)
{
    *at += strspn(*at, ",");
    return strcspn(*at, ",");
}

static bool targets_is_word(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && strncmp(word, name, len) == 0;
}

bool gp_patch_is_requested(const char *request, const gp_patch_runtime_t *runtime, bool *by_name)
{
    bool all = false;
    size_t len;
    *by_name = false;
    for (const char *at = request; at != NULL && (len = targets_next_word(&at)) > 0; at += len) {
        all |= targets_is_word(at, len, "auto");
        *by_name |= targets_is_word(at, len, runtime->name);
    }
    return all || *by_name;
}

bool gp_patch_request_is_known(const char *request, const char **word)
{
    size_t len;
    for (*word = request; (len = targets_next_word(word)) > 0; *word += len) {
        bool known = targets_is_word(*word, len, "auto") || targets_is_word(*word, len, "none");
        for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; !known && runtime->name != NULL; runtime++)
            known = targets_is_word(*word, len, runtime->name);
        if (!known)
            return false;
    }
    return true;
}

static bool targets_find_function(const gp_elf_image_t *image, const gp_patch_function_t *what, bool by_code,
                                  gp_elf_function_t *out)
{
    *out = (gp_elf_function_t){0};
    if (gp_elf_function(image, what->symbol, out))
        return true;
    for (int i = 0; by_code && what->codes[i].bytes != NULL; i++)
        if (gp_elf_find_code(image, what->codes[i].bytes, what->codes[i].size, out))
            return true;
    out->code = NULL;
    return false;
}

static bool targets_is_excepted(const gp_elf_image_t *image, const gp_patch_runtime_t *runtime)
{
    for (int i = 0; runtime->unless[i] != NULL; i++)
        if (gp_elf_mentions(image, runtime->unless[i]))
            return true;
    return false;
}

bool gp_patch_find(const gp_elf_image_t *image, const gp_patch_runtime_t *runtime, bool by_name,
                   gp_patch_found_t *found)
{
    for (int i = 0; i < GP_PATCH_FUNCTIONS_MAX && runtime->functions[i].symbol != NULL; i++) {
        const gp_patch_function_t *what = &runtime->functions[i];
        if (!targets_find_function(image, what, by_name, &found->functions[i]) && !what->optional)
            return false;
    }
    return !targets_is_excepted(image, runtime);
}

bool gp_patch_is_unknown(const gp_elf_image_t *image, const gp_patch_runtime_t *runtime)
{
    gp_patch_found_t found = {0};
    gp_elf_function_t place;
    return runtime->sign != NULL && !gp_patch_find(image, runtime, true, &found) &&
           !targets_is_excepted(image, runtime) &&
           gp_elf_count_code(image, runtime->sign, runtime->sign_size, &place) > 0;
}

size_t gp_patch_function_size(const gp_elf_function_t *function)
{
    size_t size = function->size != 0 ? function->size : UNKNOWN_SIZE;
    return size < function->code_size ? size : function->code_size;
}
