// SPDX-License-Identifier: MIT
// Lua's functions that the hook calls, and how it tells a Lua of the kind it knows.
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct lua_State lua_State;

// Does a 5.4 run `state`, with all needed functions? Asked once.
bool gp_lua_is_known(lua_State *state);

// Has nothing run in this coroutine yet?
bool gp_lua_is_fresh(lua_State *coroutine);

// Name a coroutine that is about to start with `arguments` values above its function: SOURCE:LINE of that function.
void gp_lua_name(lua_State *coroutine, int arguments, char *name, size_t size);
