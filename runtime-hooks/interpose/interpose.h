// SPDX-License-Identifier: MIT
// Common parts of the hooks: stubs that stand in for a runtime's functions, and some knowledge of stacks.
//
// A stub has the name of the runtime's function, is found before it by the dynamic linker, and jumps on to it with
// every argument register as it was; while profiles run it calls its hook first (coro/hook_returns.h says which). No
// stub returns by itself, so functions that return twice, or never, or on another stack, are as good as any.
// greenprof_runtime() (cmake/runtime.cmake) makes the stubs of stub_x86_64.inc.
//
// The original is what the dynamic linker would have bound without us: the next one in the global scope, else the one
// in the scope of the caller's object (plugins that were loaded RTLD_LOCAL). The first is looked up once; the second
// once for each place of call, as two plugins may well bring two of the same name.
#pragma once

#include <stdbool.h>

#include "base/peek.h"
#include "coro/registry.h"
#include "coro/switch.h"

enum { GP_INTERPOSE_ARGUMENTS = 6 };

// The hook that a stub calls before it jumps on. Floating-point arguments are not kept: no switch routine has any.
//   arguments: the integer argument registers, in order.
//   park:      where the caller goes on.
// Threads: the caller's. Signals: not safe, but the handler may interrupt.
typedef void gp_interpose_hook_t(const uintptr_t arguments[GP_INTERPOSE_ARGUMENTS], const gp_park_t *park);

// The original of `name` for the code at `caller`; stored in `*slot` once it is known to hold for every caller.
// Traps where there is none: the program has called what does not exist.
void *gp_interpose_resolve(void **slot, const char *name, uintptr_t caller);

// The same for wrappers written in C; their `slot` begins as NULL.
static inline void *gp_interpose_original(void **slot, const char *name, uintptr_t caller)
{
    void *original = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    return original != NULL ? original : gp_interpose_resolve(slot, name, caller);
}

// In a wrapper written in C: the original of `name`, as a function of type `type`.
#define GP_ORIGINAL(type, name)                                                                                        \
    ({                                                                                                                 \
        static void *original_slot;                                                                                    \
        (type *)(uintptr_t)gp_interpose_original(&original_slot, name, (uintptr_t)__builtin_return_address(0));        \
    })

// A function of the runtime that it may or may not have, or NULL.
void *gp_interpose_find(const char *name);

typedef struct gp_interpose_wanted {
    void *slot; // a pointer, where the address is stored
    const char *name;
} gp_interpose_wanted_t;

// Find all of a runtime's API that is called or read. Returns false where something is not there.
//   is_shared: as the program itself has it: of a variable that the program has copied, the copy.
bool gp_interpose_find_all(const gp_interpose_wanted_t *all, size_t count, bool is_shared);

// The mapping [lo, hi) that holds `address`. Returns false where there is none. Signals: not safe. Cost: reads all of
// /proc/self/maps, 50 us and more.
bool gp_hook_mapping(uintptr_t address, uintptr_t *lo, uintptr_t *hi);

// The code [lo, hi) of a loaded object that begins at `base`; left alone where it has none.
void gp_hook_code_of(const void *base, uintptr_t *lo, uintptr_t *hi);

// Move a callback's park outward, from where its caller goes on to where the caller's own caller does: for callbacks
// called through a helper with a frame that is gone when the switch happens. Returns false, and changes nothing, where
// the helper's frame is not a plain one. Signals: safe. Cost: ~10 ns where it was met before.
bool gp_hook_park_outward(gp_park_t *park);

// A coroutine is over: its thread, on its stack at `sp`, is about to leave the stack for good, or has told so already.
// The account is closed then; the record is retired at one of the thread's next switches, by gp_hook_retire_ended()
// with the stack pointer of the switching coroutine.
struct gp_thread;
void gp_hook_ends(struct gp_thread *thread, prof_coro_t *coro, uint64_t id, uintptr_t sp);
void gp_hook_retire_ended(struct gp_thread *thread, uintptr_t sp);

// Make a coroutine that was just announced GP_OWNER_STUBS. Nothing happens where the program has made the record
// itself.
static inline void gp_hook_owns(prof_coro_t *coro)
{
    uint8_t unknown = GP_OWNER_UNKNOWN;
    if (coro != NULL && !gp_word8_is(&coro->owner, GP_OWNER_STUBS))
        atomic_compare_exchange_strong_explicit(&coro->owner, &unknown, GP_OWNER_STUBS, memory_order_relaxed,
                                                memory_order_relaxed);
}

// "fiber at FILE:LINE", for a coroutine that runs a block or a closure.
void gp_hook_name_place(char *name, size_t size, const char *path, unsigned long line);

// A library's knowledge of the ucontext coroutine it makes, better than makecontext()'s: set around the call in which
// it makes one, by the thread that does.
typedef struct gp_hook_maker {
    uintptr_t entry;  // 0 = the argument of makecontext()
    const char *name; // NULL = none
} gp_hook_maker_t;

extern __thread const gp_hook_maker_t *gp_hook_maker __attribute__((tls_model("initial-exec"), visibility("hidden")));
