// SPDX-License-Identifier: MIT
// Frames of Lua and LuaJIT: read by the handler, located by the collector.
//
// Model: a lua_State has its frames in a list, or on its stack; no variable says which state runs. So the calls by
// which a program enters Lua leave an entry on the machine stack (lua_calls.c); the handler begins at the innermost
// one. A function is a prototype, or a function written in C. Prototypes have no names, and may be freed as the program
// goes on. But lua_load() makes each of them, and behind it the hook names all new ones by where their chunk puts them
// (lua_naming.c). Their records lie in a table by address, and the next prototype at an address takes the record over.
// The handler gives a function at first sight a number, and copies what it is called: a frame word is this number and a
// line, and never means something else.
//   Writers: threads that load, and handlers; the address of a record is 0 while it is written. Readers: handlers, of
// records of prototypes on their own stack; the collector, by the words of samples.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal/language.h"
#include "signal/look.h"
#include "unwind/unwind.h"

enum {
    GP_LUA_FUNCTIONS = 1 << 16,
    GP_LUA_OBJECTS = 1 << 16,
    GP_LUA_NAME_SIZE = 48,
    GP_LUA_SOURCE_SIZE = 200,
    GP_LUA_NUMBER_BITS = 20,
    GP_LUA_LINE_BITS = 24,
};

typedef struct gp_lua_text {
    uintptr_t at; // 0 = none
    size_t len;
} gp_lua_text_t;

typedef struct gp_lua_entry { // on the stack of a call into Lua; innermost first
    struct gp_lua_entry *outer;
    struct gp_lua_entry *volatile self; // NULL = it has been left
    uintptr_t state;
    bool is_apart; // a coroutine that the core tells apart: what resumed it is not on its stack
} gp_lua_entry_t;

enum gp_lua_kind { // of an instruction, as far as names go; `reg` is what it writes, or stores
    GP_LUA_OTHER,
    GP_LUA_MOVE,  // reg = from
    GP_LUA_NAMED, // reg = a global or upvalue, `name`
    GP_LUA_FIELD, // reg = from.name, where `from` is a register, or `table` a name
    GP_LUA_METHOD,
    GP_LUA_SET_NAMED,
    GP_LUA_SET_FIELD, // from.name = reg
    GP_LUA_NEW,       // reg = what has no name
    GP_LUA_CLOSURE,   // reg = `child`
    GP_LUA_CALL,      // of reg; and registers from there on are written
    GP_LUA_ITERATE,   // the same, in a for loop
};

typedef struct gp_lua_instruction {
    enum gp_lua_kind kind;
    int reg, from;
    gp_lua_text_t name, table;
    uintptr_t child;
    uint32_t next; // instructions to what follows
} gp_lua_instruction_t;

typedef struct gp_lua_description {
    gp_lua_text_t source;
    uint32_t first_line;
} gp_lua_description_t;

typedef struct gp_lua_walk {
    const gp_language_place_t *place;
    uintptr_t *frames;
    size_t max, depth, skip; // skip: frames behind the leaf that there is no room for
    bool is_begun;           // the running state has been looked at
    unsigned *flags;
    gp_peeks_t look;
} gp_lua_walk_t;

typedef struct gp_lua_site { // where a frame's caller is: a prototype, and the number of its instruction
    uintptr_t proto;         // 0 = not known
    uint32_t pc;
} gp_lua_site_t;

typedef struct gp_lua_dialect {
    int version; // 501, 503, 504; 0 = LuaJIT
    const char *title;
    // Frames of a state, and of others that it was resumed by without an entry. Returns the next entry; NULL = no more.
    const gp_lua_entry_t *(*walk)(gp_lua_walk_t *walk, const gp_lua_entry_t *entry);
    uint32_t (*code_size)(uintptr_t proto);
    bool (*decode)(uintptr_t proto, uint32_t pc, gp_lua_instruction_t *instruction);
    // The local variable in a register at an instruction.
    bool (*local)(uintptr_t proto, int reg, uint32_t pc, gp_lua_text_t *name);
    bool (*takes_self)(uintptr_t proto);
    void (*describe)(uintptr_t proto, gp_lua_description_t *description);
    bool (*is_state)(uintptr_t state);       // does it look like a state of this layout?
    uintptr_t (*top_proto)(uintptr_t state); // the function on top of the stack
    uint16_t debug_line, debug_first_line;   // of lua_Debug
} gp_lua_dialect_t;

extern const gp_lua_dialect_t gp_lua_dialects[4], gp_luajit_dialect;

typedef struct gp_lua_function {
    bool is_c;
    uint16_t name_len, source_len;
    uint32_t first_line; // 0 = the main function of a chunk
    uintptr_t object;
    char name[GP_LUA_NAME_SIZE], source[GP_LUA_SOURCE_SIZE]; // cut to what there is room for
} gp_lua_function_t;

typedef struct gp_lua_object { // a record by address
    _Atomic uintptr_t address; // of a prototype, or of code in C; 0 = free, or being written
    _Atomic uint32_t number;   // of its function, 0 = not met yet
    uint32_t name_len;
    char name[GP_LUA_NAME_SIZE];
} gp_lua_object_t;

typedef struct gp_lua_functions {
    _Atomic uint32_t count; // of functions; the first is not used
    gp_lua_object_t objects[GP_LUA_OBJECTS];
    gp_lua_function_t functions[GP_LUA_FUNCTIONS];
} gp_lua_functions_t;

typedef struct gp_lua_runtime {
    const gp_lua_dialect_t *_Atomic dialect; // NULL = not proved
    gp_lua_functions_t *table;
    bool is_proved;           // by the trial, which reads with care
    uintptr_t loop, loop_end; // of the interpreter, 0 = not known
    uintptr_t code, code_end; // of its library
    // LuaJIT's, as the trial finds them; 0 = not known.
    uint16_t current, state, base, traces;
} gp_lua_runtime_t;

extern gp_lua_runtime_t gp_lua_runtime __attribute__((visibility("hidden")));
extern __thread gp_lua_entry_t *gp_lua_calls __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline uint32_t gp_lua_word_function(uintptr_t word)
{
    return (uint32_t)(word & ((1u << GP_LUA_NUMBER_BITS) - 1));
}

static inline uint32_t gp_lua_word_line(uintptr_t word)
{
    return (uint32_t)(word >> GP_LUA_NUMBER_BITS & ((1u << GP_LUA_LINE_BITS) - 1));
}

// `entry`, where it is live on the stack of the walk; else NULL.
static inline const gp_lua_entry_t *gp_lua_live(const gp_lua_walk_t *walk, const gp_lua_entry_t *entry)
{
    uintptr_t at = (uintptr_t)entry;
    bool is_live = at >= walk->place->sp && at < walk->place->stack_hi && at % sizeof(uintptr_t) == 0;
    return is_live && entry->self == entry ? entry : NULL;
}

// The next entry outward, of another state.
static inline const gp_lua_entry_t *gp_lua_outer(const gp_lua_walk_t *walk, const gp_lua_entry_t *entry)
{
    uintptr_t state = entry->state;
    while (entry != NULL && entry->state == state) {
        const gp_lua_entry_t *outer = entry->is_apart ? NULL : entry->outer;
        entry = outer > entry ? gp_lua_live(walk, outer) : NULL;
    }
    return entry;
}

// The leaf and the root end are shown of the `count` frames of a state.
static inline void gp_lua_skip(gp_lua_walk_t *walk, size_t count)
{
    size_t room = walk->max - walk->depth;
    walk->skip = count > room ? count - room : 0;
    if (walk->skip > 0)
        *walk->flags |= GP_UNWIND_TRUNCATED;
}

static inline bool gp_lua_is_skipped(gp_lua_walk_t *walk)
{
    if (walk->depth == 0 || walk->skip == 0)
        return false;
    walk->skip--;
    return true;
}

// Put a frame into the walk: of a prototype, at a line, or of a function in C, called at a site.
void gp_lua_put_frame(gp_lua_walk_t *walk, uintptr_t proto, uint32_t line);
void gp_lua_put_c(gp_lua_walk_t *walk, uintptr_t function, const gp_lua_site_t *caller);

// All prototypes of a chunk that was loaded, named. Not for handlers. Cost: ~0.2 us each.
void gp_lua_meet(const gp_lua_dialect_t *dialect, uintptr_t proto);

// Tell what is in a register, by the code before an instruction: "string.rep". Returns its length, 0 = not known.
//   name: [GP_LUA_NAME_SIZE], without NUL
size_t gp_lua_name_of_register(const gp_lua_dialect_t *dialect, uintptr_t proto, int reg, uint32_t pc, char *name,
                               int deeper);
// The same of the closure made by instruction `pc`.
size_t gp_lua_name_of_closure(const gp_lua_dialect_t *dialect, uintptr_t proto, uint32_t pc,
                              const gp_lua_instruction_t *closure, char *name);
// The same of the function called by instruction `pc`.
size_t gp_lua_name_of_called(const gp_lua_dialect_t *dialect, uintptr_t proto, uint32_t pc, char *name);

// See gp_language_t.
size_t gp_lua_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags);
// Frames of a state that has just yielded, on its thread.
size_t gp_lua_walk_waiting(uintptr_t state, uintptr_t *frames, size_t max);
bool gp_lua_is_loop(uintptr_t pc);
bool gp_lua_is_own(uintptr_t pc);
gp_loc_t gp_lua_locate(uintptr_t frame, uint64_t ticks);

// The calls into Lua. `real`: the function as it was; is_program: of the program itself, not of a shared library.
// Returns whether an entry was made, to be given back by gp_lua_leave(). Cost: ~2 ns.
bool gp_lua_enter(gp_lua_entry_t *entry, const void *real, uintptr_t state, bool is_program);
static inline void gp_lua_leave(gp_lua_entry_t *entry)
{
    gp_lua_calls = entry->outer;
    entry->self = NULL; // an inner one, left later on another stack, may lead back to it
}

// Prove what this Lua's frames are like, once for each Lua. Returns whether they are known.
bool gp_lua_try(const void *real, bool is_program);
