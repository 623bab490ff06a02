// SPDX-License-Identifier: MIT
// Names of functions by the code around them. Lua's functions are values without a name; what they are called is where
// their chunk stores them as it makes them, and of a function written in C what its first caller has it from.
#include "lua_frames.h"

enum { DEEPER_MAX = 3, LOOKED_BACK = 64 };

static size_t lua_naming_add(char *name, size_t at, const gp_lua_text_t *text)
{
    size_t room = GP_LUA_NAME_SIZE - at, len = text->len < room ? text->len : room;
    if (text->at != 0)
        gp_look_copy(name + at, text->at, len);
    return text->at != 0 ? at + len : at;
}

static size_t lua_naming_add_sign(char *name, size_t at, char sign)
{
    if (at == 0 || at == GP_LUA_NAME_SIZE)
        return at;
    name[at] = sign;
    return at + 1;
}

// Does an instruction change a register, so that nothing before it says what is there?
static bool lua_naming_is_writer(const gp_lua_instruction_t *instruction, int reg)
{
    switch (instruction->kind) {
    case GP_LUA_OTHER:
    case GP_LUA_SET_NAMED:
    case GP_LUA_SET_FIELD:
        return false;
    case GP_LUA_CALL:
        return reg >= instruction->reg;
    default:
        return reg == instruction->reg;
    }
}

static size_t lua_naming_of_field(const gp_lua_dialect_t *dialect, uintptr_t proto, const gp_lua_instruction_t *field,
                                  uint32_t pc, char *name, int deeper)
{
    size_t at = lua_naming_add(name, 0, &field->table);
    if (field->table.at == 0)
        at = gp_lua_name_of_register(dialect, proto, field->from, pc, name, deeper + 1);
    at = lua_naming_add_sign(name, at, field->kind == GP_LUA_METHOD ? ':' : '.');
    return lua_naming_add(name, at, &field->name);
}

size_t gp_lua_name_of_register(const gp_lua_dialect_t *dialect, uintptr_t proto, int reg, uint32_t pc, char *name,
                               int deeper)
{
    gp_lua_instruction_t instruction;
    gp_lua_text_t local = {0};
    if (deeper >= DEEPER_MAX)
        return 0;
    if (dialect->local(proto, reg, pc, &local))
        return lua_naming_add(name, 0, &local);
    for (uint32_t i = 1; i <= LOOKED_BACK && i <= pc; i++) {
        if (!dialect->decode(proto, pc - i, &instruction) || !lua_naming_is_writer(&instruction, reg))
            continue;
        if (instruction.kind == GP_LUA_NAMED)
            return lua_naming_add(name, 0, &instruction.name);
        if (instruction.kind == GP_LUA_FIELD || instruction.kind == GP_LUA_METHOD)
            return lua_naming_of_field(dialect, proto, &instruction, pc - i, name, deeper);
        if (instruction.kind == GP_LUA_MOVE)
            return gp_lua_name_of_register(dialect, proto, instruction.from, pc - i, name, deeper + 1);
        return 0;
    }
    return 0;
}

size_t gp_lua_name_of_closure(const gp_lua_dialect_t *dialect, uintptr_t proto, uint32_t pc,
                              const gp_lua_instruction_t *closure, char *name)
{
    gp_lua_instruction_t then;
    gp_lua_text_t local = {0};
    uint32_t next = pc + closure->next;
    if (next < dialect->code_size(proto) && dialect->decode(proto, next, &then) && then.reg == closure->reg) {
        if (then.kind == GP_LUA_SET_NAMED)
            return lua_naming_add(name, 0, &then.name);
        if (then.kind == GP_LUA_SET_FIELD) {
            then.kind = dialect->takes_self(closure->child) ? GP_LUA_METHOD : GP_LUA_FIELD;
            return lua_naming_of_field(dialect, proto, &then, pc, name, 0);
        }
    }
    if (next < dialect->code_size(proto) && dialect->decode(proto, next, &then) && then.kind == GP_LUA_MOVE &&
        then.from == closure->reg && dialect->local(proto, then.reg, next, &local))
        return lua_naming_add(name, 0, &local);
    return dialect->local(proto, closure->reg, next, &local) ? lua_naming_add(name, 0, &local) : 0;
}

size_t gp_lua_name_of_called(const gp_lua_dialect_t *dialect, uintptr_t proto, uint32_t pc, char *name)
{
    static const char iterator[] = "for iterator";
    gp_lua_instruction_t call;
    if (pc >= dialect->code_size(proto) || !dialect->decode(proto, pc, &call))
        return 0;
    if (call.kind == GP_LUA_CALL)
        return gp_lua_name_of_register(dialect, proto, call.reg, pc, name, 0);
    const gp_lua_text_t text = {(uintptr_t)iterator, sizeof(iterator) - 1};
    return call.kind == GP_LUA_ITERATE ? lua_naming_add(name, 0, &text) : 0;
}
