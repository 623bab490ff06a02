// SPDX-License-Identifier: MIT
// Patches what GREENPROF_PATCH asks for, as the core is loaded: before the program, and so before its threads.
//
// A runtime is patched as a whole: where one of its functions is refused, none of them is touched.
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "base/main_file.h"
#include "interface.h"
#include "not_known.h"
#include "patch/hooks.h"
#include "patch/patch.h"
#include "patch/targets.h"
#include "settings.h"
#include "signal/thread.h"

enum { CHECKED_BYTES = 16 };

static int apply_note_base(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    *(uintptr_t *)argument = info->dlpi_addr;
    return 1; // the first one is the program
}

int gp_patch_open_program(gp_patch_program_t *program)
{
    char path[GP_MAIN_FILE_SIZE];
    dl_iterate_phdr(apply_note_base, &program->base);
    return gp_elf_map(gp_main_file(path), &program->image);
}

void *gp_patch_program_function(const char *name)
{
    gp_patch_program_t program;
    gp_elf_function_t function;
    if (gp_patch_open_program(&program) != 0)
        return NULL;
    bool found = gp_elf_function(&program.image, name, &function);
    gp_elf_unmap(&program.image);
    return found ? (void *)(program.base + function.address) : NULL;
}

static int apply_prepare(const gp_patch_program_t *program, const gp_elf_function_t *function,
                         const gp_patch_hook_t *hook, gp_patch_t *patch)
{
    uintptr_t address = program->base + function->address;
    size_t size = gp_patch_function_size(function), checked = size < CHECKED_BYTES ? size : CHECKED_BYTES;
    if (memcmp((const void *)address, function->code, checked) != 0)
        return -ESTALE; // the code differs from the file, or is patched already
    return gp_patch_prepare(patch, address, size, hook->stub);
}

static unsigned done; // a bit for each row of the table

bool gp_patch_is_done(const char *name)
{
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; runtime->name != NULL; runtime++)
        if (strcmp(runtime->name, name) == 0)
            return done >> (runtime - gp_patch_runtimes) & 1;
    return false;
}

// Returns how many functions were refused.
static unsigned apply_patch_runtime(const gp_patch_program_t *program, const gp_patch_runtime_t *runtime,
                                    const gp_patch_found_t *found)
{
    gp_patch_t patches[GP_PATCH_FUNCTIONS_MAX];
    bool ready[GP_PATCH_FUNCTIONS_MAX] = {false};
    unsigned refused = 0;
    bool complete = true;
    for (int i = 0; i < GP_PATCH_FUNCTIONS_MAX && runtime->functions[i].symbol != NULL; i++) {
        const gp_patch_hook_t *hook = gp_patch_hook(runtime->functions[i].symbol);
        bool present = found->functions[i].code != NULL;
        ready[i] = present && apply_prepare(program, &found->functions[i], hook, &patches[i]) == 0;
        refused += present && !ready[i];
        complete &= ready[i] || runtime->functions[i].optional;
    }
    if (complete)
        done |= 1u << (runtime - gp_patch_runtimes);
    for (int i = 0; i < GP_PATCH_FUNCTIONS_MAX && complete; i++) {
        if (!ready[i])
            continue;
        *gp_patch_hook(runtime->functions[i].symbol)->original = patches[i].original;
        refused += gp_patch_apply(&patches[i]) != 0;
    }
    return refused;
}

static void apply_patch_all(const char *request)
{
    static gp_not_known_t facts[CHAR_BIT * sizeof(done)]; // a row each
    gp_patch_program_t program;
    unsigned refused = 0;
    if (gp_patch_open_program(&program) != 0)
        return;
    gp_elf_scan(&program.image);
    for (const gp_patch_runtime_t *runtime = gp_patch_runtimes; runtime->name != NULL; runtime++) {
        gp_patch_found_t found = {0};
        bool by_name;
        if (!gp_patch_is_requested(request, runtime, &by_name) ||
            !gp_patch_find(&program.image, runtime, by_name, &found))
            continue;
        unsigned more = gp_patch_is_alone() ? apply_patch_runtime(&program, runtime, &found) : 1;
        if (more > 0)
            gp_not_known_tell(&facts[runtime - gp_patch_runtimes],
                              "%s: functions that could not be patched, their switches are not seen", runtime->title);
        refused += more;
    }
    gp_elf_unmap(&program.image);
    atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_UNPATCHED], refused, memory_order_relaxed);
}

// Before the core's own constructor, which starts a thread.
__attribute__((constructor(150))) static void apply_load(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    const char *request = gp_setting(GP_SETTING_PATCH);
    if (request != NULL && first() == gp_core_own_interface())
        apply_patch_all(request);
}
