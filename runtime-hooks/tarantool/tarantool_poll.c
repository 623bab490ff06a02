// SPDX-License-Identifier: MIT
// Tarantool where it is not patched: the running fiber is read at each sample, from the program's variable cord_ptr.
//
// cord_ptr is NULL on threads without a cord; else the cord outlives its thread (cord_join() frees it), and its first
// word is the running fiber: set, never freed while it runs. The handler dereferences these words and no others, on
// their own thread. fiber_self() reads the same two words, but crashes or, since 2.11, allocates where there is no
// cord: it is not called. Source: Tarantool 1.10 to 3.9, src/lib/core/fiber.h.
#include "interface.h"
#include "patch/hooks.h"
#include "settings.h"
#include "signal/poll.h"

// 2.10 has an identity of 64 bits behind a gap.
static const gp_poll_layout_t before_2_11 = {
    .low_at = 16,
    .size_at = {32},
    .id = {{100, 4}, {104, 4}},
};

// Fibers have more in them: where the identity is differs by version.
static const gp_poll_layout_t since_2_11 = {
    .low_at = 16,
    .size_at = {32, 40},
};

static void tarantool_poll_fibers(const gp_patch_program_t *program)
{
    gp_elf_variable_t cord;
    if (!gp_elf_variable(&program->image, "cord_ptr", &cord))
        return;
    gp_poll_t poll = {
        .layout = gp_elf_mentions(&program->image, "fiber_set_ctx") ? &since_2_11 : &before_2_11,
        .is_thread_local = cord.is_thread_local,
        .variable = (intptr_t)((cord.is_thread_local ? 0 : program->base) + cord.address),
    };
    gp_poll_add(&poll);
}

// As the core is loaded: behind the entry patches, before the program and so before its threads.
__attribute__((constructor(151))) static void tarantool_poll_load(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    gp_patch_program_t program;
    if (gp_setting_is(GP_SETTING_POLL, "none") || first() != gp_core_own_interface() || gp_patch_is_done("tarantool") ||
        gp_patch_open_program(&program) != 0)
        return;
    tarantool_poll_fibers(&program);
    gp_elf_unmap(&program.image);
}
