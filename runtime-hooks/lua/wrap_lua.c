// SPDX-License-Identifier: MIT
// Lua 5.4 from liblua5.4.a: as lua.c has it for the shared one, in the program itself. A coroutine has no stack of its
// own, so that switches are seen by name; where lua_resume() is called, a coroutine's stack ends.
#include <dlfcn.h>
#include <pthread.h>

#include "lua/lua_table.h"
#include "lua_debug.h"
#include "wrap/wrap.h"

typedef struct lua_State lua_State;

enum { NAME_BYTES = 48 };

extern int lua_status(lua_State *state), lua_gettop(lua_State *state), lua_checkstack(lua_State *state, int slots);
extern void lua_pushvalue(lua_State *state, int index);
extern int lua_getinfo(lua_State *state, const char *what, void *debug);
extern int __real_lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results);
int __wrap_lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results);

static gp_lua_table_t table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of the table

// The core's, which need not be there.
static __typeof__(prof_coro_announce_for) *create;
static __typeof__(prof_coro_destroy) *destroy;
static __typeof__(prof_coro_current) *current;
static __typeof__(prof_coro_switch_hook) *switch_hook;

__attribute__((constructor(102))) static void wrap_lua_find_core(void)
{
    create = (__typeof__(create))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_announce_for");
    destroy = (__typeof__(destroy))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_destroy");
    current = (__typeof__(current))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_current");
    switch_hook = (__typeof__(switch_hook))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_switch_hook");
}

static gp_lua_known_t *wrap_lua_look_up(const lua_State *state)
{
    pthread_mutex_lock(&lock);
    gp_lua_known_t *known = gp_lua_table_find(&table, (uintptr_t)state);
    if (known != NULL) // Release: partner of the acquires in lua_table.c; it looks suspended until it is resumed
        atomic_store_explicit(&known->is_active, true, memory_order_release);
    pthread_mutex_unlock(&lock);
    return known;
}

static void wrap_lua_forget(const lua_State *state)
{
    prof_coro_t *coro = NULL;
    pthread_mutex_lock(&lock);
    gp_lua_known_t *known = gp_lua_table_find(&table, (uintptr_t)state);
    if (known != NULL) {
        coro = known->coro;
        gp_lua_table_remove(&table, known);
    }
    pthread_mutex_unlock(&lock);
    destroy(coro);
}

static void wrap_lua_forget_dropped(void)
{
    gp_lua_dropped_t dropped[GP_LUA_SWEPT_MAX];
    pthread_mutex_lock(&lock);
    size_t count = gp_lua_table_sweep(&table, dropped);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++)
        destroy(dropped[i].coro);
}

// SOURCE:LINE of the function that `coroutine` is about to start, which lies below its arguments.
static void wrap_lua_find_name(lua_State *coroutine, int arguments, char *name, size_t size)
{
    uint64_t debug[GP_LUA_DEBUG_WORDS];
    name[0] = '\0';
    if (lua_gettop(coroutine) <= arguments || !lua_checkstack(coroutine, 1))
        return;
    lua_pushvalue(coroutine, -(arguments + 1));
    lua_getinfo(coroutine, ">S", debug); // takes it off again
    gp_lua_write_place(GP_LUA_FORM_54, debug, name, size);
}

static bool wrap_lua_is_active(lua_State *coroutine)
{
    pthread_mutex_lock(&lock);
    bool is_active = gp_lua_table_is_active(&table, (uintptr_t)coroutine);
    pthread_mutex_unlock(&lock);
    return is_active;
}

static gp_lua_known_t *wrap_lua_make(lua_State *coroutine, int arguments, const prof_park_t *creator)
{
    char name[NAME_BYTES];
    wrap_lua_forget(coroutine); // its address is used again
    wrap_lua_forget_dropped();
    wrap_lua_find_name(coroutine, arguments, name, sizeof(name));
    prof_coro_t *coro = create(NULL, 0, NULL, name, creator);
    pthread_mutex_lock(&lock);
    gp_lua_known_t *known = gp_lua_table_add(&table, (uintptr_t)coroutine);
    if (known != NULL)
        known->coro = coro;
    pthread_mutex_unlock(&lock);
    if (known == NULL)
        destroy(coro);
    return known;
}

// The one frame between a coroutine and its resumer.
GP_WRAP_ENTRY static int wrap_lua_run(lua_State *coroutine, lua_State *from, int arguments, int *results,
                                      prof_coro_t *coro)
{
    prof_coro_t *resumer = current();
    switch_hook(coro);
    int status = __real_lua_resume(coroutine, from, arguments, results);
    switch_hook(resumer);
    return status;
}

int __wrap_lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results)
{
    if (!__atomic_load_n(gp_wrap_active, __ATOMIC_RELAXED) || create == NULL)
        return __real_lua_resume(coroutine, from, arguments, results);
    bool is_fresh = lua_status(coroutine) == GP_LUA_OK;
    if (is_fresh && wrap_lua_is_active(coroutine))
        return __real_lua_resume(coroutine, from, arguments, results);
    prof_park_t caller = gp_wrap_caller();
    gp_lua_known_t *known = is_fresh ? wrap_lua_make(coroutine, arguments, &caller) : wrap_lua_look_up(coroutine);
    if (known == NULL)
        return __real_lua_resume(coroutine, from, arguments, results);
    int status = wrap_lua_run(coroutine, from, arguments, results, known->coro);
    if (status != GP_LUA_YIELD) {
        wrap_lua_forget(coroutine);
        return status;
    }
    gp_lua_learn(GP_LUA_FORM_54, known);
    // Release: partner of the acquires in lua_table.c.
    atomic_store_explicit(&known->is_active, false, memory_order_release);
    return status;
}
