// SPDX-License-Identifier: MIT
// The interpreter of Lua as a program that is linked with it: `lua_script FILE ARGUMENT`. Scripts have one more
// function: start(VALUE, ARGUMENT) begins a coroutine of any value, and returns its status, its errno and its last
// result.
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

static int lua_script_resume(lua_State *coroutine, lua_State *from)
{
#if LUA_VERSION_NUM >= 504
    int results;
    return lua_resume(coroutine, from, 1, &results);
#elif LUA_VERSION_NUM >= 502
    return lua_resume(coroutine, from, 1);
#else
    (void)from;
    return lua_resume(coroutine, 1);
#endif
}

static int lua_script_start(lua_State *state)
{
    lua_State *coroutine = lua_newthread(state);
    lua_pushvalue(state, 1);
    lua_pushvalue(state, 2);
    lua_xmove(state, coroutine, 2);
    errno = 0;
    lua_pushinteger(state, lua_script_resume(coroutine, state));
    lua_pushinteger(state, errno);
    if (lua_gettop(coroutine) == 0)
        return 2;
    lua_xmove(coroutine, state, 1);
    return 3;
}

int main(int argc, char **argv)
{
    lua_State *state = luaL_newstate();
    if (state == NULL || argc < 3)
        return 2;
    luaL_openlibs(state);
    lua_newtable(state);
    lua_pushstring(state, argv[2]);
    lua_rawseti(state, -2, 1);
    lua_setglobal(state, "arg");
    lua_register(state, "start", lua_script_start);
    if (luaL_dofile(state, argv[1]) != 0) {
        fprintf(stderr, "%s\n", lua_tostring(state, -1));
        return 1;
    }
    return 0;
}
