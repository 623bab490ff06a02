// SPDX-License-Identifier: MIT
// The link-time hooks, libgreenprof-wrap.a: for switch routines that no dynamic linker sees, as they are linked into
// the program itself. `ld --wrap=NAME` makes the program's calls of NAME go to __wrap_NAME, which is here.
//
// A program so linked needs no greenprof: where neither `greenprof run` nor libgreenprof has brought the core into the
// process, a switch costs a load and a branch more. Each runtime is one object: only wrapped ones are linked.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <greenprof/coro.h>

// The core's prof_coro_active, or a 0 where there is no core.
extern const int *gp_wrap_active __attribute__((visibility("hidden")));

// Announce a coroutine on [lo, lo + bytes); entry = 0: unknown, name = NULL: none. Nothing happens without a core.
// The creator is the caller of the wrapped function.
#define gp_wrap_announce(lo, bytes, entry, name) gp_wrap_announce_for(lo, bytes, entry, name, gp_wrap_caller())
void gp_wrap_announce_for(const void *lo, size_t bytes, const void *entry, const char *name, prof_park_t creator)
    __attribute__((visibility("hidden")));

// The same where switches to it are not reported.
#define gp_wrap_announce_unseen(lo, bytes, entry, name)                                                                \
    gp_wrap_announce_unseen_for(lo, bytes, entry, name, gp_wrap_caller())
void gp_wrap_announce_unseen_for(const void *lo, size_t bytes, const void *entry, const char *name, prof_park_t creator)
    __attribute__((visibility("hidden")));

// Where the function that this stands in goes on once it has returned.
static inline __attribute__((always_inline)) prof_park_t gp_wrap_caller(void)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    return (prof_park_t){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
}

// Say where stacks end, see prof_coro_entry(). Nothing happens without a core.
void gp_wrap_stacks_end(uintptr_t code_low, uintptr_t code_high) __attribute__((visibility("hidden")));

// A function in which they do.
#define GP_WRAP_ENTRY __attribute__((section("gp_wrap_entry"), noinline))

// Calls of the stubs, while profiles run.
void gp_wrap_switch(uintptr_t target_sp, const prof_park_t *park) __attribute__((visibility("hidden")));
void gp_wrap_ontop(uintptr_t target_sp, const prof_park_t *park, uintptr_t record)
    __attribute__((visibility("hidden")));
