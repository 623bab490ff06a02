// SPDX-License-Identifier: MIT
#include "coro/announce.h"

#include "coro/coro_name.h"
#include "coro/lock.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "coro/switch.h"
#include "coro/threads.h"
#include "unwind/unwind.h"

prof_coro_t *gp_coro_look_for_caller(uintptr_t sp)
{
    gp_thread_t *thread = gp_thread_attach();
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    uint64_t id;
    bool outside;
    if (language != NULL) {
        language->enter();
        bool reported = __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED);
        prof_coro_t *current = reported ? NULL : language->current();
        if (current != NULL)
            return current;
    }
    return thread != NULL ? gp_thread_coro_at(thread, sp, &id, &outside) : NULL;
}

// On behalf of `caller`, the code that calls the runtime or greenprof.
static prof_coro_t *announce_create(gp_coro_birth_t *birth, const gp_park_t *caller)
{
    birth->spawner = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    gp_thread_t *thread = gp_thread_self;
    bool is_due = thread != NULL && gp_spawn_is_wanted() && gp_spawn_is_due(thread);
    birth->spawn_site = is_due ? gp_spawn_site_here(birth->spawner, caller) : 0;
    return gp_coro_new(birth);
}

static gp_coro_birth_t announce_birth_on(const void *stack_low, size_t stack_size, const char *name)
{
    uintptr_t lo = (uintptr_t)stack_low;
    if (stack_low == NULL || stack_size == 0 || lo + stack_size < lo)
        lo = stack_size = 0;
    return (gp_coro_birth_t){.lo = lo, .hi = lo + stack_size, .kind = GP_CORO_ANNOUNCED, .name = name};
}

prof_coro_t *prof_coro_create(const void *stack_low, size_t stack_size, const char *name)
{
    gp_coro_birth_t birth = announce_birth_on(stack_low, stack_size, name);
    gp_park_t caller = gp_spawn_caller();
    birth.keeps_stack = true;
    return announce_create(&birth, &caller);
}

prof_coro_t *prof_coro_create_shared(const void *stack_low, size_t stack_size, const char *name)
{
    gp_coro_birth_t birth = announce_birth_on(stack_low, stack_size, name);
    gp_park_t caller = gp_spawn_caller();
    birth.keeps_stack = birth.shares_stack = true;
    atomic_fetch_or_explicit(&gp_switch_special, GP_SWITCH_SHARERS, memory_order_relaxed);
    return announce_create(&birth, &caller);
}

prof_coro_t *gp_coro_announce_from(uintptr_t lo, uintptr_t hi, uintptr_t entry, const char *name,
                                   const gp_park_t *caller)
{
    if (lo == 0 || hi <= lo)
        return NULL;
    gp_coro_birth_t birth = {.lo = lo, .hi = hi, .kind = GP_CORO_ANNOUNCED, .entry = entry, .name = name};
    prof_coro_t *coro = NULL;
    if (!__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED)) {
        birth.spawner = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
        coro = gp_coro_renew(&birth);
    }
    if (coro == NULL)
        coro = gp_coro_adopt(lo, hi, entry);
    return coro != NULL ? coro : announce_create(&birth, caller);
}

int prof_coro_entry(const void *code_low, const void *code_high)
{
    gp_lock(&gp_registry_lock);
    int error = gp_unwind_entry_add((uintptr_t)code_low, (uintptr_t)code_high);
    gp_unlock(&gp_registry_lock);
    return error;
}

prof_coro_t *gp_coro_announce(uintptr_t lo, uintptr_t hi, uintptr_t entry, const char *name)
{
    gp_park_t caller = gp_spawn_caller();
    return gp_coro_announce_from(lo, hi, entry, name, &caller);
}

prof_coro_t *prof_coro_announce(const void *stack_low, size_t stack_size, const void *entry, const char *name)
{
    gp_park_t caller = gp_spawn_caller();
    return gp_coro_announce_from((uintptr_t)stack_low, (uintptr_t)stack_low + stack_size, (uintptr_t)entry, name,
                                 &caller);
}

prof_coro_t *prof_coro_announce_for(const void *stack_low, size_t stack_size, const void *entry, const char *name,
                                    const prof_park_t *creator)
{
    gp_park_t caller = {.pc = creator->pc, .sp = creator->sp, .fp = creator->fp};
    gp_coro_birth_t birth = announce_birth_on(stack_low, stack_size, name);
    birth.entry = (uintptr_t)entry;
    if (birth.lo == birth.hi)
        return announce_create(&birth, &caller);
    return gp_coro_announce_from((uintptr_t)stack_low, (uintptr_t)stack_low + stack_size, (uintptr_t)entry, name,
                                 &caller);
}

void prof_coro_destroy(prof_coro_t *coro)
{
    gp_coro_retire(coro);
}

void prof_coro_name(prof_coro_t *coro, const char *name)
{
    if (coro == NULL)
        coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro == NULL || coro->kind == GP_CORO_THREAD)
        return;
    gp_lock(&gp_registry_lock);
    gp_coro_name_set(coro, name);
    // The capture gets the name with the coroutine's next record. Release: partner of gp_recording_coro().
    atomic_store_explicit(&gp_coro_written(coro)->written_id, 0, memory_order_release);
    gp_unlock(&gp_registry_lock);
}
