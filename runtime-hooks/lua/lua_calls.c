// SPDX-License-Identifier: MIT
// Calls into Lua that come back whatever happens in them: each leaves an entry where the handler finds the state. And
// the function by which all prototypes are made. Arguments are passed on as they are: their types differ by version.
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "lua_frames.h"
#include "patch/hooks.h"

typedef uintptr_t word_t;
typedef int call_t(word_t state, word_t b, word_t c, word_t d, word_t e, word_t f);

// Its frame, and those of the functions that call it, are not shown; what is within them is the program's.
GP_ENTRY_CODE static int lua_calls_within(call_t *real, bool is_program, word_t state, word_t b, word_t c, word_t d,
                                          word_t e, word_t f)
{
    gp_lua_entry_t entry;
    if (!gp_lua_enter(&entry, (const void *)(uintptr_t)real, state, is_program))
        return real(state, b, c, d, e, f);
    int status = real(state, b, c, d, e, f);
    gp_lua_leave(&entry);
    return status;
}

GP_ENTRY_CODE static int lua_calls_load(call_t *real, bool is_program, word_t state, word_t b, word_t c, word_t d,
                                        word_t e, word_t f)
{
    bool is_known = gp_lua_try((const void *)(uintptr_t)real, is_program);
    int status = real(state, b, c, d, e, f);
    const gp_lua_dialect_t *dialect = atomic_load_explicit(&gp_lua_runtime.dialect, memory_order_relaxed);
    uintptr_t proto = is_known && status == 0 && dialect != NULL ? dialect->top_proto(state) : 0;
    if (proto != 0)
        gp_lua_meet(dialect, proto);
    return status;
}

bool gp_lua_enter(gp_lua_entry_t *entry, const void *real, uintptr_t state, bool is_program)
{
    if (!gp_lua_try(real, is_program))
        return false;
    gp_lua_entry_t *outer = gp_lua_calls; // not to be read: its stack may be gone
    *entry = (gp_lua_entry_t){.outer = outer, .self = entry, .state = state};
    atomic_signal_fence(memory_order_release); // the handler sees it whole
    gp_lua_calls = entry;
    return true;
}

// The function of shared libraries, and the patched one of the program itself.
#define CALL(name, through)                                                                                            \
    PROF_API GP_ENTRY_CODE call_t name;                                                                                \
    int name(word_t state, word_t b, word_t c, word_t d, word_t e, word_t f)                                           \
    {                                                                                                                  \
        return through(GP_ORIGINAL(call_t, #name), false, state, b, c, d, e, f);                                       \
    }                                                                                                                  \
    GP_ENTRY_CODE call_t gp_patch_##name;                                                                              \
    void *gp_patch_real_##name;                                                                                        \
    int gp_patch_##name(word_t state, word_t b, word_t c, word_t d, word_t e, word_t f)                                \
    {                                                                                                                  \
        return through(GP_PATCHED(call_t, name), true, state, b, c, d, e, f);                                          \
    }

CALL(lua_pcallk, lua_calls_within)
CALL(lua_pcall, lua_calls_within)
CALL(lua_cpcall, lua_calls_within)
CALL(lua_load, lua_calls_load)
CALL(lua_loadx, lua_calls_load)
