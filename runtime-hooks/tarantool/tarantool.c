// SPDX-License-Identifier: MIT
// Tarantool's fibers: coro_transfer() and the rest are part of the program and called directly, so they are patched
// (../patch). Stacks are reported by coro_create(), in fiber_new_ex(), once for each of a pool's fibers; a fiber of the
// pool is a new coroutine each time that fiber_new_ex() gives it out.
//
// A fiber begins with its libcoro context, and that is the stack pointer at which it was left.
// Source: Tarantool 1.10 to 3.0, src/lib/core/fiber.c, fiber.h; third_party/coro/coro.c, coro.h.
#include <stddef.h>

#include "coro/announce.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "patch/hooks.h"
#include "signal/region.h"

enum { LEARNT_WORDS = 16 }; // of a fiber, which has many more

typedef struct context {
    uintptr_t sp;
} context_t;

typedef struct fiber { // its beginning
    context_t context;
} fiber_t;

typedef void create_t(context_t *context, void (*run)(void *), void *argument, void *stack, size_t bytes);
typedef fiber_t *new_t(const char *name, const void *attributes, void (*run)(void));
typedef void set_name_t(fiber_t *fiber, const char *name);
typedef void recycle_t(fiber_t *fiber);

void gp_tarantool_transfer(const uintptr_t *arguments, const gp_park_t *park);
create_t gp_patch_coro_create;
new_t gp_patch_fiber_new_ex;
set_name_t gp_patch_fiber_set_name;
recycle_t gp_patch_fiber_recycle;
void *gp_patch_real_coro_create, *gp_patch_real_fiber_new_ex, *gp_patch_real_fiber_set_name,
    *gp_patch_real_fiber_recycle;

typedef struct making { // fiber_new_ex() in progress
    bool is_on;
    uintptr_t lo, hi; // a stack that is new
} making_t;

static __thread making_t making __attribute__((tls_model("initial-exec")));

// A jump between coroutines. coro_create() enters a new coroutine, which comes back at once: this is no switch.
void gp_tarantool_transfer(const uintptr_t *arguments, const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_self;
    if (making.is_on)
        return;
    if (thread != NULL && thread->ended.coro != NULL)
        gp_hook_retire_ended(thread, park->sp);
    gp_switch_to_stack(((const context_t *)arguments[1])->sp, park);
}

void gp_patch_coro_create(context_t *context, void (*run)(void *), void *argument, void *stack, size_t bytes)
{
    if (making.is_on && stack != NULL) {
        making.lo = (uintptr_t)stack;
        making.hi = making.lo + bytes;
    }
    GP_PATCHED(create_t, coro_create)(context, run, argument, stack, bytes);
}

// Where in a fiber its stack and its size are: learnt from the first one with a reported stack. 0 = not known.
static _Atomic size_t stack_at, size_at;

// A fiber as words, beginning at its stack pointer: what lies behind depends on Tarantool's version.
static const uintptr_t *tarantool_words_of(const fiber_t *fiber)
{
    return (const uintptr_t *)((uintptr_t)fiber + offsetof(fiber_t, context.sp));
}

static void tarantool_learn(const fiber_t *fiber, uintptr_t lo, uintptr_t hi)
{
    const uintptr_t *words = tarantool_words_of(fiber);
    for (size_t i = 1; i + 1 < LEARNT_WORDS; i++) {
        for (size_t j = i + 1; words[i] == lo && j < LEARNT_WORDS; j++) {
            if (words[j] == hi - lo) {
                atomic_store_explicit(&size_at, j, memory_order_relaxed);
                atomic_store_explicit(&stack_at, i, memory_order_relaxed);
                return;
            }
        }
    }
}

// The stack of a fiber that had it before.
static void tarantool_find_stack(const fiber_t *fiber, uintptr_t *lo, uintptr_t *hi)
{
    const uintptr_t *words = tarantool_words_of(fiber);
    size_t stack = atomic_load_explicit(&stack_at, memory_order_relaxed);
    size_t size = atomic_load_explicit(&size_at, memory_order_relaxed);
    if (stack == 0 || words[0] < words[stack] || words[0] - words[stack] >= words[size])
        return;
    *lo = words[stack];
    *hi = *lo + words[size];
}

fiber_t *gp_patch_fiber_new_ex(const char *name, const void *attributes, void (*run)(void))
{
    making = (making_t){.is_on = true};
    fiber_t *fiber = GP_PATCHED(new_t, fiber_new_ex)(name, attributes, run);
    making_t made = making;
    making.is_on = false;
    if (fiber == NULL)
        return NULL;
    if (made.hi == 0)
        tarantool_find_stack(fiber, &made.lo, &made.hi);
    else if (atomic_load_explicit(&stack_at, memory_order_relaxed) == 0)
        tarantool_learn(fiber, made.lo, made.hi);
    gp_coro_announce(made.lo, made.hi, (uintptr_t)run, name);
    return fiber;
}

void gp_patch_fiber_set_name(fiber_t *fiber, const char *name)
{
    uint64_t id;
    GP_PATCHED(set_name_t, fiber_set_name)(fiber, name);
    prof_coro_t *coro = making.is_on ? NULL : gp_region_find(fiber->context.sp, &id);
    if (coro != NULL && name != NULL)
        prof_coro_name(coro, name);
}

// A fiber goes back to the pool, by itself at its end or when it is joined.
void gp_patch_fiber_recycle(fiber_t *fiber)
{
    uint64_t id;
    uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
    gp_thread_t *thread = gp_thread_attach();
    prof_coro_t *coro = gp_region_find(fiber->context.sp, &id);
    if (coro != NULL && coro->kind == GP_CORO_ANNOUNCED && !gp_region_holds(coro, id, sp))
        gp_coro_retire(coro);
    else if (coro != NULL && thread != NULL)
        gp_hook_ends(thread, coro, id, sp);
    GP_PATCHED(recycle_t, fiber_recycle)(fiber);
}
