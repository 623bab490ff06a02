// SPDX-License-Identifier: MIT
#include "patchable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "patch/prologue.h"
#include "run_checks.h"

enum { NEAR = 1 << 20 }; // as far away as the moved code may lie

static const char *patchable_find_refused(const gp_patch_runtime_t *runtime, const gp_patch_found_t *found)
{
    for (int i = 0; i < GP_PATCH_FUNCTIONS_MAX && runtime->functions[i].symbol != NULL; i++) {
        const gp_elf_function_t *function = &found->functions[i];
        gp_prologue_t moved;
        if (function->code == NULL || runtime->functions[i].optional)
            continue;
        if (gp_prologue_move(function->code, gp_patch_function_size(function), function->address,
                             function->address + NEAR, &moved) != 0)
            return runtime->functions[i].symbol;
    }
    return NULL;
}

gp_patchable_t gp_patchable(const char *path, const gp_patch_runtime_t *runtime, const char **refused)
{
    gp_elf_image_t image;
    gp_patch_found_t found = {0};
    gp_patchable_t result = GP_PATCHABLE_NOT;
    *refused = NULL;
    if (gp_elf_map(path, &image) != 0)
        return GP_PATCHABLE_NOT;
    gp_elf_scan(&image);
    if (gp_patch_find(&image, runtime, false, &found))
        result = GP_PATCHABLE_ITSELF;
    else if (gp_patch_find(&image, runtime, true, &found))
        result = GP_PATCHABLE_BY_NAME;
    else if (gp_patch_is_unknown(&image, runtime))
        result = GP_PATCHABLE_UNKNOWN;
    if (result > GP_PATCHABLE_UNKNOWN && (*refused = patchable_find_refused(runtime, &found)) != NULL)
        result = GP_PATCHABLE_REFUSED;
    gp_elf_unmap(&image);
    return result;
}

static int patchable_refuse_word(const char *word)
{
    char names[256] = "";
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; runtime->name != NULL; runtime++) {
        size_t len = strlen(names);
        if (!gp_patch_is_more(runtime))
            snprintf(names + len, sizeof(names) - len, ", %s", runtime->name);
    }
    return gp_usage_error("run", "--patch: unknown runtime '%.*s'; use auto, none%s", (int)strcspn(word, ","), word,
                          names);
}

int gp_run_patch(const char *request, const char *program)
{
    char path[PATH_MAX];
    const char *word, *refused;
    if (request == NULL)
        request = getenv("GREENPROF_PATCH");
    if (request == NULL)
        request = "auto";
    if (!gp_patch_request_is_known(request, &word))
        return patchable_refuse_word(word);
    bool found = gp_run_find_program(program, path) == 0;
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; found && runtime->name != NULL; runtime++) {
        bool by_name;
        if (gp_patch_is_requested(request, runtime, &by_name) && by_name &&
            gp_patchable(path, runtime, &refused) == GP_PATCHABLE_REFUSED)
            return gp_fail(path, "cannot be patched for %s: %s() begins in a way that greenprof does not know",
                           runtime->name, refused);
    }
    setenv("GREENPROF_PATCH", request, 1);
    return 0;
}
