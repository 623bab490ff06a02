// SPDX-License-Identifier: MIT
// In the handler: from the innermost entry outward.
#include "lua_frames.h"

gp_lua_runtime_t gp_lua_runtime;
__thread gp_lua_entry_t *gp_lua_calls __attribute__((tls_model("initial-exec")));

// Is it a function in C without a caller in Lua? Then it is the program's, as its native callers are.
static bool lua_walk_is_of_host(uintptr_t word)
{
    const gp_lua_function_t *function = &gp_lua_runtime.table->functions[gp_lua_word_function(word)];
    return gp_lua_word_function(word) != 0 && function->is_c && function->name_len == 0;
}

size_t gp_lua_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags)
{
    // Acquire: partner of the release in lua_trial.c.
    const gp_lua_dialect_t *dialect = atomic_load_explicit(&gp_lua_runtime.dialect, memory_order_acquire);
    gp_lua_walk_t walk = {.place = place, .frames = frames, .max = max, .flags = flags};
    const gp_lua_entry_t *entry = gp_lua_live(&walk, gp_lua_calls);
    if (dialect == NULL)
        return 0;
    while (entry != NULL)
        entry = dialect->walk(&walk, entry);
    if (walk.depth > 0 && lua_walk_is_of_host(frames[walk.depth - 1]))
        walk.depth--;
    if (walk.depth > 0)
        frames[walk.depth - 1] |= GP_LANGUAGE_ENTRY;
    return walk.depth;
}

size_t gp_lua_walk_waiting(uintptr_t state, uintptr_t *frames, size_t max)
{
    const gp_lua_dialect_t *dialect = atomic_load_explicit(&gp_lua_runtime.dialect, memory_order_acquire);
    const gp_language_place_t nowhere = {.sp = UINTPTR_MAX / 2, .stack_hi = UINTPTR_MAX / 2, .in_doubt = true};
    gp_lua_entry_t entry = {.state = state, .is_apart = true};
    unsigned flags = 0;
    gp_lua_walk_t walk = {.place = &nowhere, .frames = frames, .max = max, .is_begun = true, .flags = &flags};
    if (dialect != NULL)
        dialect->walk(&walk, &entry);
    if (walk.depth > 0)
        frames[walk.depth - 1] |= GP_LANGUAGE_ENTRY;
    return walk.depth;
}

bool gp_lua_is_loop(uintptr_t pc)
{
    return pc - gp_lua_runtime.loop < gp_lua_runtime.loop_end - gp_lua_runtime.loop;
}

bool gp_lua_is_own(uintptr_t pc)
{
    return pc - gp_lua_runtime.code < gp_lua_runtime.code_end - gp_lua_runtime.code;
}
