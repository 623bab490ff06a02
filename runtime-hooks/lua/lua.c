// SPDX-License-Identifier: MIT
// Coroutines of Lua and LuaJIT: lua_resume() runs a coroutine on its caller's stack until it yields or ends, so a
// coroutine is entered and left by one nested call. The coroutine has no stack of its own; its resumer's frames lie
// below that call, and are not the coroutine's. LuaJIT's interpreter resumes those of coroutine.resume() by itself, as
// part of whatever calls it.
//
// Source: ldo.c (lua_resume), lua.h of Lua 5.1, 5.3 and 5.4; lj_api.c of LuaJIT 2.1.
#include "coro/announce.h"
#include "coro/spawn.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "lua/lua_table.h"
#include "lua_frames.h"
#include "lua_hook.h"
#include "patch/hooks.h"
#include "signal/region.h"
#include "unwind/unwind.h"

#include <errno.h>

typedef int resume_t(lua_State *coroutine, lua_State *from, int arguments, int *results);

enum { YIELDED = 1 };

const gp_lua_host_t *_Atomic gp_lua_host;

static gp_lua_table_t table; // guarded by the registry's lock

static bool lua_is_gone(const prof_coro_t *coro)
{
    gp_lua_known_t *known = (gp_lua_known_t *)gp_coro_rare(coro)->subject;
    return gp_lua_is_dropped(known);
}

static size_t lua_kept_frames(const prof_coro_t *coro, uintptr_t *frames, size_t max)
{
    gp_lua_known_t *known = (gp_lua_known_t *)gp_coro_rare(coro)->subject;
    size_t depth = atomic_load_explicit(&known->depth, memory_order_acquire);
    depth = depth < max ? depth : max;
    for (size_t i = 0; i < depth; i++)
        frames[i] = atomic_load_explicit(&known->frames[i], memory_order_relaxed);
    return depth;
}

// The coroutine waits from here on.
static void lua_keep_frames(gp_lua_known_t *known, lua_State *state)
{
    uintptr_t frames[GP_LUA_WAITING_FRAMES];
    int saved = errno;
    size_t depth = gp_lua_walk_waiting((uintptr_t)state, frames, GP_LUA_WAITING_FRAMES);
    for (size_t i = 0; i < depth; i++)
        atomic_store_explicit(&known->frames[i], frames[i], memory_order_relaxed);
    atomic_store_explicit(&known->depth, (uint32_t)depth, memory_order_release);
    errno = saved;
}

// Retire a coroutine that has ended.
static void lua_forget(lua_State *state)
{
    prof_coro_t *over = NULL;
    gp_lock(&gp_registry_lock);
    gp_lua_known_t *known = gp_lua_table_find(&table, (uintptr_t)state);
    if (known != NULL) {
        over = atomic_load_explicit(&known->coro->id, memory_order_relaxed) == known->id ? known->coro : NULL;
        gp_lua_table_remove(&table, known);
    }
    gp_unlock(&gp_registry_lock);
    gp_coro_retire(over);
}

// Retire Lua threads collected while suspended: a few per call, and the former owner of this address.
static void lua_forget_dropped(lua_State *state)
{
    gp_lua_dropped_t dropped[GP_LUA_SWEPT_MAX + 1];
    gp_lock(&gp_registry_lock);
    size_t count = gp_lua_table_sweep(&table, dropped);
    gp_lua_known_t *known = gp_lua_table_find(&table, (uintptr_t)state);
    if (known != NULL) {
        dropped[count++] = (gp_lua_dropped_t){known->coro, known->id};
        gp_lua_table_remove(&table, known);
    }
    gp_unlock(&gp_registry_lock);
    for (size_t i = 0; i < count; i++)
        gp_coro_abandon(dropped[i].coro, dropped[i].id);
}

static gp_lua_known_t *lua_look_up(lua_State *state, prof_coro_t **coro, uint64_t *id)
{
    gp_lock(&gp_registry_lock);
    gp_lua_known_t *known = gp_lua_table_find(&table, (uintptr_t)state);
    if (known != NULL) {
        // Release: partner of the acquires in lua_table.c; it looks suspended until it is resumed.
        atomic_store_explicit(&known->is_active, true, memory_order_release);
        *coro = known->coro;
        *id = known->id;
    }
    gp_unlock(&gp_registry_lock);
    return known;
}

static gp_lua_known_t *lua_make(lua_State *state, int arguments, prof_coro_t **coro, uint64_t *id)
{
    char name[48];
    gp_lua_name(state, arguments, name, sizeof(name));
    lua_forget_dropped(state);
    gp_park_t caller = gp_spawn_caller();
    const gp_lua_host_t *host = atomic_load_explicit(&gp_lua_host, memory_order_acquire);
    prof_coro_t *owner = host != NULL ? host->owner(state) : NULL;
    gp_coro_birth_t birth = {
        .kind = GP_CORO_ANNOUNCED,
        .name = name,
        .spawner = owner != NULL ? owner : gp_coro_of_caller((uintptr_t)__builtin_frame_address(0)),
    };
    if (gp_thread_self != NULL && gp_spawn_is_wanted() && gp_spawn_is_due(gp_thread_self))
        birth.spawn_site = gp_spawn_site_here(birth.spawner, &caller);
    *coro = gp_coro_new(&birth);
    if (*coro == NULL)
        return NULL;
    *id = atomic_load_explicit(&(*coro)->id, memory_order_relaxed);
    gp_lock(&gp_registry_lock);
    gp_lua_known_t *known = gp_lua_table_add(&table, (uintptr_t)state);
    if (known != NULL) {
        known->coro = *coro;
        known->id = *id;
        known->host = owner != NULL ? host : NULL;
        gp_coro_rare(*coro)->subject = (uintptr_t)known;
        atomic_store_explicit(&gp_coro_rare(*coro)->kept_frames, lua_kept_frames, memory_order_release);
        atomic_store_explicit(&gp_coro_rare(*coro)->is_gone, lua_is_gone, memory_order_release);
    }
    gp_unlock(&gp_registry_lock);
    return known;
}

typedef struct call { // of lua_resume(), and the coroutine that it enters and leaves
    resume_t *real;
    lua_State *from;
    int arguments, *results;
    prof_coro_t *coro, *resumer;
    uint64_t coro_id, resumer_id;
    gp_park_t park;
} call_t;

// The one frame between a coroutine and its resumer: where its stack ends.
__attribute__((noinline, section("gp_lua_resume"))) static int lua_run(const call_t *call, lua_State *coroutine)
{
    const gp_thread_t *thread = gp_thread_self;
    gp_switch_to(call->coro, call->coro_id, &call->park);
    int status = call->real(coroutine, call->from, call->arguments, call->results);
    // The host's coroutine that called us may have moved to another thread meanwhile.
    gp_switch_to(gp_thread_self == thread ? call->resumer : NULL, call->resumer_id, &call->park);
    return status;
}

extern const char __start_gp_lua_resume[], __stop_gp_lua_resume[]; // made by the linker

static void lua_add_entry(void)
{
    static _Atomic bool known;
    if (!atomic_exchange_explicit(&known, true, memory_order_relaxed))
        gp_unwind_entry_add((uintptr_t)__start_gp_lua_resume, (uintptr_t)__stop_gp_lua_resume);
}

static bool lua_is_active(lua_State *coroutine)
{
    gp_lock(&gp_registry_lock);
    bool is_active = gp_lua_table_is_active(&table, (uintptr_t)coroutine);
    gp_unlock(&gp_registry_lock);
    return is_active;
}

GP_ENTRY_CODE static int lua_resume_known(resume_t *real, lua_State *coroutine, lua_State *from, int arguments,
                                          int *results, const gp_park_t *park, gp_lua_entry_t *entry)
{
    gp_thread_t *thread = NULL;
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_lua_known_form(coroutine) != GP_LUA_FORM_NONE)
        thread = gp_thread_attach();
    bool is_fresh = thread != NULL && gp_lua_is_fresh(coroutine);
    // Versions before 5.4 have fewer arguments: the others do no harm.
    if (thread == NULL || (is_fresh && lua_is_active(coroutine)))
        return real(coroutine, from, arguments, results);
    lua_add_entry();
    bool outside;
    gp_lua_form_t form = gp_lua_known_form(coroutine);
    bool has_from = form == GP_LUA_FORM_53 || form == GP_LUA_FORM_54;
    call_t call = {.real = real, .from = from, .arguments = arguments, .results = results, .park = *park};
    gp_lua_known_t *known =
        is_fresh ? lua_make(coroutine, has_from ? arguments : (int)(intptr_t)from, &call.coro, &call.coro_id)
                 : lua_look_up(coroutine, &call.coro, &call.coro_id);
    call.resumer = gp_thread_coro_at(thread, park->sp, &call.resumer_id, &outside);
    if (known == NULL) {
        gp_coro_retire(call.coro); // there is no memory to remember it
        return real(coroutine, from, arguments, results);
    }
    if (entry != NULL)
        entry->is_apart = true;
    if (known->host != NULL)
        known->host->woken(call.coro);
    int status = lua_run(&call, coroutine);
    if (status != YIELDED) {
        lua_forget(coroutine);
        return status;
    }
    gp_lua_learn(form, known);
    if (entry != NULL)
        lua_keep_frames(known, coroutine);
    // Release: partner of the acquires in lua_table.c.
    atomic_store_explicit(&known->is_active, false, memory_order_release);
    return status;
}

GP_ENTRY_CODE static int lua_resume_entered(resume_t *real, bool is_program, lua_State *coroutine, lua_State *from,
                                            int arguments, int *results, const gp_park_t *park)
{
    gp_lua_entry_t entry;
    bool is_entered = gp_lua_enter(&entry, (const void *)(uintptr_t)real, (uintptr_t)coroutine, is_program);
    int status = lua_resume_known(real, coroutine, from, arguments, results, park, is_entered ? &entry : NULL);
    if (is_entered)
        gp_lua_leave(&entry);
    return status;
}

// Where the caller of the function that this is in goes on.
#define CALLERS_PARK()                                                                                                 \
    ({                                                                                                                 \
        const uintptr_t *frame = __builtin_frame_address(0);                                                           \
        (gp_park_t){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};       \
    })

PROF_API GP_ENTRY_CODE int lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results);

int lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results)
{
    resume_t *real = GP_ORIGINAL(resume_t, "lua_resume");
    gp_park_t park = CALLERS_PARK();
    return lua_resume_entered(real, false, coroutine, from, arguments, results, &park);
}

// Lua linked into the program: patched (../patch).
GP_ENTRY_CODE resume_t gp_patch_lua_resume;
void *gp_patch_real_lua_resume;

int gp_patch_lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results)
{
    gp_park_t park = CALLERS_PARK();
    return lua_resume_entered(GP_PATCHED(resume_t, lua_resume), true, coroutine, from, arguments, results, &park);
}
