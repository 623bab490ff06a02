// SPDX-License-Identifier: MIT
// A Lua coroutine that yields as soon as it is resumed; the loop is the host's.
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "worker.h"

static lua_State *coroutine;

static void block(unsigned long amount, unsigned which, double *figures)
{
    int results;
    (void)which, (void)figures;
    for (unsigned long i = 0; i < amount; i++) {
        lua_resume(coroutine, NULL, 0, &results);
        lua_pop(coroutine, results);
    }
}

int main(int argc, char **argv)
{
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    coroutine = lua_newthread(state);
    if (luaL_loadstring(coroutine, "while true do coroutine.yield() end") != LUA_OK)
        return 1;
    return worker_serve(argc, argv, block);
}
