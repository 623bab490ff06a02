// SPDX-License-Identifier: MIT
// Source: Lua 5.1, 5.3, 5.4, lstate.h (struct lua_State, CommonHeader), lstate.c (luaE_freethread, freestack, freeCI),
// lobject.h (LUA_VTHREAD); LuaJIT 2.1, lj_obj.h (struct lua_State).
#include "lua/lua_table.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FIRST_LOG2 = 10, CHUNK = 256, ADDED_PER_SWEEP = 8, TYPE_THREAD = 8, TYPE_THREAD_JIT = 6, STATUS_YIELD = 1 };

typedef struct state { // the beginning of a lua_State
    union {
        unsigned char bytes[40];
        uintptr_t words[5];
    };
} state_t;

typedef struct head { // where words of it are
    unsigned char type_at, type, status_at;
    unsigned char frames_at; // how many, of 16 bits; 0 = it has no such word
    unsigned char global_at;
} head_t;

static const head_t heads[GP_LUA_FORMS] = {
    [GP_LUA_FORM_51] = {.type_at = 8, .type = TYPE_THREAD, .status_at = 10, .global_at = 32},
    [GP_LUA_FORM_53] = {.type_at = 8, .type = TYPE_THREAD, .status_at = 12, .frames_at = 10, .global_at = 24},
    [GP_LUA_FORM_54] = {.type_at = 8, .type = TYPE_THREAD, .status_at = 10, .frames_at = 12, .global_at = 24},
    [GP_LUA_FORM_JIT] = {.type_at = 9, .type = TYPE_THREAD_JIT, .status_at = 11, .global_at = 16},
};

static _Atomic int layout; // 0: not known yet, else that of a form; -1: another

static void *lua_table_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static gp_lua_known_t **lua_table_bucket_of(const gp_lua_table_t *table, uintptr_t state)
{
    return &table->buckets[(state >> 4) * 0x9e3779b97f4a7c15ull >> (64 - table->buckets_log2)];
}

gp_lua_known_t *gp_lua_table_find(const gp_lua_table_t *table, uintptr_t state)
{
    gp_lua_known_t *known = table->buckets != NULL ? *lua_table_bucket_of(table, state) : NULL;
    while (known != NULL && atomic_load_explicit(&known->state, memory_order_relaxed) != state)
        known = known->next;
    return known;
}

bool gp_lua_table_is_active(const gp_lua_table_t *table, uintptr_t state)
{
    const gp_lua_known_t *known = gp_lua_table_find(table, state);
    return known != NULL && atomic_load_explicit(&known->is_active, memory_order_relaxed);
}

static void lua_table_link_in(gp_lua_table_t *table, gp_lua_known_t *known)
{
    gp_lua_known_t **bucket = lua_table_bucket_of(table, atomic_load_explicit(&known->state, memory_order_relaxed));
    known->next = *bucket;
    *bucket = known;
}

// Twice as many buckets; where there is no memory, chains grow.
static bool lua_table_grow(gp_lua_table_t *table)
{
    unsigned log2 = table->buckets != NULL ? table->buckets_log2 + 1 : FIRST_LOG2;
    gp_lua_table_t old = *table;
    gp_lua_known_t **buckets = lua_table_map(sizeof(*buckets) << log2);
    if (buckets == NULL)
        return table->buckets != NULL;
    table->buckets = buckets;
    table->buckets_log2 = log2;
    table->cursor = 0;
    if (old.buckets == NULL)
        return true;
    for (size_t i = 0; i < (size_t)1 << old.buckets_log2; i++) {
        for (gp_lua_known_t *known = old.buckets[i], *next; known != NULL; known = next) {
            next = known->next;
            lua_table_link_in(table, known);
        }
    }
    munmap(old.buckets, sizeof(*buckets) << old.buckets_log2);
    return true;
}

static gp_lua_known_t *lua_table_take_free(gp_lua_table_t *table)
{
    if (table->free == NULL) {
        gp_lua_known_t *chunk = lua_table_map(CHUNK * sizeof(*chunk));
        for (int i = 0; chunk != NULL && i < CHUNK; i++) {
            chunk[i].next = table->free;
            table->free = &chunk[i];
        }
    }
    gp_lua_known_t *known = table->free;
    if (known != NULL)
        table->free = known->next;
    return known;
}

gp_lua_known_t *gp_lua_table_add(gp_lua_table_t *table, uintptr_t state)
{
    bool is_full = table->buckets == NULL || table->count >> table->buckets_log2 != 0;
    if (is_full && !lua_table_grow(table))
        return NULL;
    gp_lua_known_t *known = lua_table_take_free(table);
    if (known == NULL)
        return NULL;
    known->coro = NULL;
    known->id = 0;
    known->host = NULL;
    atomic_store_explicit(&known->depth, 0, memory_order_relaxed);
    atomic_store_explicit(&known->is_active, true, memory_order_relaxed);
    atomic_store_explicit(&known->global, 0, memory_order_relaxed);
    atomic_store_explicit(&known->state, state, memory_order_release);
    lua_table_link_in(table, known);
    table->count++;
    table->made++;
    return known;
}

void gp_lua_table_remove(gp_lua_table_t *table, gp_lua_known_t *known)
{
    gp_lua_known_t **place = lua_table_bucket_of(table, atomic_load_explicit(&known->state, memory_order_relaxed));
    while (*place != known)
        place = &(*place)->next;
    *place = known->next;
    atomic_store_explicit(&known->state, 0, memory_order_relaxed);
    known->next = table->free;
    table->free = known;
    table->count--;
}

static uintptr_t lua_table_global(const head_t *head, const state_t *state)
{
    return state->words[head->global_at / sizeof(state->words[0])];
}

static bool lua_table_looks_suspended(const head_t *head, const state_t *state)
{
    const unsigned char *bytes = state->bytes;
    return bytes[head->type_at] == head->type && bytes[head->status_at] == STATUS_YIELD &&
           (head->frames_at == 0 || (bytes[head->frames_at] | bytes[head->frames_at + 1]) != 0);
}

static bool lua_table_is_suspended(const state_t *state, gp_lua_known_t *known)
{
    const head_t *head = &heads[atomic_load_explicit(&layout, memory_order_relaxed)];
    return lua_table_looks_suspended(head, state) &&
           lua_table_global(head, state) == atomic_load_explicit(&known->global, memory_order_relaxed);
}

void gp_lua_learn(gp_lua_form_t form, gp_lua_known_t *known)
{
    uintptr_t address = atomic_load_explicit(&known->state, memory_order_relaxed);
    const state_t *state = (const state_t *)address; // NOLINT(performance-no-int-to-ptr)
    if (state == NULL)                               // taken out meanwhile
        return;
    atomic_store_explicit(&known->global, lua_table_global(&heads[form], state), memory_order_relaxed);
    if (atomic_load_explicit(&layout, memory_order_relaxed) >= 0)
        atomic_store_explicit(&layout, lua_table_looks_suspended(&heads[form], state) ? (int)form : -1,
                              memory_order_relaxed);
}

// Copy what is at `count` addresses; what cannot be read is left as it is. Returns false where the kernel lets nothing
// be read.
static bool lua_table_read_states(const uintptr_t *addresses, size_t count, state_t *states)
{
    struct iovec remote[GP_LUA_SWEPT_MAX];
    for (size_t i = 0; i < count; i++)
        remote[i] = (struct iovec){(void *)addresses[i], sizeof(*states)}; // NOLINT(performance-no-int-to-ptr)
    for (size_t done = 0; done < count;) {
        struct iovec local = {&states[done], (count - done) * sizeof(*states)};
        ssize_t got = process_vm_readv(getpid(), &local, 1, &remote[done], count - done, 0);
        if (got < 0 && errno != EFAULT)
            return false;
        done += got > 0 ? (size_t)got / sizeof(*states) : 0;
        if (done < count && (got < 0 || (size_t)got < local.iov_len)) {
            states[done] = (state_t){0}; // also what was read of it in part
            done++;
        }
    }
    return true;
}

bool gp_lua_is_dropped(gp_lua_known_t *known)
{
    state_t state = {0};
    int saved = errno;
    uintptr_t address = atomic_load_explicit(&known->state, memory_order_acquire);
    bool may = address != 0 && atomic_load_explicit(&layout, memory_order_relaxed) > 0 &&
               !atomic_load_explicit(&known->is_active, memory_order_acquire);
    bool is_dropped = may && lua_table_read_states(&address, 1, &state) && !lua_table_is_suspended(&state, known) &&
                      !atomic_load_explicit(&known->is_active, memory_order_acquire);
    errno = saved;
    return is_dropped;
}

// The next entries that may be dropped ones. Returns their number.
static size_t lua_table_choose(gp_lua_table_t *table, gp_lua_known_t *chosen[GP_LUA_SWEPT_MAX])
{
    size_t count = 0, buckets = (size_t)1 << table->buckets_log2;
    for (size_t looked = 0; looked < buckets && looked < 4 * GP_LUA_SWEPT_MAX && count < GP_LUA_SWEPT_MAX; looked++) {
        gp_lua_known_t *known = table->buckets[table->cursor++ % buckets];
        for (; known != NULL && count < GP_LUA_SWEPT_MAX; known = known->next)
            if (!atomic_load_explicit(&known->is_active, memory_order_acquire))
                chosen[count++] = known;
    }
    return count;
}

static size_t lua_table_drop(gp_lua_table_t *table, gp_lua_known_t **chosen, const state_t *states, size_t count,
                             gp_lua_dropped_t *dropped)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (lua_table_is_suspended(&states[i], chosen[i]))
            continue;
        dropped[found++] = (gp_lua_dropped_t){chosen[i]->coro, chosen[i]->id};
        gp_lua_table_remove(table, chosen[i]);
    }
    return found;
}

size_t gp_lua_table_sweep(gp_lua_table_t *table, gp_lua_dropped_t dropped[GP_LUA_SWEPT_MAX])
{
    gp_lua_known_t *chosen[GP_LUA_SWEPT_MAX];
    uintptr_t addresses[GP_LUA_SWEPT_MAX] = {0};
    state_t states[GP_LUA_SWEPT_MAX];
    if (table->made < ADDED_PER_SWEEP || atomic_load_explicit(&layout, memory_order_relaxed) <= 0)
        return 0;
    int saved = errno;
    table->made = 0;
    size_t count = lua_table_choose(table, chosen);
    for (size_t i = 0; i < count; i++)
        addresses[i] = atomic_load_explicit(&chosen[i]->state, memory_order_relaxed);
    size_t found =
        lua_table_read_states(addresses, count, states) ? lua_table_drop(table, chosen, states, count, dropped) : 0;
    errno = saved;
    return found;
}
