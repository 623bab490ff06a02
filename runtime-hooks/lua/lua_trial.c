// SPDX-License-Identifier: MIT
// Does this Lua keep its frames where its version says? Before the first call into it, a state of its own runs a chunk
// whose functions call one written in C; all frames must read as lua_getinfo() says, and be called as the chunk calls
// them. A version without a layout, or one that fails, is left alone.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/functions.h"
#include "coro/helper_memory.h"
#include "interface.h"
#include "interpose/interpose.h"
#include "lua_frames.h"
#include "not_known.h"
#include "patch/hooks.h"
#include "unwind/fde_index.h"
#include "unwind/unwind.h"

typedef int function_t(uintptr_t state);

enum {
    ROOM = 64,
    KNOWN_MAX = 16,
    LEVELS = 4,
    DEBUG_BYTES = 1024,
    GLOBAL_WORDS = 256,
    CODE_MIN = 8,
    CODE_MAX = 64,
    MORE_WORDS = 4096,
    WORD = 8,
    PAUSE_NS = 100000, // of a thread whose Lua another one tries
    PAUSES_MAX = 100,
};

static const char chunk[] = "local look = ...\n"
                            "local module = {}\n"
                            "local function inner(a)\n"
                            "  look(a)\n" // line 4
                            "  return a\n"
                            "end\n"
                            "function module.outer(a)\n"
                            "  local x = inner(a)\n" // line 8
                            "  return x\n"
                            "end\n"
                            "function greenprof_trial()\n"
                            "  local x = module.outer(1)\n" // line 12
                            "  return x\n"
                            "end\n"
                            "for i = 1, 300 do local x = i end\n"
                            "greenprof_trial()\n"; // line 16

static const struct {
    const char *name;
    uint32_t line, first_line;
} expected[LEVELS] = {{"inner", 4, 3}, {"module.outer", 8, 7}, {"greenprof_trial", 12, 11}, {"", 16, 0}};

static struct { // of Lua's API
    uintptr_t (*new_state)(void), (*new_thread)(uintptr_t state);
    void (*close)(uintptr_t state);
    int (*load)(uintptr_t state, const char *text, size_t size, const char *name, const char *mode);
    void (*push_function)(uintptr_t state, function_t *function, int upvalues);
    int (*call)(uintptr_t state, uintptr_t arguments, uintptr_t results, uintptr_t handler, uintptr_t a, uintptr_t b);
    int (*get_stack)(uintptr_t state, int level, void *debug);
    int (*get_info)(uintptr_t state, const char *what, void *debug);
    int (*resume)(uintptr_t state, uintptr_t arguments);
    function_t *open_jit;
} lua;

// Loads between two attachments go unseen: what was known of addresses is forgotten.
static void lua_trial_follow(bool is_attached)
{
    for (size_t i = 0; is_attached && i < GP_LUA_OBJECTS; i++) {
        _Atomic uintptr_t *address = &gp_lua_runtime.table->objects[i].address;
        if (atomic_load_explicit(address, memory_order_relaxed) != 0)
            atomic_store_explicit(address, 0, memory_order_relaxed);
    }
}

static gp_language_t language = {
    .name = "lua",
    .number = GP_LANGUAGE_LUA,
    .walk = gp_lua_walk,
    .is_loop = gp_lua_is_loop,
    .is_own = gp_lua_is_own,
    .follow = lua_trial_follow,
    .locate = gp_lua_locate,
};

static const char *why; // the trial failed; NULL = it did not
static const gp_lua_dialect_t *tried;
static uintptr_t lua_trial_state;

typedef struct library {
    void *handle; // NULL: the program itself
    const void *base;
} library_t;

static void *lua_trial_find(const library_t *library, const char *name)
{
    Dl_info info;
    void *found = library->handle != NULL ? dlsym(library->handle, name) : gp_patch_program_function(name);
    bool is_here =
        library->handle == NULL || (found != NULL && dladdr(found, &info) != 0 && info.dli_fbase == library->base);
    return is_here ? found : NULL;
}

static const gp_lua_dialect_t *lua_trial_dialect(const library_t *library)
{
    if (lua_trial_find(library, "luaJIT_setmode") != NULL)
        return &gp_luajit_dialect;
    double (*version)(uintptr_t) = NULL;
    void *found = lua_trial_find(library, "lua_version"), *cpcall = lua_trial_find(library, "lua_cpcall");
    const double *(*older)(uintptr_t) = NULL;
    int number = cpcall != NULL && found == NULL ? 501 : 0;
    memcpy(&version, &found, sizeof(found));
    memcpy(&older, &found, sizeof(found));
    if (found != NULL)
        number = lua_trial_find(library, "lua_newuserdatauv") != NULL ? (int)version(0) : (int)*older(0);
    for (const gp_lua_dialect_t *dialect = gp_lua_dialects; dialect->version != 0; dialect++)
        if (dialect->version == number)
            return dialect;
    return NULL;
}

static bool lua_trial_find_api(const library_t *library)
{
    const struct {
        void *slot;
        const char *name, * or ;
    } all[] = {
        {&lua.new_state, "luaL_newstate", ""},
        {&lua.close, "lua_close", ""},
        {&lua.load, "luaL_loadbufferx", "luaL_loadbuffer"},
        {&lua.push_function, "lua_pushcclosure", ""},
        {&lua.call, "lua_pcallk", "lua_pcall"},
        {&lua.get_stack, "lua_getstack", ""},
        {&lua.get_info, "lua_getinfo", ""},
        {&lua.new_thread, "lua_newthread", ""},
        {&lua.resume, "lua_resume", ""},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        void *found = lua_trial_find(library, all[i].name);
        found = found == NULL && all[i].or [0] != '\0' ? lua_trial_find(library, all[i].or) : found;
        if (found == NULL)
            return false;
        memcpy(all[i].slot, &found, sizeof(found));
    }
    void *found = lua_trial_find(library, "luaopen_jit");
    memcpy(&lua.open_jit, &found, sizeof(found));
    return true;
}

static bool lua_trial_is_text(const char *text, size_t len, const char *is)
{
    return len == strlen(is) && memcmp(text, is, len) == 0;
}

// Is a frame what the API says of the level, and what the chunk is?
static bool lua_trial_is_right(uintptr_t word, int level)
{
    int32_t debug[DEBUG_BYTES / sizeof(int32_t)] = {0};
    const gp_lua_function_t *function = &gp_lua_runtime.table->functions[gp_lua_word_function(word)];
    if (!lua.get_stack(lua_trial_state, level + 1, debug) || !lua.get_info(lua_trial_state, "Sl", debug))
        return false;
    uint32_t line = (uint32_t)debug[tried->debug_line / 4], first_line = (uint32_t)debug[tried->debug_first_line / 4];
    return gp_lua_word_line(word) == line && line == expected[level].line && function->first_line == first_line &&
           first_line == expected[level].first_line && !function->is_c &&
           lua_trial_is_text(function->name, function->name_len, expected[level].name) &&
           lua_trial_is_text(function->source, function->source_len, "=greenprof");
}

// Are these the two instructions by which functions in C are called? The running state is behind them.
static bool lua_trial_is_calling(uintptr_t at)
{
    enum { CALL_C = 95, CALL_C_WRAPPED };
    uint8_t first = gp_look_byte(at), second = gp_look_byte(at + WORD / 2);
    return first == CALL_C && (second == CALL_C || second == CALL_C_WRAPPED);
}

// LuaJIT's running state, and what it is at, are where words of the global state are as they must be now.
static bool lua_trial_find_globals(uintptr_t state)
{
    enum { STATE_GLOBAL = 16, IN_C = -2 };
    uintptr_t global = gp_look_word(state + STATE_GLOBAL), main = 0;
    gp_lua_runtime.current = gp_lua_runtime.state = gp_lua_runtime.base = 0;
    for (unsigned at = WORD; at < GLOBAL_WORDS * WORD; at += WORD) {
        if (main != 0 && gp_lua_runtime.current == 0 && gp_look_word(global + at) == state &&
            lua_trial_is_calling(global + at - WORD)) {
            gp_lua_runtime.current = (uint16_t)at;
            gp_lua_runtime.base = (uint16_t)(at + WORD);
        } else if (main == 0 && gp_look_word(global + at) == lua_trial_state &&
                   (int32_t)gp_look_half(global + at - WORD) == IN_C) {
            main = at;
            gp_lua_runtime.state = (uint16_t)(at - WORD);
        }
    }
    return main != 0 && gp_lua_runtime.current != 0;
}

static bool lua_trial_is_trace(uintptr_t all, uintptr_t proto)
{
    enum { TYPE = 9, TRACE = 9, PROTO = 64 };
    gp_peeks_t look = {0};
    if (!gp_look_may_read(&look, all, 2 * WORD))
        return false;
    uintptr_t trace = gp_look_word(all + WORD);
    return gp_look_may_read(&look, trace, PROTO + WORD) && gp_look_byte(trace + TYPE) == TRACE &&
           gp_look_word(trace + PROTO) == proto;
}

// The array of traces, of which the chunk's loop is the first. There may be none: then places in traces are not known.
static void lua_trial_find_traces(uintptr_t state, uintptr_t proto)
{
    enum { STATE_GLOBAL = 16 };
    gp_peeks_t look = {0};
    uintptr_t global = gp_look_word(state + STATE_GLOBAL);
    gp_lua_runtime.traces = 0;
    for (uint32_t at = WORD; at < MORE_WORDS * WORD && gp_page_is_mapped(&look.mapped, global + at); at += WORD)
        if (lua_trial_is_trace(gp_look_word(global + at), proto)) {
            gp_lua_runtime.traces = (uint16_t)at;
            return;
        }
}

// The interpreter's code is the largest function between this one and the call of the chunk.
__attribute__((noinline)) static void lua_trial_find_loop(void)
{
    enum { STACK_BYTES = 1 << 14 };
    uintptr_t frames[ROOM], *frame = __builtin_frame_address(0);
    const gp_unwind_regs_t regs = {
        .pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
    unsigned flags = 0;
    size_t depth = gp_unwind_walk_parked(&regs, regs.sp, regs.sp + STACK_BYTES, frames, ROOM, &flags);
    Dl_info own, of_lua, info;
    if (dladdr((const void *)(uintptr_t)lua.close, &of_lua) == 0 || // NOLINT(performance-no-int-to-ptr)
        dladdr(&gp_lua_runtime, &own) == 0)
        return;
    for (size_t i = 0; i < depth; i++) {
        gp_cfi_section_t section;
        gp_unwind_module_t module;
        gp_fde_t part;
        bool is_lua = dladdr((const void *)frames[i], &info) != 0 && // NOLINT(performance-no-int-to-ptr)
                      info.dli_fbase == of_lua.dli_fbase;
        if (is_lua && gp_module_find(frames[i], &module) != GP_MODULE_NONE &&
            gp_fde_find(&module.eh, frames[i], &section, &part) &&
            part.end - part.start > gp_lua_runtime.loop_end - gp_lua_runtime.loop) {
            gp_lua_runtime.loop = part.start;
            gp_lua_runtime.loop_end = part.end;
        }
    }
}

// The function written in C, called by the chunk.
static int lua_trial_look(uintptr_t state)
{
    uintptr_t words[ROOM], here = (uintptr_t)__builtin_frame_address(0);
    unsigned flags = 0;
    lua_trial_state = tried == &gp_luajit_dialect ? lua_trial_state : state;
    const gp_language_place_t place = {.pc = here, .sp = here, .stack_hi = UINTPTR_MAX / 2, .in_doubt = true};
    why = "does not keep its state where it says";
    if (tried == &gp_luajit_dialect && !lua_trial_find_globals(state))
        return 0;
    lua_trial_find_loop();
    size_t depth = gp_lua_walk(&place, words, ROOM, &flags);
    why = "does not keep its frames where it says";
    lua_trial_state = state;
    if (depth < LEVELS + 1)
        return 0;
    const gp_lua_function_t *look = &gp_lua_runtime.table->functions[gp_lua_word_function(words[0])];
    if (!look->is_c || look->object != (uintptr_t)lua_trial_look ||
        !lua_trial_is_text(look->name, look->name_len, "look"))
        return 0;
    for (int level = 0; level < LEVELS; level++)
        if (!lua_trial_is_right(words[level + 1], level))
            return 0;
    why = NULL;
    return 0;
}

static void lua_trial_run_chunk(uintptr_t state)
{
    gp_lua_entry_t entry = {.outer = gp_lua_calls, .self = &entry, .state = state};
    bool is_jit = tried == &gp_luajit_dialect;
    uintptr_t runs = state, proto;
    lua_trial_state = state;
    why = "does not keep its state where it says";
    if (!tried->is_state(state))
        return;
    if (is_jit && lua.open_jit != NULL) {
        lua.push_function(state, lua.open_jit, 0);
        lua.call(state, 0, 0, 0, 0, 0);
    }
    if (is_jit)
        runs = lua.new_thread(state);
    entry.state = runs;
    why = "does not load what is loaded";
    if (lua.load(runs, chunk, sizeof(chunk) - 1, "=greenprof", NULL) != 0 || (proto = tried->top_proto(runs)) == 0 ||
        tried->code_size(proto) < CODE_MIN || tried->code_size(proto) > CODE_MAX)
        return;
    gp_lua_meet(tried, proto);
    lua.push_function(runs, lua_trial_look, 0);
    why = "came to no end of its trial";
    gp_lua_calls = &entry;
    if (is_jit)
        lua.resume(runs, 1);
    else
        lua.call(runs, 1, 0, 0, 0, 0);
    gp_lua_calls = entry.outer;
    if (is_jit && why == NULL)
        lua_trial_find_traces(state, proto);
}

static bool lua_trial_prepare(const library_t *library)
{
    tried = lua_trial_dialect(library);
    why = "its frames are not known";
    if (tried == NULL)
        return false;
    why = "is a build that lacks what is called";
    if (!lua_trial_find_api(library))
        return false;
    why = "there is no memory";
    if (gp_lua_runtime.table == NULL)
        gp_lua_runtime.table = gp_own_map(sizeof(gp_lua_functions_t));
    return gp_lua_runtime.table != NULL && gp_unwind_init() == 0;
}

// The code of the library; of a program that has Lua in it, only the interpreter's loop is told from the program's own.
static void lua_trial_find_code(const library_t *library)
{
    if (library->handle != NULL && library->base != NULL)
        gp_hook_code_of(library->base, &gp_lua_runtime.code, &gp_lua_runtime.code_end);
}

// Returns whether all is as it should be.
static bool lua_trial_run(const library_t *library)
{
    static gp_not_known_t fact;
    if (lua_trial_prepare(library)) {
        atomic_store_explicit(&gp_lua_runtime.dialect, tried, memory_order_release);
        uintptr_t state = lua.new_state();
        why = "there is no memory";
        if (state != 0) {
            lua_trial_run_chunk(state);
            lua.close(state);
        }
    }
    if (why != NULL) {
        atomic_store_explicit(&gp_lua_runtime.dialect, NULL, memory_order_release);
        gp_not_known_tell(&fact, "%s: %s, native frames only", tried != NULL ? tried->title : "Lua", why);
        return false;
    }
    lua_trial_find_code(library);
    gp_lua_runtime.is_proved = true;
    gp_language_add(&language);
    return true;
}

enum { IS_GOOD = 63 }; // the bit of a known function whose frames are known

static _Atomic uintptr_t known[KNOWN_MAX]; // of functions; 0 = none yet

static const void *proved; // the library; of a program that is patched, the program

// The first Lua of a process is the only one: states of another one would be read by the wrong layout.
// Returns what is known of the function from now on; 0 = another thread is at the trial.
static uintptr_t lua_trial_verdict(const void *real, bool is_program)
{
    const uintptr_t bad = (uintptr_t)real, good = bad | (uintptr_t)1 << IS_GOOD;
    static _Atomic bool is_taken, is_tried;
    Dl_info info;
    struct link_map *map = NULL;
    library_t library = {0};
    if (!is_program && (dladdr1(real, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL))
        return bad;
    library.base = is_program ? (const void *)&proved : info.dli_fbase;
    if (atomic_load_explicit(&is_tried, memory_order_acquire))
        return proved == library.base ? good : bad;
    if (atomic_exchange_explicit(&is_taken, true, memory_order_acq_rel))
        return 0;
    library.handle = is_program ? NULL : dlopen(map->l_name[0] != '\0' ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    bool is_good = (is_program || library.handle != NULL) && lua_trial_run(&library);
    if (library.handle != NULL)
        dlclose(library.handle);
    proved = is_good ? library.base : NULL;
    atomic_store_explicit(&is_tried, true, memory_order_release);
    return is_good ? good : bad;
}

static _Thread_local bool is_within __attribute__((tls_model("initial-exec")));

bool gp_lua_try(const void *real, bool is_program)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    size_t i = 0;
    for (; i < KNOWN_MAX; i++) {
        uintptr_t there = atomic_load_explicit(&known[i], memory_order_acquire);
        if ((there & ~((uintptr_t)1 << IS_GOOD)) == (uintptr_t)real)
            return there >> IS_GOOD;
        if (there == 0)
            break;
    }
    if (is_within || i == KNOWN_MAX || first() != gp_core_own_interface())
        return false;
    is_within = true;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uintptr_t verdict = lua_trial_verdict(real, is_program), none = 0;
    int saved = errno;
    for (int pauses = 0; verdict == 0 && pauses < PAUSES_MAX; pauses++) { // its call may be the only one for long
        syscall(SYS_nanosleep, &pause, NULL);
        verdict = lua_trial_verdict(real, is_program);
    }
    errno = saved;
    is_within = false;
    if (verdict != 0)
        atomic_compare_exchange_strong_explicit(&known[i], &none, verdict, memory_order_release, memory_order_relaxed);
    return verdict >> IS_GOOD;
}
