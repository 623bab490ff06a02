// SPDX-License-Identifier: MIT
// Finds what can be polled as the core is loaded: before the program, and so before its threads. GREENPROF_POLL=none:
// nothing.
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "interface.h"
#include "patch/hooks.h"
#include "poll/runtimes.h"
#include "settings.h"

static int note_base(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    *(uintptr_t *)argument = info->dlpi_addr;
    return 1; // the first one is the program
}

static bool look_for(const gp_elf_image_t *program, const gp_poll_runtime_t *runtime)
{
    gp_elf_variable_t variable;
    uintptr_t base = 0;
    if ((runtime->patch != NULL && gp_patch_is_done(runtime->patch)) || !gp_poll_find(program, runtime, &variable))
        return false;
    if (!variable.is_thread_local)
        dl_iterate_phdr(note_base, &base);
    gp_poll_t poll = {
        .layout = &runtime->layout,
        .is_thread_local = variable.is_thread_local,
        .variable = (intptr_t)(base + variable.address),
    };
    return gp_poll_add(&poll);
}

// Behind that of the entry patches.
__attribute__((constructor(151))) static void load(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    gp_elf_image_t program;
    if (gp_setting_is(GP_SETTING_POLL, "none") || first() != gp_core_own_interface() ||
        gp_elf_map("/proc/self/exe", &program) != 0)
        return;
    const char *found = "";
    for (const gp_poll_runtime_t *runtime = gp_poll_runtimes; runtime->title != NULL; runtime++)
        if (strcmp(found, runtime->variable) != 0 && look_for(&program, runtime))
            found = runtime->variable;
    gp_elf_unmap(&program);
}
