// SPDX-License-Identifier: MIT
// Lua 5.1, 5.3 and 5.4: call frames are a list, in 5.1 an array.
#include "lua_code.h"

#include "unwind/unwind.h"

enum {
    FRAMES_MAX = 65536,
    LISTED_MAX = 8192, // each is a look at other memory
    THREAD = 8,
    WORD = GP_LOOK_WORD,
};

// The prototype of a frame, or its function written in C, or none: it is being made.
typedef struct running {
    uintptr_t proto, in_c;
} running_t;

static running_t lua_plain_running(const gp_lua_layout_t *layout, gp_peeks_t *look, uintptr_t frame)
{
    enum { IS_IN_C = 10 };
    running_t running = {0};
    uintptr_t function = gp_look_word(frame + layout->frame_function);
    if (!gp_look_is_address(function) || function % WORD != 0 ||
        !gp_is_mapped(&look->mapped, function, GP_LUA_VALUE_BYTES))
        return running;
    uintptr_t value = gp_look_word(function);
    uint8_t tag = gp_look_byte(function + GP_LUA_VALUE_TAG);
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
    if (gp_look_may_read(look, proto, 2 * WORD) && gp_look_byte(proto + GP_LUA_OBJECT_TAG) == layout->proto_tag &&
        gp_look_may_read(look, proto, layout->source + WORD))
        running.proto = proto;
    return running;
}

// The number of a frame's instruction: the pc of the next one is kept. Some instructions do not keep theirs.
static bool lua_plain_place(const gp_lua_layout_t *layout, uintptr_t state, uintptr_t frame, bool is_leaf,
                            uintptr_t proto, uint32_t *pc)
{
    bool is_of_state = is_leaf && layout->state_pc != 0;
    uintptr_t next = gp_look_word(is_of_state ? state + layout->state_pc : frame + layout->frame_pc);
    uintptr_t code = gp_look_word(proto + layout->code), at = (next - code) / 4;
    *pc = at > 0 ? (uint32_t)at - 1 : 0;
    return at <= gp_look_half(proto + layout->code_size);
}

static uintptr_t lua_plain_before(const gp_lua_layout_t *layout, uintptr_t state, uintptr_t frame)
{
    if (layout->frame_before != 0)
        return gp_look_word(frame + layout->frame_before);
    return frame > gp_look_word(state + layout->state_stack) ? frame - layout->frame_bytes : 0;
}

// The frames of a 5.1 are an array; while it is given another size, the frame may be of the one before.
static size_t lua_plain_count_array(const gp_lua_layout_t *layout, gp_lua_walk_t *walk, uintptr_t state,
                                    uintptr_t frame)
{
    uintptr_t first = gp_look_word(state + layout->state_stack);
    size_t count = (frame - first) / layout->frame_bytes;
    bool is_within = count < gp_look_half(state + layout->state_stack_size) && count < FRAMES_MAX &&
                     (frame - first) % layout->frame_bytes == 0;
    return is_within && gp_look_may_read(&walk->look, first, WORD) ? count : 0;
}

// How many frames of a state can be read, LISTED_MAX at most; the outermost one, of no function, does not count.
//   tail: the frame, and then the one behind those that there is no room for
static size_t lua_plain_count(const gp_lua_layout_t *layout, gp_lua_walk_t *walk, uintptr_t state, uintptr_t *tail)
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
static bool lua_plain_is_called(const gp_lua_layout_t *layout, uintptr_t frame, uintptr_t caller,
                                const gp_lua_site_t *site)
{
    gp_lua_instruction_t call;
    if (!gp_lua_code_decode(layout, site->proto, site->pc, &call) || call.kind != GP_LUA_CALL)
        return true;
    uintptr_t base = layout->frame_base == GP_LUA_BEHIND_FUNCTION
                         ? gp_look_word(caller + layout->frame_function) + GP_LUA_VALUE_BYTES
                         : gp_look_word(caller + layout->frame_base);
    return gp_look_word(frame + layout->frame_function) == base + (uintptr_t)call.reg * GP_LUA_VALUE_BYTES;
}

// Is the innermost frame's function on the stack of its state? A frame that is being made has what its memory was.
static bool lua_plain_is_on_stack(const gp_lua_layout_t *layout, uintptr_t state, uintptr_t frame)
{
    uintptr_t function = gp_look_word(frame + layout->frame_function);
    return function >= gp_look_word(state + layout->state_values) &&
           function <= gp_look_word(state + layout->state_values_end);
}

static void lua_plain_put(const gp_lua_layout_t *layout, gp_lua_walk_t *walk, uintptr_t state, uintptr_t frame,
                          bool is_leaf)
{
    uint32_t pc;
    gp_lua_site_t site = {0};
    if (is_leaf && !lua_plain_is_on_stack(layout, state, frame))
        return;
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
            gp_lua_put_frame(walk, running.proto, is_there ? gp_lua_code_line(layout, running.proto, pc) : 0);
    } else if (running.in_c != 0) {
        gp_lua_put_c(walk, running.in_c, &site);
    }
}

static const gp_lua_entry_t *lua_plain_walk(const gp_lua_layout_t *layout, gp_lua_walk_t *walk,
                                            const gp_lua_entry_t *entry)
{
    uintptr_t state = entry->state, frame;
    walk->look.is_sure = false;
    if (!gp_look_may_read(&walk->look, state, 12 * WORD) || gp_look_byte(state + GP_LUA_OBJECT_TAG) != THREAD)
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

static void lua_plain_describe(const gp_lua_layout_t *layout, uintptr_t proto, gp_lua_description_t *description)
{
    gp_lua_code_string(gp_look_word(proto + layout->source), &description->source);
    description->first_line = gp_look_half(proto + layout->first_line);
}

static bool lua_plain_takes_self(const gp_lua_layout_t *layout, uintptr_t proto)
{
    gp_lua_text_t name;
    return gp_look_byte(proto + layout->parameters) > 0 && gp_lua_code_local(layout, proto, 0, 0, &name) &&
           name.len == 4 && gp_look_byte(name.at) == 's' && gp_look_byte(name.at + 1) == 'e' &&
           gp_look_byte(name.at + 2) == 'l';
}

static bool lua_plain_is_state(const gp_lua_layout_t *layout, uintptr_t state)
{
    gp_peeks_t look = {0};
    return gp_look_byte(state + GP_LUA_OBJECT_TAG) == THREAD &&
           gp_look_may_read(&look, gp_look_word(state + layout->state_top) - GP_LUA_VALUE_BYTES, GP_LUA_VALUE_BYTES) &&
           gp_look_may_read(&look, gp_look_word(state + layout->state_frame), layout->frame_pc + WORD);
}

static uintptr_t lua_plain_top_proto(const gp_lua_layout_t *layout, uintptr_t state)
{
    uintptr_t value = gp_look_word(state + layout->state_top) - GP_LUA_VALUE_BYTES;
    gp_peeks_t look = {.is_sure = gp_lua_runtime.is_proved};
    uintptr_t closure = gp_look_word(value), proto = 0;
    if (gp_look_byte(value + GP_LUA_VALUE_TAG) == layout->tag_lua &&
        gp_look_may_read(&look, closure, layout->closure_proto + WORD))
        proto = gp_look_word(closure + layout->closure_proto);
    bool is_proto = gp_look_may_read(&look, proto, layout->source + WORD) &&
                    gp_look_byte(proto + GP_LUA_OBJECT_TAG) == layout->proto_tag;
    return is_proto ? proto : 0;
}

// The functions of one version, on its layout.
#define PLAIN(number)                                                                                                  \
    static const gp_lua_entry_t *lua_plain_walk_##number(gp_lua_walk_t *walk, const gp_lua_entry_t *entry)             \
    {                                                                                                                  \
        return lua_plain_walk(&gp_lua_layout_##number, walk, entry);                                                   \
    }                                                                                                                  \
    static bool lua_plain_decode_##number(uintptr_t proto, uint32_t pc, gp_lua_instruction_t *in)                      \
    {                                                                                                                  \
        return gp_lua_code_decode(&gp_lua_layout_##number, proto, pc, in);                                             \
    }                                                                                                                  \
    static uint32_t lua_plain_code_size_##number(uintptr_t proto)                                                      \
    {                                                                                                                  \
        return gp_look_half(proto + gp_lua_layout_##number.code_size);                                                 \
    }                                                                                                                  \
    static bool lua_plain_local_##number(uintptr_t proto, int reg, uint32_t pc, gp_lua_text_t *name)                   \
    {                                                                                                                  \
        return gp_lua_code_local(&gp_lua_layout_##number, proto, reg, pc, name);                                       \
    }                                                                                                                  \
    static bool lua_plain_takes_self_##number(uintptr_t proto)                                                         \
    {                                                                                                                  \
        return lua_plain_takes_self(&gp_lua_layout_##number, proto);                                                   \
    }                                                                                                                  \
    static void lua_plain_describe_##number(uintptr_t proto, gp_lua_description_t *description)                        \
    {                                                                                                                  \
        lua_plain_describe(&gp_lua_layout_##number, proto, description);                                               \
    }                                                                                                                  \
    static bool lua_plain_is_state_##number(uintptr_t state)                                                           \
    {                                                                                                                  \
        return lua_plain_is_state(&gp_lua_layout_##number, state);                                                     \
    }                                                                                                                  \
    static uintptr_t lua_plain_top_proto_##number(uintptr_t state)                                                     \
    {                                                                                                                  \
        return lua_plain_top_proto(&gp_lua_layout_##number, state);                                                    \
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
