// SPDX-License-Identifier: MIT
// The interpreter of Lua as a program that is linked with it: `lua_script FILE ARGUMENT`
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

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
    if (luaL_dofile(state, argv[1]) != 0) {
        fprintf(stderr, "%s\n", lua_tostring(state, -1));
        return 1;
    }
    return 0;
}
