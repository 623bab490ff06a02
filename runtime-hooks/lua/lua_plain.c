// SPDX-License-Identifier: MIT
// Lua 5.1, 5.3 and 5.4: call frames are a list, in 5.1 an array.
//
// Source: Lua 5.1.5, 5.3.6, 5.4.4: lstate.h (lua_State, CallInfo), lobject.h (TValue, Proto, LocVar, Upvaldesc,
// TString, closures), lopcodes.h, ldebug.c (luaG_getfuncline), lfunc.c (luaF_getlocalname).
#include "lua_frames.h"

#include "unwind/unwind.h"

enum {
    FRAMES_MAX = 65536,
    LISTED_MAX = 8192, // each is a look at other memory
    VALUE_BYTES = 16,
    VALUE_TAG = 8,
    OBJECT_TAG = 8, // behind the next object
    THREAD = 8,
    STRING = 4,
    SHORT_STRING = 4,
    STRING_SHORT_LEN = 11,
    STRING_LEN = 16,
    STRING_TEXT = 24,
    NAME_MAX = 4096,
    LOCAL_BYTES = 16,
    BEHIND_FUNCTION = UINT16_MAX, // a frame's registers begin there
    LINES_APART = 128,            // between two of the lines that 5.4 has in full
    WORD = GP_LOOK_WORD,
};

typedef struct layout { // in bytes
    uint16_t state_frame, state_pc, state_top, state_stack, state_stack_size;
    uint16_t frame_function, frame_base, frame_pc, frame_before, frame_bytes, frame_status, status_fresh;
    uint16_t tag_lua, tag_c, tag_closure_in_c, proto_tag;
    uint16_t closure_proto, closure_code;
    uint16_t constants, constants_size, code, code_size, children, children_size;
    uint16_t lines, lines_size, full_lines, full_lines_size, locals, locals_size, upvalues, upvalues_size;
    uint16_t upvalue_bytes, source, first_line, parameters, registers, upvalue_count;
} layout_t;

static const layout_t layout_51 = {.state_frame = 40,
                                   .state_pc = 48,
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
static const layout_t layout_53 = {.state_frame = 32,
                                   .frame_base = 32,
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
static const layout_t layout_54 = {.state_frame = 32,
                                   .frame_base = BEHIND_FUNCTION,
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

static bool lua_plain_string(uintptr_t string, gp_lua_text_t *text)
{
    *text = (gp_lua_text_t){0};
    if (!gp_look_is_address(string))
        return false;
    bool is_short = atomic_load_explicit(&gp_lua_runtime.dialect, memory_order_relaxed)->version != 501 &&
                    gp_look_byte(string + OBJECT_TAG) == SHORT_STRING;
    text->len = is_short ? gp_look_byte(string + STRING_SHORT_LEN) : gp_look_word(string + STRING_LEN);
    text->at = string + STRING_TEXT;
    return true;
}

static bool lua_plain_constant(const layout_t *layout, uintptr_t proto, uint32_t number, gp_lua_text_t *text)
{
    uintptr_t value = gp_look_word(proto + layout->constants) + (uintptr_t)number * VALUE_BYTES;
    return number < gp_look_half(proto + layout->constants_size) && (gp_look_byte(value + VALUE_TAG) & 0xf) == STRING &&
           lua_plain_string(gp_look_word(value), text);
}

static bool lua_plain_upvalue(const layout_t *layout, uintptr_t proto, uint32_t number, gp_lua_text_t *text)
{
    uintptr_t names = gp_look_word(proto + layout->upvalues);
    return number < gp_look_half(proto + layout->upvalues_size) &&
           lua_plain_string(gp_look_word(names + (uintptr_t)number * layout->upvalue_bytes), text);
}

static bool lua_plain_is_environment(const gp_lua_text_t *text)
{
    static const char name[] = "_ENV";
    size_t i = 0;
    while (i < sizeof(name) - 1 && i < text->len && gp_look_byte(text->at + i) == (uint8_t)name[i])
        i++;
    return text->len == sizeof(name) - 1 && i == text->len;
}

// An access by name of an upvalue, which is the environment's variable, or the field of a table.
static bool lua_plain_of_upvalue(const layout_t *layout, uintptr_t proto, uint32_t upvalue,
                                 gp_lua_instruction_t *instruction, enum gp_lua_kind named)
{
    if (!lua_plain_upvalue(layout, proto, upvalue, &instruction->table))
        return false;
    if (!lua_plain_is_environment(&instruction->table))
        return true;
    instruction->table = (gp_lua_text_t){0};
    instruction->kind = named;
    return true;
}

static bool lua_plain_local(const layout_t *layout, uintptr_t proto, int reg, uint32_t pc, gp_lua_text_t *name)
{
    uintptr_t local = gp_look_word(proto + layout->locals);
    uint32_t count = gp_look_half(proto + layout->locals_size);
    for (uint32_t i = 0; local != 0 && i < count && i < NAME_MAX; i++, local += LOCAL_BYTES) {
        if (gp_look_half(local + WORD) > pc)
            return false;
        if (pc < gp_look_half(local + WORD + 4) && reg-- == 0)
            return lua_plain_string(gp_look_word(local), name) && gp_look_byte(name->at) != '(';
    }
    return false;
}

static bool lua_plain_closure(const layout_t *layout, uintptr_t proto, uint32_t number,
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
static bool lua_plain_decode_newer(uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)
{
    enum { MOVE, GET_UPVALUE = 9, SET_UPVALUE, GET_OF_UPVALUE, GET_FIELD = 14, SET_OF_UPVALUE, SET_FIELD = 18 };
    enum { NEW_TABLE = 19, SELF, CALL = 68, TAIL_CALL, ITERATE = 76, CLOSURE = 79 };
    const layout_t *layout = &layout_54;
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
        return lua_plain_upvalue(layout, proto, b, &in->name);
    case SET_UPVALUE:
        in->kind = GP_LUA_SET_NAMED;
        return lua_plain_upvalue(layout, proto, b, &in->name);
    case GET_OF_UPVALUE:
        in->kind = GP_LUA_FIELD;
        return lua_plain_constant(layout, proto, c, &in->name) &&
               lua_plain_of_upvalue(layout, proto, b, in, GP_LUA_NAMED);
    case GET_FIELD:
        in->kind = GP_LUA_FIELD;
        return lua_plain_constant(layout, proto, c, &in->name);
    case SELF:
        in->kind = GP_LUA_METHOD;
        return is_constant && lua_plain_constant(layout, proto, c, &in->name);
    case SET_OF_UPVALUE:
        in->kind = GP_LUA_SET_FIELD;
        in->from = in->reg;
        in->reg = is_constant ? -1 : (int)c;
        return lua_plain_constant(layout, proto, b, &in->name) &&
               lua_plain_of_upvalue(layout, proto, (uint32_t)in->from, in, GP_LUA_SET_NAMED);
    case SET_FIELD:
        in->kind = GP_LUA_SET_FIELD;
        in->from = in->reg;
        in->reg = is_constant ? -1 : (int)c;
        return lua_plain_constant(layout, proto, b, &in->name);
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
        return lua_plain_closure(layout, proto, word >> 15, in);
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
static bool lua_plain_is_count(uintptr_t proto, uint32_t pc)
{
    enum { SET_LIST = 34, OPERATION_AND_C = 0x7fc03f, RUN_MAX = 64 };
    uintptr_t code = gp_look_word(proto + layout_51.code);
    uint32_t run = 0;
    while (run < pc && run < RUN_MAX &&
           (gp_look_half(code + (uintptr_t)(pc - run - 1) * 4) & OPERATION_AND_C) == SET_LIST)
        run++;
    return run % 2 != 0;
}

static const operations_t operations_51 = {4, 5, NONE, 6, 7, NONE, 8, 9, 10, 11, 28, 29, 33, 36};
static const operations_t operations_53 = {5, NONE, 6, 7, NONE, 8, 9, 10, 11, 12, 36, 37, 41, 44};

static bool lua_plain_decode_older(const layout_t *layout, const operations_t *all, uintptr_t proto, uint32_t pc,
                                   gp_lua_instruction_t *in)
{
    uint32_t word = gp_look_half(gp_look_word(proto + layout->code) + (uintptr_t)pc * 4);
    uint32_t operation = word & 0x3f, c = word >> 14 & 0x1ff, b = word >> 23;
    *in = (gp_lua_instruction_t){.reg = (int)(word >> 6 & 0xff), .next = 1, .from = (int)b};
    if (layout == &layout_51 && lua_plain_is_count(proto, pc))
        return false;
    if (operation == 0) {
        in->kind = GP_LUA_MOVE;
        return true;
    }
    if (operation == all->get_upvalue || operation == all->set_upvalue) {
        in->kind = operation == all->get_upvalue ? GP_LUA_NAMED : GP_LUA_SET_NAMED;
        return lua_plain_upvalue(layout, proto, b, &in->name);
    }
    if (operation == all->get_global || operation == all->set_global) {
        in->kind = operation == all->get_global ? GP_LUA_NAMED : GP_LUA_SET_NAMED;
        return lua_plain_constant(layout, proto, word >> 14, &in->name);
    }
    if (operation == all->get_table || operation == all->self || operation == all->get_of_upvalue) {
        in->kind = operation == all->self ? GP_LUA_METHOD : GP_LUA_FIELD;
        return c >= CONSTANT && lua_plain_constant(layout, proto, c - CONSTANT, &in->name) &&
               (operation != all->get_of_upvalue || lua_plain_of_upvalue(layout, proto, b, in, GP_LUA_NAMED));
    }
    if (operation == all->set_table || operation == all->set_of_upvalue) {
        in->kind = GP_LUA_SET_FIELD;
        in->from = in->reg;
        in->reg = c < CONSTANT ? (int)c : -1;
        return b >= CONSTANT && lua_plain_constant(layout, proto, b - CONSTANT, &in->name) &&
               (operation != all->set_of_upvalue ||
                lua_plain_of_upvalue(layout, proto, (uint32_t)in->from, in, GP_LUA_SET_NAMED));
    }
    if (operation == all->closure)
        return lua_plain_closure(layout, proto, word >> 14, in);
    if (operation == all->new_table)
        in->kind = GP_LUA_NEW;
    else if (operation == all->call || operation == all->tail_call)
        in->kind = GP_LUA_CALL;
    else if (operation == all->iterate)
        in->kind = GP_LUA_ITERATE;
    return true;
}

static bool lua_plain_decode(const layout_t *layout, uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)
{
    if (pc >= gp_look_half(proto + layout->code_size))
        return false;
    bool is_known = layout == &layout_54   ? lua_plain_decode_newer(proto, pc, in)
                    : layout == &layout_53 ? lua_plain_decode_older(layout, &operations_53, proto, pc, in)
                                           : lua_plain_decode_older(layout, &operations_51, proto, pc, in);
    return is_known && (in->kind == GP_LUA_OTHER || in->reg < gp_look_byte(proto + layout->registers));
}

// Each byte is a difference of lines, with a sign.
static uint32_t lua_plain_line_54(uintptr_t proto, uint32_t pc)
{
    enum { SIGN = 0x80 };
    uint32_t line = gp_look_half(proto + layout_54.first_line), from = 0;
    uint32_t count = gp_look_half(proto + layout_54.full_lines_size);
    uintptr_t full = gp_look_word(proto + layout_54.full_lines), lines = gp_look_word(proto + layout_54.lines);
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

static uint32_t lua_plain_line(const layout_t *layout, uintptr_t proto, uint32_t pc)
{
    uintptr_t lines = gp_look_word(proto + layout->lines);
    if (lines == 0 || pc >= gp_look_half(proto + layout->lines_size))
        return 0;
    return layout->full_lines != 0 ? lua_plain_line_54(proto, pc) : gp_look_half(lines + (uintptr_t)pc * 4);
}

// The prototype of a frame, or its function written in C, or none: it is being made.
typedef struct running {
    uintptr_t proto, in_c;
} running_t;

static running_t lua_plain_running(const layout_t *layout, gp_peeks_t *look, uintptr_t frame)
{
    enum { IS_IN_C = 10 };
    running_t running = {0};
    uintptr_t function = gp_look_word(frame + layout->frame_function);
    if (!gp_look_is_address(function) || function % WORD != 0 || !gp_is_mapped(&look->mapped, function, VALUE_BYTES))
        return running;
    uintptr_t value = gp_look_word(function);
    uint8_t tag = gp_look_byte(function + VALUE_TAG);
    if (tag == layout->tag_c && layout->tag_c != layout->tag_lua) {
        running.in_c = value;
        return running;
    }
    if ((tag != layout->tag_lua && tag != layout->tag_closure_in_c) ||
        !gp_look_may_read(look, value, layout->closure_code + WORD))
        return running;
    bool is_in_c = layout->tag_c == layout->tag_lua ? gp_look_byte(value + IS_IN_C) : tag == layout->tag_closure_in_c;
    if (is_in_c) {
        running.in_c = gp_look_word(value + layout->closure_code);
        return running;
    }
    uintptr_t proto = gp_look_word(value + layout->closure_proto);
    if (gp_look_may_read(look, proto, 2 * WORD) && gp_look_byte(proto + OBJECT_TAG) == layout->proto_tag &&
        gp_look_may_read(look, proto, layout->source + WORD))
        running.proto = proto;
    return running;
}

// The number of a frame's instruction: the pc of the next one is kept. Some instructions do not keep theirs.
static bool lua_plain_place(const layout_t *layout, uintptr_t state, uintptr_t frame, bool is_leaf, uintptr_t proto,
                            uint32_t *pc)
{
    bool is_of_state = is_leaf && layout->state_pc != 0;
    uintptr_t next = gp_look_word(is_of_state ? state + layout->state_pc : frame + layout->frame_pc);
    uintptr_t code = gp_look_word(proto + layout->code), at = (next - code) / 4;
    *pc = at > 0 ? (uint32_t)at - 1 : 0;
    return at <= gp_look_half(proto + layout->code_size);
}

static uintptr_t lua_plain_before(const layout_t *layout, uintptr_t state, uintptr_t frame)
{
    if (layout->frame_before != 0)
        return gp_look_word(frame + layout->frame_before);
    return frame > gp_look_word(state + layout->state_stack) ? frame - layout->frame_bytes : 0;
}

// The frames of a 5.1 are an array; while it is given another size, the frame may be of the one before.
static size_t lua_plain_count_array(const layout_t *layout, gp_lua_walk_t *walk, uintptr_t state, uintptr_t frame)
{
    uintptr_t first = gp_look_word(state + layout->state_stack);
    size_t count = (frame - first) / layout->frame_bytes;
    bool is_within = count < gp_look_half(state + layout->state_stack_size) && count < FRAMES_MAX &&
                     (frame - first) % layout->frame_bytes == 0;
    return is_within && gp_look_may_read(&walk->look, first, WORD) ? count : 0;
}

// How many frames of a state can be read, LISTED_MAX at most; the outermost one, of no function, does not count.
//   tail: the frame, and then the one behind those that there is no room for
static size_t lua_plain_count(const layout_t *layout, gp_lua_walk_t *walk, uintptr_t state, uintptr_t *tail)
{
    uintptr_t frame = *tail;
    size_t count = 0, room = walk->max - walk->depth;
    if (layout->frame_before == 0) {
        count = lua_plain_count_array(layout, walk, state, frame);
        *tail -= count > room ? (count - room + 1) * layout->frame_bytes : 0;
        return count;
    }
    for (; count < LISTED_MAX; count++) {
        if (!gp_look_may_read(&walk->look, frame, (size_t)layout->frame_status + 2))
            return 0;
        frame = gp_look_word(frame + layout->frame_before);
        if (frame == 0)
            break;
        *tail = count + 1 >= room ? gp_look_word(*tail + layout->frame_before) : *tail;
    }
    return count;
}

// Is a frame's function in the register that its caller calls? While a frame is being made, it may be what its memory
// was before.
static bool lua_plain_is_called(const layout_t *layout, uintptr_t frame, uintptr_t caller, const gp_lua_site_t *site)
{
    gp_lua_instruction_t call;
    if (!lua_plain_decode(layout, site->proto, site->pc, &call) || call.kind != GP_LUA_CALL)
        return true;
    uintptr_t base = layout->frame_base == BEHIND_FUNCTION ? gp_look_word(caller + layout->frame_function) + VALUE_BYTES
                                                           : gp_look_word(caller + layout->frame_base);
    return gp_look_word(frame + layout->frame_function) == base + (uintptr_t)call.reg * VALUE_BYTES;
}

static void lua_plain_put(const layout_t *layout, gp_lua_walk_t *walk, uintptr_t state, uintptr_t frame, bool is_leaf)
{
    uint32_t pc;
    gp_lua_site_t site = {0};
    running_t running = lua_plain_running(layout, &walk->look, frame);
    uintptr_t before = is_leaf || running.in_c != 0 ? lua_plain_before(layout, state, frame) : 0;
    running_t calling = {0};
    if (before != 0 && gp_look_may_read(&walk->look, before, layout->frame_pc + WORD))
        calling = lua_plain_running(layout, &walk->look, before);
    if (calling.proto != 0 && lua_plain_place(layout, state, before, false, calling.proto, &site.pc))
        site.proto = calling.proto;
    if (is_leaf && site.proto != 0 && !lua_plain_is_called(layout, frame, before, &site))
        return;
    if (running.proto != 0) {
        bool is_there = lua_plain_place(layout, state, frame, is_leaf, running.proto, &pc);
        if (!is_leaf || is_there)
            gp_lua_put_frame(walk, running.proto, is_there ? lua_plain_line(layout, running.proto, pc) : 0);
    } else if (running.in_c != 0) {
        gp_lua_put_c(walk, running.in_c, &site);
    }
}

static const gp_lua_entry_t *lua_plain_walk(const layout_t *layout, gp_lua_walk_t *walk, const gp_lua_entry_t *entry)
{
    uintptr_t state = entry->state, frame;
    walk->look.is_sure = false;
    if (!gp_look_may_read(&walk->look, state, 12 * WORD) || gp_look_byte(state + OBJECT_TAG) != THREAD)
        return NULL;
    frame = gp_look_word(state + layout->state_frame);
    if (!gp_look_may_read(&walk->look, frame, 9 * WORD))
        return NULL;
    uintptr_t tail = frame;
    size_t count = lua_plain_count(layout, walk, state, &tail);
    gp_lua_skip(walk, count);
    if (count == LISTED_MAX) // the root end is too far
        walk->skip = 0;
    for (size_t i = 0; i < count && walk->depth < walk->max; i++, frame = lua_plain_before(layout, state, frame)) {
        size_t depth = walk->depth;
        walk->look.is_sure = i > 0;
        if (walk->depth > 0 && walk->skip > 0) {
            i = walk->skip + 1;
            frame = tail;
            walk->skip = 0;
        }
        lua_plain_put(layout, walk, state, frame, i == 0);
        if (walk->depth > depth && layout->frame_status != 0 &&
            gp_look_half(frame + layout->frame_status - 2) >> 16 & layout->status_fresh)
            walk->frames[walk->depth - 1] |= GP_LANGUAGE_ENTRY;
    }
    return gp_lua_outer(walk, entry);
}

static void lua_plain_describe(const layout_t *layout, uintptr_t proto, gp_lua_description_t *description)
{
    lua_plain_string(gp_look_word(proto + layout->source), &description->source);
    description->first_line = gp_look_half(proto + layout->first_line);
}

static bool lua_plain_takes_self(const layout_t *layout, uintptr_t proto)
{
    gp_lua_text_t name;
    return gp_look_byte(proto + layout->parameters) > 0 && lua_plain_local(layout, proto, 0, 0, &name) &&
           name.len == 4 && gp_look_byte(name.at) == 's' && gp_look_byte(name.at + 1) == 'e' &&
           gp_look_byte(name.at + 2) == 'l';
}

static bool lua_plain_is_state(const layout_t *layout, uintptr_t state)
{
    gp_peeks_t look = {0};
    return gp_look_byte(state + OBJECT_TAG) == THREAD &&
           gp_look_may_read(&look, gp_look_word(state + layout->state_top) - VALUE_BYTES, VALUE_BYTES) &&
           gp_look_may_read(&look, gp_look_word(state + layout->state_frame), layout->frame_pc + WORD);
}

static uintptr_t lua_plain_top_proto(const layout_t *layout, uintptr_t state)
{
    uintptr_t value = gp_look_word(state + layout->state_top) - VALUE_BYTES;
    gp_peeks_t look = {.is_sure = gp_lua_runtime.is_proved};
    uintptr_t closure = gp_look_word(value), proto = 0;
    if (gp_look_byte(value + VALUE_TAG) == layout->tag_lua &&
        gp_look_may_read(&look, closure, layout->closure_proto + WORD))
        proto = gp_look_word(closure + layout->closure_proto);
    bool is_proto =
        gp_look_may_read(&look, proto, layout->source + WORD) && gp_look_byte(proto + OBJECT_TAG) == layout->proto_tag;
    return is_proto ? proto : 0;
}

// The functions of one version, on its layout.
#define PLAIN(number)                                                                                                  \
    static const gp_lua_entry_t *lua_plain_walk_##number(gp_lua_walk_t *walk, const gp_lua_entry_t *entry)             \
    {                                                                                                                  \
        return lua_plain_walk(&layout_##number, walk, entry);                                                          \
    }                                                                                                                  \
    static bool lua_plain_decode_##number(uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)                      \
    {                                                                                                                  \
        return lua_plain_decode(&layout_##number, proto, pc, in);                                                      \
    }                                                                                                                  \
    static uint32_t lua_plain_code_size_##number(uintptr_t proto)                                                      \
    {                                                                                                                  \
        return gp_look_half(proto + layout_##number.code_size);                                                        \
    }                                                                                                                  \
    static bool lua_plain_local_##number(uintptr_t proto, int reg, uint32_t pc, gp_lua_text_t *name)                   \
    {                                                                                                                  \
        return lua_plain_local(&layout_##number, proto, reg, pc, name);                                                \
    }                                                                                                                  \
    static bool lua_plain_takes_self_##number(uintptr_t proto)                                                         \
    {                                                                                                                  \
        return lua_plain_takes_self(&layout_##number, proto);                                                          \
    }                                                                                                                  \
    static void lua_plain_describe_##number(uintptr_t proto, gp_lua_description_t *description)                        \
    {                                                                                                                  \
        lua_plain_describe(&layout_##number, proto, description);                                                      \
    }                                                                                                                  \
    static bool lua_plain_is_state_##number(uintptr_t state)                                                           \
    {                                                                                                                  \
        return lua_plain_is_state(&layout_##number, state);                                                            \
    }                                                                                                                  \
    static uintptr_t lua_plain_top_proto_##number(uintptr_t state)                                                     \
    {                                                                                                                  \
        return lua_plain_top_proto(&layout_##number, state);                                                           \
    }
#define PLAIN_ROW(number)                                                                                              \
    .walk = lua_plain_walk_##number, .code_size = lua_plain_code_size_##number, .decode = lua_plain_decode_##number,   \
    .local = lua_plain_local_##number, .takes_self = lua_plain_takes_self_##number,                                    \
    .describe = lua_plain_describe_##number, .is_state = lua_plain_is_state_##number,                                  \
    .top_proto = lua_plain_top_proto_##number

PLAIN(51)
PLAIN(53)
PLAIN(54)

const gp_lua_dialect_t gp_lua_dialects[] = {
    {.version = 501, .title = "Lua 5.1", PLAIN_ROW(51), .debug_line = 40, .debug_first_line = 48},
    {.version = 503, .title = "Lua 5.3", PLAIN_ROW(53), .debug_line = 40, .debug_first_line = 44},
    {.version = 504, .title = "Lua 5.4", PLAIN_ROW(54), .debug_line = 48, .debug_first_line = 52},
    {0},
};
