// SPDX-License-Identifier: MIT
#include "poll/runtimes.h"

// A row says why it is safe to read: the handler dereferences these words and no others, on the thread that they belong
// to.
const gp_poll_runtime_t gp_poll_runtimes[] = {
    {
        // cord_ptr is NULL on threads that are no cord; else the cord outlives its thread (cord_join() frees it), and
        // its first word is the fiber that runs: set, never freed while it is. fiber_self() reads the same two words,
        // but crashes or, since 2.11, allocates where there is no cord: it is not called. 2.10 has an identity of 64
        // bits behind a gap. Source: Tarantool 1.10 to 3.9, src/lib/core/fiber.h.
        .title = "Tarantool fibers",
        .variable = "cord_ptr",
        .unless = {"fiber_set_ctx"}, // since 2.11
        .patch = "tarantool",
        .layout = {.steps = 1, .low_at = 16, .size_at = {32}, .id = {{100, 4}, {104, 4}}, .name = GP_POLL_NAME_POINTER},
    },
    {
        // The same, where fibers have more in them: where the identity is differs by version.
        .title = "Tarantool fibers",
        .variable = "cord_ptr",
        .patch = "tarantool",
        .layout = {.steps = 1, .low_at = 16, .size_at = {32, 40}, .name = GP_POLL_NAME_POINTER},
    },
    {0},
};

bool gp_poll_find(const gp_elf_image_t *program, const gp_poll_runtime_t *runtime, gp_elf_variable_t *variable)
{
    if (!gp_elf_variable(program, runtime->variable, variable))
        return false;
    for (size_t i = 0; i < sizeof(runtime->unless) / sizeof(runtime->unless[0]) && runtime->unless[i] != NULL; i++)
        if (gp_elf_mentions(program, runtime->unless[i]))
            return false;
    return true;
}
