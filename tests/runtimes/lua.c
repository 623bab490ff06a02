// SPDX-License-Identifier: MIT
// Lua 5.4 coroutines of a host that has Lua in a shared library; the work is done by functions of the host.
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "shares.h"

static const char script[] = "local rounds = ...\n"
                             "local function alpha() for i = 1, rounds do step(0) coroutine.yield() end end\n"
                             "local function beta() for i = 1, rounds do step(1) coroutine.yield() end end\n"
                             "local function gamma() for i = 1, rounds do step(2) coroutine.yield() end end\n"
                             "local function idle() for i = 1, rounds do coroutine.yield() end end\n"
                             "local all = {}\n"
                             "for i, run in ipairs {alpha, beta, gamma, idle} do all[i] = coroutine.create(run) end\n"
                             "local left = #all\n"
                             "while left > 0 do\n"
                             "  left = 0\n"
                             "  for _, each in ipairs(all) do\n"
                             "    if coroutine.status(each) ~= 'dead' then\n"
                             "      assert(coroutine.resume(each))\n"
                             "      left = left + 1\n"
                             "    end\n"
                             "  end\n"
                             "end\n";

static int step(lua_State *state)
{
    shares_step((int)lua_tointeger(state, 1));
    return 0;
}

int main(int argc, char **argv)
{
    if (shares_begin(argc, argv) < 0)
        return 2;
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    lua_register(state, "step", step);
    if (luaL_loadbuffer(state, script, sizeof(script) - 1, "@shares.lua") != LUA_OK)
        return 2;
    lua_pushinteger(state, shares_rounds);
    if (lua_pcall(state, 1, 0, 0) != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(state, -1));
        return 1;
    }
    lua_close(state);
    return shares_end();
}
