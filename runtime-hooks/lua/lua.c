// SPDX-License-Identifier: MIT
// Lua 5.4 coroutines: lua_resume() runs a coroutine on its caller's stack until it yields or ends, so a
// coroutine is entered and left by one nested call. It has no stack of its own; its resumer's frames lie below that
// call, and are not its own.
//
// Source: Lua 5.4, ldo.c (lua_resume), lua.h.
#include "coro/own_memory.h"
#include "coro/spawn.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "lua_hook.h"
#include "patch/hooks.h"
#include "signal/region.h"
#include "unwind/unwind.h"

typedef int resume_t(lua_State *coroutine, lua_State *from, int arguments, int *results);

enum { YIELDED = 1, BUCKETS_LOG2 = 12 };

// Records by Lua state. A state's address may be used again: whether it is the same coroutine shows by its being fresh.
typedef struct known {
    struct known *next;
    lua_State *state;
    prof_coro_t *coro;
    uint64_t id;
} known_t;

static known_t *buckets[1u << BUCKETS_LOG2], *free_known;

static known_t **bucket_of(const lua_State *state)
{
    return &buckets[((uintptr_t)state >> 4) * 0x9e3779b97f4a7c15ull >> (64 - BUCKETS_LOG2)];
}

// The place of `state` in the table, made if need be; NULL when memory is short. Caller holds the registry's lock.
static known_t *place_locked(lua_State *state)
{
    enum { CHUNK = 256 };
    known_t **bucket = bucket_of(state), *known = *bucket;
    while (known != NULL && known->state != state)
        known = known->next;
    if (known != NULL)
        return known;
    if (free_known == NULL) {
        known_t *chunk = gp_own_map(CHUNK * sizeof(known_t));
        for (int i = 0; chunk != NULL && i < CHUNK; i++) {
            chunk[i].next = free_known;
            free_known = &chunk[i];
        }
    }
    known = free_known;
    if (known != NULL) {
        free_known = known->next;
        *known = (known_t){.next = *bucket, .state = state};
        *bucket = known;
    }
    return known;
}

static void forget(lua_State *state)
{
    prof_coro_t *over = NULL;
    pthread_mutex_lock(&gp_registry_lock);
    known_t **place = bucket_of(state);
    while (*place != NULL && (*place)->state != state)
        place = &(*place)->next;
    known_t *known = *place;
    if (known != NULL) {
        *place = known->next;
        over = atomic_load_explicit(&known->coro->id, memory_order_relaxed) == known->id ? known->coro : NULL;
        known->next = free_known;
        free_known = known;
    }
    pthread_mutex_unlock(&gp_registry_lock);
    gp_coro_retire(over);
}

static prof_coro_t *look_up(lua_State *state, uint64_t *id)
{
    prof_coro_t *coro = NULL;
    pthread_mutex_lock(&gp_registry_lock);
    for (known_t *known = *bucket_of(state); known != NULL && coro == NULL; known = known->next) {
        if (known->state == state) {
            coro = known->coro;
            *id = known->id;
        }
    }
    pthread_mutex_unlock(&gp_registry_lock);
    return coro;
}

static prof_coro_t *make(lua_State *state, int arguments, uint64_t *id)
{
    char name[48];
    gp_lua_name(state, arguments, name, sizeof(name));
    forget(state);
    gp_park_t caller = gp_spawn_caller();
    gp_coro_birth_t birth = {
        .kind = GP_CORO_ANNOUNCED,
        .name = name,
        .spawner = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0)),
    };
    birth.spawn_site = gp_spawn_site_here(birth.spawner, &caller);
    prof_coro_t *coro = gp_coro_new(&birth);
    if (coro == NULL)
        return NULL;
    *id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    pthread_mutex_lock(&gp_registry_lock);
    known_t *known = place_locked(state);
    if (known != NULL) {
        known->coro = coro;
        known->id = *id;
    }
    pthread_mutex_unlock(&gp_registry_lock);
    return coro;
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
__attribute__((noinline, section("gp_lua_resume"))) static int run(const call_t *call, lua_State *coroutine)
{
    const gp_thread_t *thread = gp_thread_self;
    gp_switch_to(call->coro, call->coro_id, &call->park);
    int status = call->real(coroutine, call->from, call->arguments, call->results);
    // The host's coroutine that called us may have moved to another thread meanwhile.
    gp_switch_to(gp_thread_self == thread ? call->resumer : NULL, call->resumer_id, &call->park);
    return status;
}

extern const char __start_gp_lua_resume[], __stop_gp_lua_resume[]; // made by the linker

static void add_entry(void)
{
    static _Atomic bool known;
    if (!atomic_exchange_explicit(&known, true, memory_order_relaxed))
        gp_unwind_entry_add((uintptr_t)__start_gp_lua_resume, (uintptr_t)__stop_gp_lua_resume);
}

static int resume(resume_t *real, lua_State *coroutine, lua_State *from, int arguments, int *results,
                  const gp_park_t *park)
{
    gp_thread_t *thread = NULL;
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_lua_is_known(coroutine))
        thread = gp_thread_attach();
    if (thread == NULL) // and Lua 5.1 to 5.3 have fewer arguments: the others do no harm
        return real(coroutine, from, arguments, results);
    add_entry();
    bool outside;
    call_t call = {.real = real, .from = from, .arguments = arguments, .results = results, .park = *park};
    call.coro =
        gp_lua_is_fresh(coroutine) ? make(coroutine, arguments, &call.coro_id) : look_up(coroutine, &call.coro_id);
    call.resumer = gp_thread_coro_at(thread, park->sp, &call.resumer_id, &outside);
    if (call.coro == NULL)
        return real(coroutine, from, arguments, results);
    int status = run(&call, coroutine);
    if (status != YIELDED)
        forget(coroutine);
    return status;
}

// Where the caller of the function that this is in goes on.
#define CALLERS_PARK()                                                                                                 \
    ({                                                                                                                 \
        const uintptr_t *frame = __builtin_frame_address(0);                                                           \
        (gp_park_t){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};       \
    })

PROF_API int lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results);

int lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results)
{
    resume_t *real = GP_ORIGINAL(resume_t, "lua_resume");
    gp_park_t park = CALLERS_PARK();
    return resume(real, coroutine, from, arguments, results, &park);
}

// Lua linked into the program: patched (../patch).
resume_t gp_patch_lua_resume;
void *gp_patch_real_lua_resume;

int gp_patch_lua_resume(lua_State *coroutine, lua_State *from, int arguments, int *results)
{
    gp_park_t park = CALLERS_PARK();
    return resume(GP_PATCHED(resume_t, lua_resume), coroutine, from, arguments, results, &park);
}
