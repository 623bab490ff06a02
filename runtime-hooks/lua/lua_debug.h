// SPDX-License-Identifier: MIT
// Lua's versions, as both of its hooks know them: lua.c's for shared ones and patched programs, wrap_lua.c's for a 5.4
// that is linked in.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { GP_LUA_OK = 0, GP_LUA_YIELD = 1, GP_LUA_SOURCE_BYTES = 60, GP_LUA_DEBUG_WORDS = 64 };

typedef enum gp_lua_form {
    GP_LUA_FORM_NONE, // not known
    GP_LUA_FORM_51,
    GP_LUA_FORM_53,
    GP_LUA_FORM_54,
    GP_LUA_FORM_JIT, // LuaJIT 2.1 with 64-bit references
    GP_LUA_FORMS
} gp_lua_form_t;

// SOURCE:LINE of what lua_getinfo() says with "S"; of a source that is too long, its end. `size`: bytes of `name`,
// > 20. Source: lua.h (lua_Debug: line_defined, short_src) of each version.
static inline void gp_lua_write_place(gp_lua_form_t form, const void *debug, char *name, size_t size)
{
    static const struct {
        uint8_t line, source;
    } places[GP_LUA_FORMS] = {[GP_LUA_FORM_51] = {48, 56},
                              [GP_LUA_FORM_53] = {44, 56},
                              [GP_LUA_FORM_54] = {52, 68},
                              [GP_LUA_FORM_JIT] = {48, 56}};
    char number[16] = "";
    const char *source = (const char *)debug + places[form].source;
    int32_t line;
    memcpy(&line, (const char *)debug + places[form].line, sizeof(line));
    if (line > 0)
        snprintf(number, sizeof(number), ":%d", line);
    size_t digits = strlen(number), room = size - 1 - digits, len = strnlen(source, GP_LUA_SOURCE_BYTES);
    if (len > room) {
        memcpy(name, "...", 3);
        memcpy(name + 3, source + len - (room - 3), room - 3);
        len = room;
    } else {
        memcpy(name, source, len);
    }
    memcpy(name + len, number, digits + 1);
}
