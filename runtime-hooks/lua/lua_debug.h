// SPDX-License-Identifier: MIT
// Lua 5.4, as both of Lua's hooks know it: lua.c's for shared ones, wrap_lua.c's for those that are linked in.
#pragma once

#include <stdio.h>
#include <string.h>

enum { GP_LUA_OK = 0, GP_LUA_YIELD = 1, GP_LUA_SOURCE_BYTES = 60 };

typedef struct lua_Debug { // Source: Lua 5.4, lua.h
    int event;
    const char *name, *name_what, *what, *source;
    size_t source_len;
    int current_line, line_defined, last_line_defined;
    unsigned char upvalues, parameters;
    char is_vararg, is_tail_call;
    unsigned short transferred_first, transferred;
    char short_source[GP_LUA_SOURCE_BYTES];
    void *private_part;
    char reserve[256];
} lua_Debug;

// SOURCE:LINE of what lua_getinfo() says with "S"; of a source that is too long, its end. `size`: bytes of `name`,
// > 20.
static inline void gp_lua_write_place(const lua_Debug *debug, char *name, size_t size)
{
    char number[16] = "";
    const char *source = debug->short_source;
    if (debug->line_defined > 0)
        snprintf(number, sizeof(number), ":%d", debug->line_defined);
    size_t digits = strlen(number), room = size - 1 - digits, len = strlen(source);
    if (len > room) {
        memcpy(name, "...", 3);
        memcpy(name + 3, source + len - (room - 3), room - 3);
        len = room;
    } else {
        memcpy(name, source, len);
    }
    memcpy(name + len, number, digits + 1);
}
