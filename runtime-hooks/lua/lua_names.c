// SPDX-License-Identifier: MIT
// Lua's own words on a coroutine.
#include "lua_hook.h"

#include <string.h>

#include "interpose/interpose.h"
#include "lua_debug.h"
#include "not_known.h"
#include "patch/hooks.h"

enum { LUA_51 = 501, LUA_53 = 503, LUA_54 = 504, FUNCTION = 6 }; // LUA_TFUNCTION of all

static struct {
    double (*version)(lua_State *);
    int (*status)(lua_State *), (*get_top)(lua_State *), (*check_stack)(lua_State *, int), (*type)(lua_State *, int);
    void (*push_value)(lua_State *, int);
    int (*get_info)(lua_State *, const char *, void *);
} lua;

static gp_lua_form_t form;

// In a shared Lua, or in the program itself.
static void *lua_names_find(const char *name)
{
    void *function = gp_interpose_find(name);
    return function != NULL ? function : gp_patch_program_function(name);
}

static bool lua_names_find_all(void)
{
    lua.status = lua_names_find("lua_status");
    lua.get_top = lua_names_find("lua_gettop");
    lua.check_stack = lua_names_find("lua_checkstack");
    lua.push_value = lua_names_find("lua_pushvalue");
    lua.get_info = lua_names_find("lua_getinfo");
    lua.version = lua_names_find("lua_version");
    lua.type = lua_names_find("lua_type");
    return lua.status != NULL && lua.type != NULL && lua.get_top != NULL && lua.check_stack != NULL &&
           lua.push_value != NULL && lua.get_info != NULL;
}

// Older ones return a pointer from lua_version(); lua_newuserdatauv, which 5.4 brought, tells them apart. 5.1 has none.
static int lua_names_version(lua_State *state)
{
    const double *(*older)(lua_State *) = NULL;
    if (lua.version == NULL || lua_names_find("luaJIT_setmode") != NULL)
        return LUA_51;
    memcpy(&older, &lua.version, sizeof(older));
    return lua_names_find("lua_newuserdatauv") != NULL ? (int)lua.version(state) : (int)*older(state);
}

gp_lua_form_t gp_lua_known_form(lua_State *state)
{
    static gp_not_known_t fact;
    static bool is_asked;
    if (is_asked)
        return form;
    if (lua_names_find_all()) {
        int version = lua_names_version(state);
        bool is_jit = lua_names_find("luaJIT_setmode") != NULL;
        form = version == LUA_54   ? GP_LUA_FORM_54
               : version == LUA_53 ? GP_LUA_FORM_53
               : version != LUA_51 ? GP_LUA_FORM_NONE
               : is_jit            ? GP_LUA_FORM_JIT
                                   : GP_LUA_FORM_51;
        if (form == GP_LUA_FORM_NONE)
            gp_not_known_tell(&fact, "Lua %d.%d: not known, coroutines are not told apart", version / 100,
                              version % 100);
    }
    is_asked = true;
    return form;
}

bool gp_lua_is_fresh(lua_State *coroutine)
{
    return lua.status(coroutine) == GP_LUA_OK;
}

void gp_lua_name(lua_State *coroutine, int arguments, char *name, size_t size)
{
    uint64_t debug[GP_LUA_DEBUG_WORDS];
    name[0] = '\0';
    // lua_getinfo() of 5.1 takes no other value that can be called.
    if (lua.get_top(coroutine) <= arguments || lua.type(coroutine, -(arguments + 1)) != FUNCTION ||
        !lua.check_stack(coroutine, 1))
        return;
    lua.push_value(coroutine, -(arguments + 1));
    lua.get_info(coroutine, ">S", debug); // takes it off again
    gp_lua_write_place(form, debug, name, size);
}
