// SPDX-License-Identifier: MIT
// The records of Lua coroutines: both of Lua's hooks have a table of them, lua.c and wrap_lua.c.
//
// Lua says nothing when its collector frees a coroutine that was dropped while it was suspended. But what it leaves of
// one tells: a suspended one has the status of a yield and, from 5.3 on, frames, and freeing gives the frames back
// first. Memory that was used for something else looks like no coroutine of this Lua, nor does what the C library keeps
// to use again, and what was unmapped cannot be read. So entries are looked at, some with each that is made, and those
// of dropped coroutines are taken out: the table, which grows with its load, stays as large as what lives.
//
// Threads: the caller holds its lock around every call but gp_lua_is_dropped(). Signals: not safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "greenprof/coro.h"
#include "lua/lua_debug.h"

enum { GP_LUA_WAITING_FRAMES = 24 };

typedef struct gp_lua_known { // of memory that is never given back: it may be read without the lock
    struct gp_lua_known *next;
    _Atomic uintptr_t state; // a lua_State *; 0: the entry is free
    _Atomic uintptr_t global;
    _Atomic bool is_active; // runs, or a coroutine that it resumed does
    prof_coro_t *coro;
    uint64_t id;
    const struct gp_lua_host *host; // that resumes it; NULL = none
    // Frames where it waits: of more, the innermost.
    _Atomic uint32_t depth;
    _Atomic uintptr_t frames[GP_LUA_WAITING_FRAMES];
} gp_lua_known_t;

typedef struct gp_lua_table { // zeroed: empty
    gp_lua_known_t **buckets; // [1 << buckets_log2]
    gp_lua_known_t *free;
    unsigned buckets_log2;
    size_t count, cursor, made;
} gp_lua_table_t;

gp_lua_known_t *gp_lua_table_find(const gp_lua_table_t *table, uintptr_t state);

// Does it run, or wait for one that it has resumed? Then it has the status of a fresh one, and lua_resume() refuses it.
bool gp_lua_table_is_active(const gp_lua_table_t *table, uintptr_t state);

// Add a state that is not there, as an active one. Returns NULL when memory is short. Cost: O(1) on average.
gp_lua_known_t *gp_lua_table_add(gp_lua_table_t *table, uintptr_t state);

// Take an entry out. Its coro and id can be read until the lock is given back.
void gp_lua_table_remove(gp_lua_table_t *table, gp_lua_known_t *known);

enum { GP_LUA_SWEPT_MAX = 32 };

typedef struct gp_lua_dropped {
    prof_coro_t *coro;
    uint64_t id;
} gp_lua_dropped_t;

// Take out entries of dropped coroutines: once for every few additions, and a part of the table at a time. Returns how
// many of `dropped` there are. Cost: ~4 us, for every 8th call.
size_t gp_lua_table_sweep(gp_lua_table_t *table, gp_lua_dropped_t dropped[GP_LUA_SWEPT_MAX]);

// Was its coroutine freed? Threads: any. Cost: ~0.5 us.
bool gp_lua_is_dropped(gp_lua_known_t *known);

// A coroutine has just yielded: does it look as one does? If not, this Lua is another one, and none counts as dropped.
void gp_lua_learn(gp_lua_form_t form, gp_lua_known_t *known);
