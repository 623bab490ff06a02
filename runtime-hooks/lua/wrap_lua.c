// SPDX-License-Identifier: MIT
// Lua 5.4 from liblua5.4.a: as lua.c has it for the shared one, in the program itself. A coroutine has no stack of its
// own, so that switches are seen by name; where lua_resume() is called, a coroutine's stack ends.
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "lua_debug.h"
#include "wrap/wrap.h"

typedef struct lua_State lua_State;

enum { BUCKETS_LOG2 = 12, NAME_BYTES = 48 };

extern int lua_status(lua_State *state), lua_gettop(lua_State *state), lua_checkstack(lua_State *state, int slots);
extern void lua_pushvalue(lua_State *state, int index);
extern int lua_getinfo(lua_State *state, const char *what, lua_Debug *debug);
extern int __real_lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results);
int __wrap_lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results);

typedef struct known {
    struct known *next;
    lua_State *state;
    prof_coro_t *coro;
} known_t;

static known_t *buckets[1u << BUCKETS_LOG2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// The core's, which need not be there.
static __typeof__(prof_coro_announce_for) *create;
static __typeof__(prof_coro_destroy) *destroy;
static __typeof__(prof_coro_current) *current;
static __typeof__(prof_coro_switch_hook) *switch_hook;

__attribute__((constructor(102))) static void find_core(void)
{
    create = (__typeof__(create))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_announce_for");
    destroy = (__typeof__(destroy))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_destroy");
    current = (__typeof__(current))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_current");
    switch_hook = (__typeof__(switch_hook))(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_switch_hook");
}

static known_t **place_of(const lua_State *state)
{
    known_t **place = &buckets[((uintptr_t)state >> 4) * 0x9e3779b97f4a7c15ull >> (64 - BUCKETS_LOG2)];
    while (*place != NULL && (*place)->state != state)
        place = &(*place)->next;
    return place;
}

static prof_coro_t *look_up(const lua_State *state)
{
    pthread_mutex_lock(&lock);
    const known_t *known = *place_of(state);
    prof_coro_t *coro = known != NULL ? known->coro : NULL;
    pthread_mutex_unlock(&lock);
    return coro;
}

static void forget(const lua_State *state)
{
    pthread_mutex_lock(&lock);
    known_t **place = place_of(state), *known = *place;
    if (known != NULL)
        *place = known->next; // -Wanalyzer-malloc-leak: the record is freed below.
    pthread_mutex_unlock(&lock);
    if (known != NULL)
        destroy(known->coro);
    free(known);
}

// SOURCE:LINE of the function that `coroutine` is about to start, which lies below its arguments.
static void find_name(lua_State *coroutine, int arguments, char *name, size_t size)
{
    lua_Debug debug;
    name[0] = '\0';
    if (lua_gettop(coroutine) <= arguments || !lua_checkstack(coroutine, 1))
        return;
    lua_pushvalue(coroutine, -(arguments + 1));
    lua_getinfo(coroutine, ">S", &debug); // takes it off again
    gp_lua_write_place(&debug, name, size);
}

static prof_coro_t *make(lua_State *coroutine, int arguments, const prof_park_t *creator)
{
    char name[NAME_BYTES];
    forget(coroutine); // its address is used again
    known_t *known = malloc(sizeof(*known));
    if (known == NULL)
        return NULL;
    find_name(coroutine, arguments, name, sizeof(name));
    *known = (known_t){.state = coroutine, .coro = create(NULL, 0, NULL, name, creator)};
    pthread_mutex_lock(&lock);
    known_t **place = place_of(coroutine);
    known->next = *place;
    *place = known;
    pthread_mutex_unlock(&lock);
    return known->coro;
}

// The one frame between a coroutine and its resumer.
GP_WRAP_ENTRY static int run(lua_State *coroutine, lua_State *from, int arguments, int *results, prof_coro_t *coro)
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
    prof_park_t caller = gp_wrap_caller();
    prof_coro_t *coro = lua_status(coroutine) == GP_LUA_OK ? make(coroutine, arguments, &caller) : look_up(coroutine);
    if (coro == NULL)
        return __real_lua_resume(coroutine, from, arguments, results);
    int status = run(coroutine, from, arguments, results, coro);
    if (status != GP_LUA_YIELD)
        forget(coroutine);
    return status;
}
