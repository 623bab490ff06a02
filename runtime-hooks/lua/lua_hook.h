// SPDX-License-Identifier: MIT
// Lua's functions that the hook calls, and how it tells a Lua of the kind it knows.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "lua_debug.h"

typedef struct lua_State lua_State;

// The Lua that runs `state`; GP_LUA_FORM_NONE where it is not known, or lacks needed functions. Asked once.
gp_lua_form_t gp_lua_known_form(lua_State *state);

// A host that resumes coroutines from its loop, for requests, as its hook tells.
typedef struct gp_lua_host {
    struct prof_coro *(*owner)(lua_State *state); // the coroutine of the state's request; NULL = there is none
    void (*woken)(struct prof_coro *coro);        // the loop is about to go on with a coroutine of such a state
} gp_lua_host_t;
extern const gp_lua_host_t *_Atomic gp_lua_host; // NULL = there is none

// Has nothing run in this coroutine yet?
bool gp_lua_is_fresh(lua_State *coroutine);

// Name a coroutine that is about to start with `arguments` values above its function: SOURCE:LINE of that function.
void gp_lua_name(lua_State *coroutine, int arguments, char *name, size_t size);
