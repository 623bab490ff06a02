// SPDX-License-Identifier: MIT
// LuaJIT 2.1 with 64-bit references (GC64): frames are slots of the Lua stack, linked by the words below their bases.
//
// The running state is the global state's; where it is depends on the build, and the trial finds it. In the
// interpreter's assembly the innermost base and instruction are in registers. A coroutine's stack goes on where it was
// resumed by the interpreter: the machine stack has one frame of the interpreter beyond the other.
// Code of a trace runs on the frame of its beginning; its snapshots say to which instruction a place in it belongs,
// perhaps in an inlined function.
//
// Source: LuaJIT 2.1 (2022-03), lj_obj.h (lua_State, global_State, GCproto, GCfunc), lj_frame.h, lj_debug.c
// (lj_debug_frame, debug_framepc, debug_varname, lj_debug_line), lj_jit.h (GCtrace, SnapShot), lj_bc.h, vm_x64.dasc.
#include "lua_frames.h"

#include "unwind/unwind.h"

enum {
    FRAMES_MAX = 65536,
    STATES_MAX = 256,
    WORD = GP_LOOK_WORD,
    TYPE = 9, // of an object
    TYPE_STATE = 6,
    TYPE_PROTO = 7,
    TYPE_FUNCTION = 8,
    TYPE_TRACE = 9,
    VALUE_BITS = 47,
    VALUE_FUNCTION = 0x1fff7, // the bits above

    STATE_GLOBAL = 16,
    STATE_BASE = 32,
    STATE_TOP = 40,
    STATE_MAX = 48,
    STATE_STACK = 56,
    STATE_MACHINE = 80, // the innermost frame of the interpreter on the machine stack
    STATE_BYTES = 96,
    MACHINE_STATE = 16,
    MACHINE_PC = 24,
    MACHINE_BEFORE = 32,
    MACHINE_RETURN = 72,
    MACHINE_BYTES = 80,

    FUNCTION_KIND = 10, // 0 = Lua
    FUNCTION_PC = 32,
    FUNCTION_CODE = 40,

    PROTO_PARAMETERS = 10,
    PROTO_REGISTERS = 11,
    PROTO_SIZE = 12,
    PROTO_CONSTANTS = 32,
    PROTO_CONSTANTS_SIZE = 48,
    PROTO_UPVALUES_SIZE = 60,
    PROTO_SOURCE = 64,
    PROTO_FIRST_LINE = 72,
    PROTO_LINES = 76,
    PROTO_LINE_TABLE = 80,
    PROTO_UPVALUES = 88,
    PROTO_LOCALS = 96,
    PROTO_BYTES = 104,

    STRING_LEN = 20,
    STRING_TEXT = 24,

    FRAME_TYPE = 3, // bits of a frame's link
    FRAME_KIND = 7,
    FRAME_LUA = 0,
    FRAME_IN_C = 1,
    FRAME_CONTINUATION = 2,
    FRAME_VARARG = 3,
    FRAME_IN_C_PROTECTED = 5,

    TRACE_SNAPSHOTS = 10, // how many
    TRACE_IR = 32,
    TRACE_SNAPSHOT = 48,
    TRACE_MAP = 56,
    TRACE_PROTO = 64,
    TRACE_PC = 72,
    TRACE_BYTES = 104,
    TRACE_CODE_SIZE = 84,
    TRACE_CODE = 88,
    SNAPSHOT_BYTES = 12,
    SNAPSHOT_PLACE = 6,
    SNAPSHOT_ENTRIES = 10,
    SNAPSHOT_PC_SHIFT = 8,
    CONSTANT_END = 0x8000, // of the references of an IR
    TEXT_MAX = 4096,
    GP_RDX = 1,
    GP_RBX = 3,
};

typedef struct spot { // where a state is
    uintptr_t frame, pc;
} spot_t;

static uint32_t lua_jit_short(uintptr_t address)
{
    return gp_look_byte(address) | (uint32_t)gp_look_byte(address + 1) << 8;
}

static uintptr_t lua_jit_value(uintptr_t slot)
{
    return gp_look_word(slot) & (((uintptr_t)1 << VALUE_BITS) - 1);
}

static bool lua_jit_string(uintptr_t string, gp_lua_text_t *text)
{
    *text = (gp_lua_text_t){0};
    if (!gp_look_is_address(string))
        return false;
    text->at = string + STRING_TEXT;
    text->len = gp_look_half(string + STRING_LEN);
    return true;
}

static uintptr_t lua_jit_constant(uintptr_t proto, uint32_t number)
{
    if (number >= gp_look_half(proto + PROTO_CONSTANTS_SIZE))
        return 0;
    return gp_look_word(gp_look_word(proto + PROTO_CONSTANTS) - ((uintptr_t)number + 1) * WORD);
}

// A text that ends with NUL; returns what is behind it.
static uintptr_t lua_jit_text(uintptr_t at, gp_lua_text_t *text)
{
    text->at = at;
    for (text->len = 0; text->len < TEXT_MAX && gp_look_byte(at + text->len) != 0;)
        text->len++;
    return at + text->len + 1;
}

static bool lua_jit_upvalue(uintptr_t proto, uint32_t number, gp_lua_text_t *name)
{
    uintptr_t at = gp_look_word(proto + PROTO_UPVALUES);
    if (at == 0 || number >= gp_look_byte(proto + PROTO_UPVALUES_SIZE))
        return false;
    for (uint32_t i = 0; i <= number; i++)
        at = lua_jit_text(at, name);
    return true;
}

// A number of 7 bits a byte, the lowest first.
static uint32_t lua_jit_number(uintptr_t *at)
{
    enum { BITS = 7, MORE = 0x80, SHIFT_MAX = 28 };
    uint32_t number = 0;
    for (unsigned shift = 0; shift <= SHIFT_MAX; shift += BITS) {
        uint8_t byte = gp_look_byte((*at)++);
        number |= (uint32_t)(byte & (MORE - 1)) << shift;
        if (byte < MORE)
            break;
    }
    return number;
}

static bool lua_jit_local(uintptr_t proto, int reg, uint32_t pc, gp_lua_text_t *name)
{
    enum { NAMES = 7, LOCALS_MAX = 4096 }; // below: of what has no name of its own; 0 = the end
    uintptr_t at = gp_look_word(proto + PROTO_LOCALS);
    uint32_t from = 0;
    for (int i = 0; at != 0 && i < LOCALS_MAX; i++) {
        uint8_t first = gp_look_byte(at);
        if (first == 0)
            return false;
        at = first < NAMES ? at + 1 : lua_jit_text(at, name);
        from += lua_jit_number(&at);
        if (from > pc)
            return false;
        uint32_t to = from + lua_jit_number(&at);
        if (pc < to && reg-- == 0)
            return first >= NAMES;
    }
    return false;
}

static uint32_t lua_jit_code_size(uintptr_t proto)
{
    return gp_look_half(proto + PROTO_SIZE);
}

// 8 bits each of the operation, A, C and B; D is C and B.
static bool lua_jit_decode_any(uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)
{
    enum { MOVE = 18, GET_UPVALUE = 45, SET_UPVALUE, CLOSURE = 51, NEW_TABLE, COPY_TABLE, GET_GLOBAL, SET_GLOBAL };
    enum { GET_FIELD = 57, SET_FIELD = 61, CALL_MORE = 65, CALL, TAIL_CALL_MORE, TAIL_CALL, ITERATE, ITERATE_NEXT };
    uint32_t word = gp_look_half(proto + PROTO_BYTES + (uintptr_t)pc * 4), d = word >> 16;
    *in = (gp_lua_instruction_t){.reg = (int)(word >> 8 & 0xff), .next = 1, .from = (int)(word >> 24)};
    switch (word & 0xff) {
    case MOVE:
        in->kind = GP_LUA_MOVE;
        in->from = (int)d;
        return true;
    case GET_UPVALUE:
        in->kind = GP_LUA_NAMED;
        return lua_jit_upvalue(proto, d, &in->name);
    case SET_UPVALUE:
        in->kind = GP_LUA_SET_NAMED;
        lua_jit_upvalue(proto, (uint32_t)in->reg, &in->name);
        in->reg = (int)d;
        return in->name.at != 0;
    case GET_GLOBAL:
    case SET_GLOBAL:
        in->kind = (word & 0xff) == GET_GLOBAL ? GP_LUA_NAMED : GP_LUA_SET_NAMED;
        return lua_jit_string(lua_jit_constant(proto, d), &in->name);
    case GET_FIELD:
    case SET_FIELD:
        in->kind = (word & 0xff) == GET_FIELD ? GP_LUA_FIELD : GP_LUA_SET_FIELD;
        return lua_jit_string(lua_jit_constant(proto, d & 0xff), &in->name);
    case NEW_TABLE:
    case COPY_TABLE:
        in->kind = GP_LUA_NEW;
        return true;
    case CLOSURE:
        in->kind = GP_LUA_CLOSURE;
        in->child = lua_jit_constant(proto, d);
        return in->child != 0;
    case CALL_MORE:
    case CALL:
    case TAIL_CALL_MORE:
    case TAIL_CALL:
        in->kind = GP_LUA_CALL;
        return true;
    case ITERATE:
    case ITERATE_NEXT:
        in->kind = GP_LUA_ITERATE;
        return true;
    default:
        return true;
    }
}

static bool lua_jit_decode(uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)
{
    return pc < lua_jit_code_size(proto) && lua_jit_decode_any(proto, pc, in) &&
           (in->kind == GP_LUA_OTHER || in->reg < gp_look_byte(proto + PROTO_REGISTERS));
}

static uint32_t lua_jit_line(uintptr_t proto, uintptr_t pc)
{
    uint32_t first = gp_look_half(proto + PROTO_FIRST_LINE), lines = gp_look_half(proto + PROTO_LINES);
    uintptr_t table = gp_look_word(proto + PROTO_LINE_TABLE), at = (pc - proto - PROTO_BYTES) / 4;
    if (table == 0 || pc < proto + PROTO_BYTES || at >= lua_jit_code_size(proto))
        return 0;
    if (at-- == 0)
        return first;
    if (lines <= UINT8_MAX)
        return first + gp_look_byte(table + at);
    return first + (lines <= UINT16_MAX ? lua_jit_short(table + at * 2) : gp_look_half(table + at * 4));
}

static bool lua_jit_holds(uintptr_t proto, uintptr_t pc)
{
    return pc >= proto + PROTO_BYTES && pc - proto - PROTO_BYTES <= (uintptr_t)lua_jit_code_size(proto) * 4;
}

static bool lua_jit_is(gp_peeks_t *look, uintptr_t object, uint8_t type, size_t bytes)
{
    return gp_look_may_read(look, object, bytes) && gp_look_byte(object + TYPE) == type;
}

// The prototype of a function; 0 = it is written in C.
static uintptr_t lua_jit_proto(gp_peeks_t *look, uintptr_t function)
{
    uintptr_t proto = gp_look_word(function + FUNCTION_PC) - PROTO_BYTES;
    bool is_lua = gp_look_byte(function + FUNCTION_KIND) == 0 && lua_jit_is(look, proto, TYPE_PROTO, PROTO_BYTES);
    return is_lua ? proto : 0;
}

static bool lua_jit_is_frame(gp_peeks_t *look, uintptr_t state, uintptr_t frame)
{
    uintptr_t stack = gp_look_word(state + STATE_STACK);
    return frame % WORD == 0 && frame > stack && frame < gp_look_word(state + STATE_MAX) &&
           gp_is_mapped(&look->mapped, frame - WORD, 2 * WORD);
}

static bool lua_jit_is_function_frame(gp_peeks_t *look, uintptr_t state, uintptr_t frame)
{
    return lua_jit_is_frame(look, state, frame) && gp_look_word(frame - WORD) >> VALUE_BITS == VALUE_FUNCTION &&
           lua_jit_is(look, lua_jit_value(frame - WORD), TYPE_FUNCTION, FUNCTION_CODE + WORD);
}

static uintptr_t lua_jit_machine(uintptr_t state)
{
    return gp_look_word(state + STATE_MACHINE) & ~(uintptr_t)3;
}

static bool lua_jit_may_read_machine(const gp_lua_walk_t *walk, uintptr_t machine)
{
    return machine >= walk->place->sp && machine < walk->place->stack_hi - MACHINE_BYTES - 3 * WORD &&
           machine % WORD == 0;
}

// The trace that runs, 0 = none or not known.
static uintptr_t lua_jit_trace(gp_lua_walk_t *walk, uintptr_t global)
{
    int32_t number = (int32_t)gp_look_half(global + gp_lua_runtime.state);
    uintptr_t all = global + gp_lua_runtime.traces;
    if (number <= 0 || gp_lua_runtime.traces == 0 || !gp_look_may_read(&walk->look, all, WORD))
        return 0;
    uintptr_t slot = gp_look_word(all) + (uintptr_t)number * WORD;
    if (!gp_look_may_read(&walk->look, slot, WORD))
        return 0;
    uintptr_t trace = gp_look_word(slot);
    return lua_jit_is(&walk->look, trace, TYPE_TRACE, TRACE_BYTES) ? trace : 0;
}

// The snapshot that a place in a trace's code belongs to: the last one before it; outside of the code, the first.
static uintptr_t lua_jit_snapshot(gp_lua_walk_t *walk, uintptr_t trace)
{
    uintptr_t code = gp_look_word(trace + TRACE_CODE), found = gp_look_word(trace + TRACE_SNAPSHOT), at = found;
    uint32_t count = lua_jit_short(trace + TRACE_SNAPSHOTS);
    uintptr_t place = walk->place->pc - code;
    if (count == 0 || !gp_is_mapped(&walk->look.mapped, at, (size_t)count * SNAPSHOT_BYTES))
        return 0;
    for (uint32_t i = 0; i < count && place < gp_look_half(trace + TRACE_CODE_SIZE); i++, at += SNAPSHOT_BYTES)
        if (lua_jit_short(at + SNAPSHOT_PLACE) <= place)
            found = at;
    return found;
}

// The instruction of the bytecode at this place of a trace, and its prototype: the one of the trace's frame, or one
// among the trace's constants, as inlined ones are.
static uintptr_t lua_jit_inlined(gp_lua_walk_t *walk, uintptr_t trace, uintptr_t of_frame, uintptr_t *pc)
{
    uintptr_t snapshot = lua_jit_snapshot(walk, trace);
    if (snapshot == 0)
        return 0;
    uintptr_t map = gp_look_word(trace + TRACE_MAP) + (uintptr_t)gp_look_half(snapshot) * 4;
    uint32_t count = gp_look_byte(snapshot + SNAPSHOT_ENTRIES);
    if (!gp_is_mapped(&walk->look.mapped, map, ((size_t)count + 2) * 4))
        return 0;
    uintptr_t link = map + (uintptr_t)count * 4;
    *pc = (gp_look_half(link) | (uintptr_t)gp_look_half(link + 4) << 32) >> SNAPSHOT_PC_SHIFT;
    if (of_frame != 0 && lua_jit_holds(of_frame, *pc))
        return of_frame;
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t reference = gp_look_half(map + (uintptr_t)i * 4) & UINT16_MAX;
        uintptr_t constant = gp_look_word(trace + TRACE_IR) + (reference + 1) * WORD;
        if (reference >= CONSTANT_END || !gp_look_may_read(&walk->look, constant, WORD))
            continue;
        uintptr_t function = gp_look_word(constant);
        uintptr_t proto = lua_jit_is(&walk->look, function, TYPE_FUNCTION, FUNCTION_CODE + WORD)
                              ? lua_jit_proto(&walk->look, function)
                              : 0;
        if (proto != 0 && lua_jit_holds(proto, *pc))
            return proto;
    }
    uintptr_t start = gp_look_word(trace + TRACE_PROTO);
    return lua_jit_is(&walk->look, start, TYPE_PROTO, PROTO_BYTES) && lua_jit_holds(start, *pc) ? start : 0;
}

static spot_t lua_jit_trace_spot(gp_lua_walk_t *walk, uintptr_t global, uintptr_t state)
{
    uintptr_t base = gp_look_word(global + gp_lua_runtime.base), trace = lua_jit_trace(walk, global), pc = 0;
    spot_t spot = {.frame = base - WORD};
    if (!lua_jit_is_function_frame(&walk->look, state, spot.frame))
        return (spot_t){.frame = gp_look_word(state + STATE_BASE) - WORD};
    uintptr_t of_frame = lua_jit_proto(&walk->look, lua_jit_value(spot.frame - WORD));
    if (trace == 0)
        return spot;
    uintptr_t inlined = lua_jit_inlined(walk, trace, of_frame, &pc);
    spot.pc = inlined == of_frame ? pc : gp_look_word(trace + TRACE_PC);
    if (inlined != 0 && inlined != of_frame)
        gp_lua_put_frame(walk, inlined, lua_jit_line(inlined, pc));
    return spot;
}

// The frame before, and where it is.
static spot_t lua_jit_before(gp_peeks_t *look, const spot_t *spot)
{
    uintptr_t link = gp_look_word(spot->frame);
    if ((link & FRAME_TYPE) == FRAME_LUA) {
        uintptr_t moved = link - 4 + 1;               // the operand A of the call
        if (!gp_page_is_mapped(&look->mapped, moved)) // not written yet: what was there before
            return (spot_t){.frame = UINTPTR_MAX};
        return (spot_t){spot->frame - (2 + (uintptr_t)gp_look_byte(moved)) * WORD, link};
    }
    spot_t before = {.frame = spot->frame - (link & ~(uintptr_t)FRAME_KIND)};
    if ((link & FRAME_KIND) == FRAME_CONTINUATION)
        before.pc = gp_look_word(spot->frame - 2 * WORD);
    else if ((link & FRAME_KIND) == FRAME_VARARG)
        before.pc = spot->pc;
    return before;
}

// Is it a frame whose link has been written, too?
static bool lua_jit_is_linked(gp_peeks_t *look, uintptr_t state, uintptr_t frame)
{
    const spot_t spot = {.frame = frame};
    if (!lua_jit_is_function_frame(look, state, frame))
        return false;
    spot_t outer = lua_jit_before(look, &spot);
    return outer.frame <= frame && (outer.frame <= gp_look_word(state + STATE_STACK) + WORD ||
                                    lua_jit_is_function_frame(look, state, outer.frame));
}

// Where a running state is.
static spot_t lua_jit_spot(gp_lua_walk_t *walk, uintptr_t global, uintptr_t state)
{
    const uintptr_t *gp = walk->place->gp;
    uintptr_t machine = lua_jit_machine(state);
    spot_t spot = {.frame = gp_look_word(state + STATE_BASE) - WORD};
    if ((int32_t)gp_look_half(global + gp_lua_runtime.state) >= 0)
        return lua_jit_trace_spot(walk, global, state);
    if (lua_jit_may_read_machine(walk, machine))
        spot.pc = gp_look_word(machine + MACHINE_PC);
    if (gp == NULL || !gp_lua_is_loop(walk->place->pc))
        return spot;
    if (lua_jit_is_linked(&walk->look, state, gp[GP_RDX] - WORD))
        spot = (spot_t){.frame = gp[GP_RDX] - WORD, .pc = gp[GP_RBX]};
    return spot;
}

static void lua_jit_put(gp_lua_walk_t *walk, uintptr_t function, const spot_t *spot, uintptr_t before, uintptr_t pc)
{
    uintptr_t proto = lua_jit_proto(&walk->look, function);
    if (proto != 0) {
        bool is_there = lua_jit_holds(proto, spot->pc) && spot->pc > proto + PROTO_BYTES;
        gp_lua_put_frame(walk, proto, is_there ? lua_jit_line(proto, spot->pc - 4) : 0);
        return;
    }
    gp_lua_site_t caller = {0};
    if (pc != 0 && lua_jit_is(&walk->look, before, TYPE_FUNCTION, FUNCTION_CODE + WORD)) {
        caller.proto = lua_jit_proto(&walk->look, before);
        caller.pc = (uint32_t)((pc - caller.proto - PROTO_BYTES) / 4 - 1);
    }
    gp_lua_put_c(walk, gp_look_word(function + FUNCTION_CODE), &caller);
}

// How many frames a state has; 0 = there is room for all of them.
static size_t lua_jit_count(gp_lua_walk_t *walk, uintptr_t state, spot_t spot)
{
    enum { SLOTS = 2 }; // of a frame, at least
    size_t count = 0;
    if ((spot.frame - gp_look_word(state + STATE_STACK)) / WORD / SLOTS <= walk->max - walk->depth)
        return 0;
    for (; count < FRAMES_MAX && lua_jit_is_frame(&walk->look, state, spot.frame); count++) {
        spot_t before = lua_jit_before(&walk->look, &spot);
        if (before.frame >= spot.frame)
            break;
        spot = before;
    }
    return count;
}

static void lua_jit_state(gp_lua_walk_t *walk, uintptr_t state, spot_t spot)
{
    bool is_copy = false;
    gp_lua_skip(walk, lua_jit_count(walk, state, spot));
    for (size_t i = 0; i < FRAMES_MAX && lua_jit_is_frame(&walk->look, state, spot.frame); i++) {
        uintptr_t link = gp_look_word(spot.frame), function = lua_jit_value(spot.frame - WORD);
        spot_t before = lua_jit_before(&walk->look, &spot);
        bool is_function =
            !gp_lua_is_skipped(walk) && function != state && lua_jit_is_function_frame(&walk->look, state, spot.frame);
        if (is_function && !is_copy)
            lua_jit_put(walk, function, &spot,
                        lua_jit_is_frame(&walk->look, state, before.frame) ? lua_jit_value(before.frame - WORD) : 0,
                        before.pc);
        is_copy = (link & FRAME_KIND) == FRAME_VARARG && (link & FRAME_TYPE) != FRAME_LUA;
        if (walk->depth > 0 && ((link & FRAME_KIND) == FRAME_IN_C || (link & FRAME_KIND) == FRAME_IN_C_PROTECTED))
            walk->frames[walk->depth - 1] |= GP_LANGUAGE_ENTRY;
        if (before.frame >= spot.frame) // the first of a coroutine
            return;
        spot = before;
    }
}

// The state by which the interpreter has resumed `state`; 0 = something else has.
//   end: the outermost frame of the interpreter on the machine stack of `state`
static uintptr_t lua_jit_resumer(gp_lua_walk_t *walk, uintptr_t state, uintptr_t *end)
{
    uintptr_t machine = lua_jit_machine(state), before = machine;
    if (machine == 0 && gp_lua_is_loop(walk->place->pc)) // it yields just now
        before = machine = walk->place->sp;
    for (size_t i = 0; i < STATES_MAX && lua_jit_may_read_machine(walk, before); i++) {
        machine = before;
        before = gp_look_word(machine + MACHINE_BEFORE) & ~(uintptr_t)3;
    }
    *end = machine;
    if (!lua_jit_may_read_machine(walk, machine) || before != 0 ||
        !gp_lua_is_loop(gp_look_word(machine + MACHINE_RETURN)))
        return 0;
    uintptr_t resumer = gp_look_word(machine + MACHINE_BYTES + MACHINE_STATE);
    return lua_jit_is(&walk->look, resumer, TYPE_STATE, STATE_BYTES) ? resumer : 0;
}

static const gp_lua_entry_t *lua_jit_walk(gp_lua_walk_t *walk, const gp_lua_entry_t *entry)
{
    uintptr_t state = entry->state, last = state, end = 0;
    walk->look.is_sure = false;
    if (!lua_jit_is(&walk->look, state, TYPE_STATE, STATE_BYTES))
        return NULL;
    uintptr_t global = gp_look_word(state + STATE_GLOBAL);
    if (!gp_look_may_read(&walk->look, global + (uintptr_t)(gp_lua_runtime.current & ~7), 2 * WORD) ||
        !gp_look_may_read(&walk->look, global + (uintptr_t)(gp_lua_runtime.state & ~7), WORD))
        return NULL;
    uintptr_t current = gp_look_word(global + gp_lua_runtime.current);
    bool is_running = !walk->is_begun;
    const gp_lua_entry_t *next = walk->is_begun ? gp_lua_outer(walk, entry) : entry;
    walk->is_begun = true;
    if (is_running && lua_jit_is(&walk->look, current, TYPE_STATE, STATE_BYTES))
        state = current;
    for (int i = 0; i < STATES_MAX && state != 0; i++) {
        uintptr_t machine = lua_jit_machine(state);
        spot_t spot = {.frame = gp_look_word(state + STATE_BASE) - WORD};
        if (lua_jit_may_read_machine(walk, machine))
            spot.pc = gp_look_word(machine + MACHINE_PC);
        if (is_running)
            spot = lua_jit_spot(walk, global, state);
        lua_jit_state(walk, state, spot);
        is_running = false;
        last = state;
        state = lua_jit_resumer(walk, state, &end);
    }
    if (end == 0)
        return NULL;
    while (next != NULL && ((uintptr_t)next < end || next->state == last))
        next = gp_lua_outer(walk, next);
    return next;
}

static void lua_jit_describe(uintptr_t proto, gp_lua_description_t *description)
{
    lua_jit_string(gp_look_word(proto + PROTO_SOURCE), &description->source);
    description->first_line = gp_look_half(proto + PROTO_FIRST_LINE);
}

static bool lua_jit_takes_self(uintptr_t proto)
{
    gp_lua_text_t name;
    return gp_look_byte(proto + PROTO_PARAMETERS) > 0 && lua_jit_local(proto, 0, 1, &name) && name.len == 4 &&
           gp_look_byte(name.at) == 's' && gp_look_byte(name.at + 1) == 'e' && gp_look_byte(name.at + 2) == 'l';
}

static bool lua_jit_is_state(uintptr_t state)
{
    uintptr_t stack = gp_look_word(state + STATE_STACK), base = gp_look_word(state + STATE_BASE);
    uintptr_t top = gp_look_word(state + STATE_TOP), max = gp_look_word(state + STATE_MAX);
    gp_peeks_t look = {0};
    return gp_look_byte(state + TYPE) == TYPE_STATE && gp_look_is_address(stack) && stack < base && base <= top &&
           top < max && max - stack < 1 << 16 && stack % WORD == 0 && top % WORD == 0 &&
           gp_look_may_read(&look, stack, WORD) && gp_look_may_read(&look, gp_look_word(state + STATE_GLOBAL), WORD);
}

static uintptr_t lua_jit_top_proto(uintptr_t state)
{
    gp_peeks_t look = {.is_sure = gp_lua_runtime.is_proved};
    uintptr_t slot = gp_look_word(state + STATE_TOP) - WORD;
    return gp_look_word(slot) >> VALUE_BITS == VALUE_FUNCTION ? lua_jit_proto(&look, lua_jit_value(slot)) : 0;
}

const gp_lua_dialect_t gp_luajit_dialect = {
    .title = "LuaJIT",
    .walk = lua_jit_walk,
    .code_size = lua_jit_code_size,
    .decode = lua_jit_decode,
    .local = lua_jit_local,
    .takes_self = lua_jit_takes_self,
    .describe = lua_jit_describe,
    .is_state = lua_jit_is_state,
    .top_proto = lua_jit_top_proto,
    .debug_line = 40,
    .debug_first_line = 48,
};
