// SPDX-License-Identifier: MIT
// The table of functions, which handlers and loads write, and the walk's frames.
#include "lua_frames.h"

#include "signal/thread.h"
#include "unwind/unwind.h"

enum { PROBES = 16, WITHIN_MAX = 200 };

static gp_lua_object_t *lua_functions_home(uintptr_t address, uint32_t probe)
{
    uint64_t hash = (address >> 3) * 0x9e3779b97f4a7c15ull;
    return &gp_lua_runtime.table->objects[((hash >> 40) + probe) % GP_LUA_OBJECTS];
}

static gp_lua_object_t *lua_functions_find(uintptr_t address)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        gp_lua_object_t *object = lua_functions_home(address, i);
        // Acquire: partner of the release in lua_functions_write().
        if (atomic_load_explicit(&object->address, memory_order_acquire) == address)
            return object;
    }
    return NULL;
}

// Take a record for an address that has none: a free one, else one of another, which is met anew when it runs.
static gp_lua_object_t *lua_functions_take(uintptr_t address)
{
    for (uint32_t i = 0; i < PROBES; i++) {
        gp_lua_object_t *object = lua_functions_home(address, i);
        if (atomic_load_explicit(&object->address, memory_order_relaxed) == 0)
            return object;
    }
    return lua_functions_home(address, (uint32_t)(address >> 12) % PROBES);
}

static gp_lua_object_t *lua_functions_write(uintptr_t address, const char *name, size_t name_len)
{
    gp_lua_object_t *object = lua_functions_find(address);
    object = object != NULL ? object : lua_functions_take(address);
    atomic_store_explicit(&object->address, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&object->number, 0, memory_order_relaxed);
    object->name_len = (uint32_t)name_len;
    gp_look_copy(object->name, (uintptr_t)name, name_len);
    // Release: partner of the acquire in lua_functions_find().
    atomic_store_explicit(&object->address, address, memory_order_release);
    return object;
}

static void lua_functions_meet(const gp_lua_dialect_t *dialect, uintptr_t proto, int within)
{
    char name[GP_LUA_NAME_SIZE];
    gp_lua_instruction_t instruction;
    uint32_t size = dialect->code_size(proto);
    for (uint32_t pc = 0; pc < size; pc++) {
        if (!dialect->decode(proto, pc, &instruction) || instruction.kind != GP_LUA_CLOSURE)
            continue;
        lua_functions_write(instruction.child, name, gp_lua_name_of_closure(dialect, proto, pc, &instruction, name));
        if (within < WITHIN_MAX)
            lua_functions_meet(dialect, instruction.child, within + 1);
    }
}

void gp_lua_meet(const gp_lua_dialect_t *dialect, uintptr_t proto)
{
    lua_functions_write(proto, NULL, 0);
    lua_functions_meet(dialect, proto, 0);
}

static void lua_functions_describe(gp_lua_function_t *function, const gp_lua_dialect_t *dialect, uintptr_t proto)
{
    gp_lua_description_t description = {0};
    dialect->describe(proto, &description);
    gp_lua_text_t *source = &description.source;
    function->first_line = description.first_line;
    if (source->len > GP_LUA_SOURCE_SIZE && gp_look_byte(source->at) == '@') { // of a path, the end
        source->at += source->len - GP_LUA_SOURCE_SIZE;
        source->len = GP_LUA_SOURCE_SIZE;
    }
    function->source_len = (uint16_t)(source->len < GP_LUA_SOURCE_SIZE ? source->len : GP_LUA_SOURCE_SIZE);
    if (source->at != 0)
        gp_look_copy(function->source, source->at, function->source_len);
}

// Returns the number of a function that is met for the first time, 0 = there is no room.
//   proto: 0 = it is written in C
static uint32_t lua_functions_make(uintptr_t address, uintptr_t proto, const gp_lua_object_t *known,
                                   const gp_lua_site_t *caller)
{
    gp_lua_functions_t *table = gp_lua_runtime.table;
    const gp_lua_dialect_t *dialect = atomic_load_explicit(&gp_lua_runtime.dialect, memory_order_relaxed);
    uint32_t number = atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed) + 1;
    if (number >= GP_LUA_FUNCTIONS) {
        atomic_store_explicit(&table->count, GP_LUA_FUNCTIONS, memory_order_relaxed);
        return 0;
    }
    gp_lua_function_t *function = &table->functions[number];
    function->object = address;
    function->is_c = proto == 0;
    if (known != NULL && known->name_len <= GP_LUA_NAME_SIZE) {
        function->name_len = (uint16_t)known->name_len;
        gp_look_copy(function->name, (uintptr_t)known->name, known->name_len);
    } else if (caller != NULL && caller->proto != 0) {
        function->name_len = (uint16_t)gp_lua_name_of_called(dialect, caller->proto, caller->pc, function->name);
    }
    if (proto != 0)
        lua_functions_describe(function, dialect, proto);
    // A prototype without a line is a chunk's, which has no name: it is being made where an older one was.
    return proto != 0 && function->name_len > 0 && function->first_line == 0 ? 0 : number;
}

static uintptr_t lua_functions_number(uintptr_t address, uintptr_t proto, const gp_lua_site_t *caller)
{
    if (address == 0) // of a free record
        return 0;
    gp_lua_object_t *object = lua_functions_find(address);
    uint32_t number = object != NULL ? atomic_load_explicit(&object->number, memory_order_relaxed) : 0;
    if (number != 0)
        return number;
    number = lua_functions_make(address, proto, object, caller);
    if (object == NULL && number != 0)
        object = lua_functions_write(address, NULL, 0);
    if (object != NULL && atomic_load_explicit(&object->address, memory_order_relaxed) == address)
        atomic_store_explicit(&object->number, number, memory_order_relaxed);
    return number;
}

static void lua_functions_put(gp_lua_walk_t *walk, uintptr_t word)
{
    if (walk->depth >= walk->max) {
        *walk->flags |= GP_UNWIND_TRUNCATED;
        return;
    }
    if (gp_lua_word_function(word) == 0 && gp_thread_self != NULL)
        gp_thread_count(gp_thread_self, GP_COUNTER_UNNAMED_FRAMES);
    walk->frames[walk->depth++] = GP_LANGUAGE_WORD_OF(GP_LANGUAGE_LUA) | word;
}

void gp_lua_put_frame(gp_lua_walk_t *walk, uintptr_t proto, uint32_t line)
{
    uintptr_t known = line < 1u << GP_LUA_LINE_BITS ? line : 0;
    lua_functions_put(walk, lua_functions_number(proto, proto, NULL) | known << GP_LUA_NUMBER_BITS);
}

void gp_lua_put_c(gp_lua_walk_t *walk, uintptr_t function, const gp_lua_site_t *caller)
{
    lua_functions_put(walk, lua_functions_number(function, 0, caller));
}
