// SPDX-License-Identifier: MIT
#include "lua_code.h"

enum {
    STRING = 4,
    SHORT_STRING = 4,
    STRING_SHORT_LEN = 11,
    STRING_LEN = 16,
    STRING_TEXT = 24,
    NAME_MAX = 4096,
    LOCAL_BYTES = 16,
    LINES_APART = 128, // between two of the lines that 5.4 has in full
    WORD = GP_LOOK_WORD,
};

const gp_lua_layout_t gp_lua_layout_51 = {.state_frame = 40,
                                          .state_pc = 48,
                                          .state_values = 64,
                                          .state_values_end = 56,
                                          .state_top = 16,
                                          .state_stack = 80, // the first frame
                                          .state_stack_size = 92,
                                          .frame_function = 8,
                                          .frame_base = 0,
                                          .frame_pc = 24,
                                          .frame_bytes = 40,
                                          .tag_lua = 6,
                                          .tag_c = 6,
                                          .tag_closure_in_c = 6,
                                          .proto_tag = 9,
                                          .closure_proto = 32,
                                          .closure_code = 32,
                                          .constants = 16,
                                          .constants_size = 76,
                                          .code = 24,
                                          .code_size = 80,
                                          .children = 32,
                                          .children_size = 88,
                                          .lines = 40,
                                          .lines_size = 84,
                                          .locals = 48,
                                          .locals_size = 92,
                                          .upvalues = 56,
                                          .upvalues_size = 72,
                                          .upvalue_bytes = 8,
                                          .source = 64,
                                          .first_line = 96,
                                          .parameters = 113,
                                          .registers = 115,
                                          .upvalue_count = 112};
const gp_lua_layout_t gp_lua_layout_53 = {.state_frame = 32,
                                          .frame_base = 32,
                                          .state_values = 56,
                                          .state_values_end = 48,
                                          .state_top = 16,
                                          .frame_pc = 40,
                                          .frame_before = 16,
                                          .frame_status = 66,
                                          .status_fresh = 1 << 3,
                                          .tag_lua = 0x46,
                                          .tag_c = 0x16,
                                          .tag_closure_in_c = 0x66,
                                          .proto_tag = 9,
                                          .closure_proto = 24,
                                          .closure_code = 24,
                                          .constants = 48,
                                          .constants_size = 20,
                                          .code = 56,
                                          .code_size = 24,
                                          .children = 64,
                                          .children_size = 32,
                                          .lines = 72,
                                          .lines_size = 28,
                                          .locals = 80,
                                          .locals_size = 36,
                                          .upvalues = 88,
                                          .upvalues_size = 16,
                                          .upvalue_bytes = 16,
                                          .source = 104,
                                          .first_line = 40,
                                          .parameters = 10,
                                          .registers = 12};
const gp_lua_layout_t gp_lua_layout_54 = {.state_frame = 32,
                                          .frame_base = GP_LUA_BEHIND_FUNCTION,
                                          .state_values = 48,
                                          .state_values_end = 40,
                                          .state_top = 16,
                                          .frame_pc = 32,
                                          .frame_before = 16,
                                          .frame_status = 62,
                                          .status_fresh = 1 << 2,
                                          .tag_lua = 0x46,
                                          .tag_c = 0x16,
                                          .tag_closure_in_c = 0x66,
                                          .proto_tag = 10,
                                          .closure_proto = 24,
                                          .closure_code = 24,
                                          .constants = 56,
                                          .constants_size = 20,
                                          .code = 64,
                                          .code_size = 24,
                                          .children = 72,
                                          .children_size = 32,
                                          .lines = 88,
                                          .lines_size = 28,
                                          .full_lines = 96,
                                          .full_lines_size = 40,
                                          .locals = 104,
                                          .locals_size = 36,
                                          .upvalues = 80,
                                          .upvalues_size = 16,
                                          .upvalue_bytes = 16,
                                          .source = 112,
                                          .first_line = 44,
                                          .parameters = 10,
                                          .registers = 12};

bool gp_lua_code_string(uintptr_t string, gp_lua_text_t *text)
{
    *text = (gp_lua_text_t){0};
    if (!gp_look_is_address(string))
        return false;
    bool is_short = atomic_load_explicit(&gp_lua_runtime.dialect, memory_order_relaxed)->version != 501 &&
                    gp_look_byte(string + GP_LUA_OBJECT_TAG) == SHORT_STRING;
    text->len = is_short ? gp_look_byte(string + STRING_SHORT_LEN) : gp_look_word(string + STRING_LEN);
    text->at = string + STRING_TEXT;
    return true;
}

static bool lua_code_constant(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t number, gp_lua_text_t *text)
{
    uintptr_t value = gp_look_word(proto + layout->constants) + (uintptr_t)number * GP_LUA_VALUE_BYTES;
    return number < gp_look_half(proto + layout->constants_size) &&
           (gp_look_byte(value + GP_LUA_VALUE_TAG) & 0xf) == STRING && gp_lua_code_string(gp_look_word(value), text);
}

static bool lua_code_upvalue(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t number, gp_lua_text_t *text)
{
    uintptr_t names = gp_look_word(proto + layout->upvalues);
    return number < gp_look_half(proto + layout->upvalues_size) &&
           gp_lua_code_string(gp_look_word(names + (uintptr_t)number * layout->upvalue_bytes), text);
}

static bool lua_code_is_environment(const gp_lua_text_t *text)
{
    static const char name[] = "_ENV";
    size_t i = 0;
    while (i < sizeof(name) - 1 && i < text->len && gp_look_byte(text->at + i) == (uint8_t)name[i])
        i++;
    return text->len == sizeof(name) - 1 && i == text->len;
}

// An access by name of an upvalue, which is the environment's variable, or the field of a table.
static bool lua_code_of_upvalue(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t upvalue,
                                gp_lua_instruction_t *instruction, enum gp_lua_kind named)
{
    if (!lua_code_upvalue(layout, proto, upvalue, &instruction->table))
        return false;
    if (!lua_code_is_environment(&instruction->table))
        return true;
    instruction->table = (gp_lua_text_t){0};
    instruction->kind = named;
    return true;
}

bool gp_lua_code_local(const gp_lua_layout_t *layout, uintptr_t proto, int reg, uint32_t pc, gp_lua_text_t *name)
{
    uintptr_t local = gp_look_word(proto + layout->locals);
    uint32_t count = gp_look_half(proto + layout->locals_size);
    for (uint32_t i = 0; local != 0 && i < count && i < NAME_MAX; i++, local += LOCAL_BYTES) {
        if (gp_look_half(local + WORD) > pc)
            return false;
        if (pc < gp_look_half(local + WORD + 4) && reg-- == 0)
            return gp_lua_code_string(gp_look_word(local), name) && gp_look_byte(name->at) != '(';
    }
    return false;
}

static bool lua_code_closure(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t number,
                             gp_lua_instruction_t *instruction)
{
    if (number >= gp_look_half(proto + layout->children_size))
        return false;
    instruction->kind = GP_LUA_CLOSURE;
    instruction->child = gp_look_word(gp_look_word(proto + layout->children) + (uintptr_t)number * WORD);
    if (layout->upvalue_count != 0) // 5.1: an instruction for each
        instruction->next += gp_look_byte(instruction->child + layout->upvalue_count);
    return true;
}

// Lua 5.4: 7 bits of the operation, 8 of A, 1 of k, 8 of B, 8 of C.
static bool lua_code_decode_newer(uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)
{
    enum { MOVE, GET_UPVALUE = 9, SET_UPVALUE, GET_OF_UPVALUE, GET_FIELD = 14, SET_OF_UPVALUE, SET_FIELD = 18 };
    enum { NEW_TABLE = 19, SELF, CALL = 68, TAIL_CALL, ITERATE = 76, CLOSURE = 79 };
    const gp_lua_layout_t *layout = &gp_lua_layout_54;
    uint32_t word = gp_look_half(gp_look_word(proto + layout->code) + (uintptr_t)pc * 4);
    uint32_t b = word >> 16 & 0xff, c = word >> 24;
    bool is_constant = word >> 15 & 1;
    *in = (gp_lua_instruction_t){.reg = (int)(word >> 7 & 0xff), .next = 1, .from = (int)b};
    switch (word & 0x7f) {
    case MOVE:
        in->kind = GP_LUA_MOVE;
        return true;
    case GET_UPVALUE:
        in->kind = GP_LUA_NAMED;
        return lua_code_upvalue(layout, proto, b, &in->name);
    case SET_UPVALUE:
        in->kind = GP_LUA_SET_NAMED;
        return lua_code_upvalue(layout, proto, b, &in->name);
    case GET_OF_UPVALUE:
        in->kind = GP_LUA_FIELD;
        return lua_code_constant(layout, proto, c, &in->name) &&
               lua_code_of_upvalue(layout, proto, b, in, GP_LUA_NAMED);
    case GET_FIELD:
        in->kind = GP_LUA_FIELD;
        return lua_code_constant(layout, proto, c, &in->name);
    case SELF:
        in->kind = GP_LUA_METHOD;
        return is_constant && lua_code_constant(layout, proto, c, &in->name);
    case SET_OF_UPVALUE:
        in->kind = GP_LUA_SET_FIELD;
        in->from = in->reg;
        in->reg = is_constant ? -1 : (int)c;
        return lua_code_constant(layout, proto, b, &in->name) &&
               lua_code_of_upvalue(layout, proto, (uint32_t)in->from, in, GP_LUA_SET_NAMED);
    case SET_FIELD:
        in->kind = GP_LUA_SET_FIELD;
        in->from = in->reg;
        in->reg = is_constant ? -1 : (int)c;
        return lua_code_constant(layout, proto, b, &in->name);
    case NEW_TABLE:
        in->kind = GP_LUA_NEW;
        return true;
    case CALL:
    case TAIL_CALL:
        in->kind = GP_LUA_CALL;
        return true;
    case ITERATE:
        in->kind = GP_LUA_ITERATE;
        return true;
    case CLOSURE:
        return lua_code_closure(layout, proto, word >> 15, in);
    default:
        return true;
    }
}

typedef struct operations { // of 5.1 and 5.3: 6 bits of the operation, 8 of A, 9 of C, 9 of B
    uint8_t get_upvalue, get_global, get_of_upvalue, get_table, set_global, set_of_upvalue, set_upvalue, set_table;
    uint8_t new_table, self, call, tail_call, iterate, closure;
} operations_t;

enum { NONE = 255, CONSTANT = 256 };

// Is a word of 5.1 the count that follows a SETLIST whose C is 0? Such a count may look like one, too.
static bool lua_code_is_count(uintptr_t proto, uint32_t pc)
{
    enum { SET_LIST = 34, OPERATION_AND_C = 0x7fc03f, RUN_MAX = 64 };
    uintptr_t code = gp_look_word(proto + gp_lua_layout_51.code);
    uint32_t run = 0;
    while (run < pc && run < RUN_MAX &&
           (gp_look_half(code + (uintptr_t)(pc - run - 1) * 4) & OPERATION_AND_C) == SET_LIST)
        run++;
    return run % 2 != 0;
}

static const operations_t operations_51 = {4, 5, NONE, 6, 7, NONE, 8, 9, 10, 11, 28, 29, 33, 36};
static const operations_t operations_53 = {5, NONE, 6, 7, NONE, 8, 9, 10, 11, 12, 36, 37, 41, 44};

static bool lua_code_decode_older(const gp_lua_layout_t *layout, const operations_t *all, uintptr_t proto, uint32_t pc,
                                  gp_lua_instruction_t *in)
{
    uint32_t word = gp_look_half(gp_look_word(proto + layout->code) + (uintptr_t)pc * 4);
    uint32_t operation = word & 0x3f, c = word >> 14 & 0x1ff, b = word >> 23;
    *in = (gp_lua_instruction_t){.reg = (int)(word >> 6 & 0xff), .next = 1, .from = (int)b};
    if (layout == &gp_lua_layout_51 && lua_code_is_count(proto, pc))
        return false;
    if (operation == 0) {
        in->kind = GP_LUA_MOVE;
        return true;
    }
    if (operation == all->get_upvalue || operation == all->set_upvalue) {
        in->kind = operation == all->get_upvalue ? GP_LUA_NAMED : GP_LUA_SET_NAMED;
        return lua_code_upvalue(layout, proto, b, &in->name);
    }
    if (operation == all->get_global || operation == all->set_global) {
        in->kind = operation == all->get_global ? GP_LUA_NAMED : GP_LUA_SET_NAMED;
        return lua_code_constant(layout, proto, word >> 14, &in->name);
    }
    if (operation == all->get_table || operation == all->self || operation == all->get_of_upvalue) {
        in->kind = operation == all->self ? GP_LUA_METHOD : GP_LUA_FIELD;
        return c >= CONSTANT && lua_code_constant(layout, proto, c - CONSTANT, &in->name) &&
               (operation != all->get_of_upvalue || lua_code_of_upvalue(layout, proto, b, in, GP_LUA_NAMED));
    }
    if (operation == all->set_table || operation == all->set_of_upvalue) {
        in->kind = GP_LUA_SET_FIELD;
        in->from = in->reg;
        in->reg = c < CONSTANT ? (int)c : -1;
        return b >= CONSTANT && lua_code_constant(layout, proto, b - CONSTANT, &in->name) &&
               (operation != all->set_of_upvalue ||
                lua_code_of_upvalue(layout, proto, (uint32_t)in->from, in, GP_LUA_SET_NAMED));
    }
    if (operation == all->closure)
        return lua_code_closure(layout, proto, word >> 14, in);
    if (operation == all->new_table)
        in->kind = GP_LUA_NEW;
    else if (operation == all->call || operation == all->tail_call)
        in->kind = GP_LUA_CALL;
    else if (operation == all->iterate)
        in->kind = GP_LUA_ITERATE;
    return true;
}

bool gp_lua_code_decode(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)
{
    if (pc >= gp_look_half(proto + layout->code_size))
        return false;
    bool is_known = layout == &gp_lua_layout_54   ? lua_code_decode_newer(proto, pc, in)
                    : layout == &gp_lua_layout_53 ? lua_code_decode_older(layout, &operations_53, proto, pc, in)
                                                  : lua_code_decode_older(layout, &operations_51, proto, pc, in);
    return is_known && (in->kind == GP_LUA_OTHER || in->reg < gp_look_byte(proto + layout->registers));
}

// Each byte is a difference of lines, with a sign.
static uint32_t lua_code_line_54(uintptr_t proto, uint32_t pc)
{
    enum { SIGN = 0x80 };
    uint32_t line = gp_look_half(proto + gp_lua_layout_54.first_line), from = 0;
    uint32_t count = gp_look_half(proto + gp_lua_layout_54.full_lines_size);
    uintptr_t full = gp_look_word(proto + gp_lua_layout_54.full_lines),
              lines = gp_look_word(proto + gp_lua_layout_54.lines);
    uint32_t at = pc / LINES_APART < count ? pc / LINES_APART : count;
    while (at < count && gp_look_half(full + (uintptr_t)at * 8) <= pc)
        at++;
    while (at > 0 && gp_look_half(full + (uintptr_t)(at - 1) * 8) > pc)
        at--;
    if (at > 0) {
        from = gp_look_half(full + (uintptr_t)(at - 1) * 8) + 1;
        line = gp_look_half(full + (uintptr_t)(at - 1) * 8 + 4);
    }
    for (; from <= pc; from++)
        line += (uint32_t)((gp_look_byte(lines + from) ^ SIGN) - SIGN);
    return line;
}

uint32_t gp_lua_code_line(const gp_lua_layout_t *layout, uintptr_t proto, uint32_t pc)
{
    uintptr_t lines = gp_look_word(proto + layout->lines);
    if (lines == 0 || pc >= gp_look_half(proto + layout->lines_size))
        return 0;
    return layout->full_lines != 0 ? lua_code_line_54(proto, pc) : gp_look_half(lines + (uintptr_t)pc * 4);
}
