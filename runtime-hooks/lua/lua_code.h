// SPDX-License-Identifier: MIT
// Memory of Lua 5.1, 5.3 and 5.4, and the code of their prototypes.
//
// Source: Lua 5.1.5, 5.3.6, 5.4.4: lstate.h (lua_State, CallInfo), lobject.h (TValue, Proto, LocVar, Upvaldesc,
// TString, closures), lopcodes.h, ldebug.c (luaG_getfuncline), lfunc.c (luaF_getlocalname).
//
// Signals: safe, as far as the memory that they are given can be read. Threads: any.
#pragma once

#include "lua_frames.h"

enum {
    GP_LUA_VALUE_BYTES = 16,
    GP_LUA_VALUE_TAG = 8,
    GP_LUA_OBJECT_TAG = 8,               // behind the next object
    GP_LUA_BEHIND_FUNCTION = UINT16_MAX, // a frame's registers begin there
};

typedef struct gp_lua_layout { // in bytes
    uint16_t state_frame, state_pc, state_top, state_stack, state_stack_size, state_values, state_values_end;
    uint16_t frame_function, frame_base, frame_pc, frame_before, frame_bytes, frame_status, status_fresh;
    uint16_t tag_lua, tag_c, tag_closure_in_c, proto_tag;
    uint16_t closure_proto, closure_code;
    uint16_t constants, constants_size, code, code_size, children, children_size;
    uint16_t lines, lines_size, full_lines, full_lines_size, locals, locals_size, upvalues, upvalues_size;
    uint16_t upvalue_bytes, source, first_line, parameters, registers, upvalue_count;
} gp_lua_layout_t;

extern const gp_lua_layout_t gp_lua_layout_51, gp_lua_layout_53, gp_lua_layout_54;

// The text of a string. Returns false where its address is none.
bool gp_lua_code_string(uintptr_t string, gp_lua_text_t *text);

// The name of the local variable that a register has at an instruction. Returns false where it is none.
bool gp_lua_code_local(const gp_lua_layout_t *layout, uintptr_t proto, int reg, uint32_t pc, gp_lua_text_t *name);

// The work of an instruction, as far as names and calls need. Returns false where that is not known.
bool gp_lua_code_decode(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in);

// The line of an instruction; 0 = not known.
uint32_t gp_lua_code_line(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t pc);
