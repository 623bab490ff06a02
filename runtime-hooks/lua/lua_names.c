// SPDX-License-Identifier: MIT
// Lua's own words on a coroutine.
#include "lua_hook.h"

#include "interpose/interpose.h"
#include "lua_debug.h"
#include "not_known.h"
#include "patch/hooks.h"

enum { LUA_54 = 504 };

static struct {
    double (*version)(lua_State *);
    int (*status)(lua_State *), (*get_top)(lua_State *), (*check_stack)(lua_State *, int);
    void (*push_value)(lua_State *, int);
    int (*get_info)(lua_State *, const char *, lua_Debug *);
} lua;

// In a shared Lua, or in the program itself.
static void *lua_names_find(const char *name)
{
    void *function = gp_interpose_find(name);
    return function != NULL ? function : gp_patch_program_function(name);
}

bool gp_lua_is_known(lua_State *state)
{
    static gp_not_known_t fact;
    static int known; // 0: not asked, 1: yes, -1: no
    if (known == 0) {
        lua.status = lua_names_find("lua_status");
        lua.get_top = lua_names_find("lua_gettop");
        lua.check_stack = lua_names_find("lua_checkstack");
        lua.push_value = lua_names_find("lua_pushvalue");
        lua.get_info = lua_names_find("lua_getinfo");
        lua.version = lua_names_find("lua_version");
        bool all = lua.status != NULL && lua.get_top != NULL && lua.check_stack != NULL && lua.push_value != NULL &&
                   lua.get_info != NULL && lua.version != NULL;
        // Older ones return a pointer from lua_version(); lua_newuserdatauv, which 5.4 brought, tells them apart.
        bool is_recent = all && lua_names_find("lua_newuserdatauv") != NULL;
        int version = is_recent ? (int)lua.version(state) : 0;
        known = version == LUA_54 ? 1 : -1;
        if (is_recent && known < 0)
            gp_not_known_tell(&fact, "Lua %d.%d: not known, coroutines are not told apart", version / 100,
                              version % 100);
    }
    return known > 0;
}

bool gp_lua_is_fresh(lua_State *coroutine)
{
    return lua.status(coroutine) == GP_LUA_OK;
}

void gp_lua_name(lua_State *coroutine, int arguments, char *name, size_t size)
{
    lua_Debug debug;
    name[0] = '\0';
    if (lua.get_top(coroutine) <= arguments || !lua.check_stack(coroutine, 1))
        return;
    lua.push_value(coroutine, -(arguments + 1));
    lua.get_info(coroutine, ">S", &debug); // takes it off again
    gp_lua_write_place(&debug, name, size);
}
