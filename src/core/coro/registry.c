// SPDX-License-Identifier: MIT
#include "coro/registry.h"

#include <string.h>
#include <sys/mman.h>

#include "coro/coro_ledger.h"
#include "coro/coro_name.h"
#include "coro/helper_memory.h"
#include "coro/scope.h"
#include "signal/language.h"
#include "signal/ledger_edges.h"
#include "signal/region.h"
#include "signal/slice.h"
#include "signal/ticks.h"
#include "unwind/unwind.h"

typedef gp_coro_chunk_t chunk_t;

static _Atomic uint32_t chunk_count;
static uint32_t free_records, retired_records; // numbers of the first ones
static uint64_t last_id;
static gp_ledger_t gone;      // of all that were retired
static uint64_t totals_asked; // ticks up to which totals were given
static bool draining;

static void registry_push(uint32_t *list, prof_coro_t *coro)
{
    coro->next = *list;
    *list = coro->number;
}

// All at once is several times cheaper than a fault for each page. Pages only read stay without memory.
static void registry_touch(chunk_t *chunk)
{
    gp_own_touch(chunk->records, sizeof(chunk->records), true);
    gp_own_touch(chunk->contexts, sizeof(*chunk) - offsetof(chunk_t, contexts), false);
}

static bool registry_grow(void)
{
    uint32_t at = atomic_load_explicit(&chunk_count, memory_order_relaxed) + 1;
    chunk_t *chunk = at < GP_CORO_CHUNKS ? gp_own_map_apart(sizeof(chunk_t)) : NULL;
    if (chunk == NULL)
        return false;
    madvise(chunk, sizeof(*chunk), MADV_NOHUGEPAGE); // a huge page would take memory for what nothing is written to
    registry_touch(chunk);
    for (uint32_t i = GP_CORO_PIECE; i-- > 0;) {
        chunk->records[i].number = at * GP_CORO_PIECE + i;
        registry_push(&free_records, &chunk->records[i]);
    }
    atomic_store_explicit(&gp_coro_chunks[at], chunk, memory_order_relaxed);
    // Release: partner of the acquire in gp_coro_piece().
    atomic_store_explicit(&chunk_count, at, memory_order_release);
    return true;
}

static void registry_inherit(prof_coro_t *coro, prof_coro_t *spawner, uint64_t parent_id)
{
    static gp_coro_context_t none;
    gp_coro_context_t *own = gp_coro_context(coro), *from = spawner != NULL ? gp_coro_context(spawner) : &none;
    gp_scope_inherit(coro, atomic_load_explicit(&from->scope, memory_order_relaxed));
    for (int i = 0; i < 2; i++) {
        uint64_t word = gp_ledger_edge_load(&from->trace[i]);
        if (own->birth_trace[i] != word)
            own->birth_trace[i] = word;
        gp_coro_change(&own->trace[i], word);
    }
    gp_coro_change(&own->span, gp_ledger_edge_load(&from->span));
    coro->parent_id = parent_id != 0 ? parent_id : spawner != NULL ? spawner->id : 0;
    if (spawner != NULL)
        gp_coro_add(&gp_coro_rare(spawner)->spawned, 1);
}

static void registry_fill_rare(gp_coro_rare_t *rare, const gp_coro_birth_t *birth)
{
    if (rare->subject != 0)
        rare->subject = 0;
    if (atomic_load_explicit(&rare->is_gone, memory_order_relaxed) != NULL)
        atomic_store_explicit(&rare->is_gone, NULL, memory_order_relaxed);
    if (atomic_load_explicit(&rare->kept_frames, memory_order_relaxed) != NULL)
        atomic_store_explicit(&rare->kept_frames, NULL, memory_order_relaxed);
    if (rare->object != birth->object)
        rare->object = birth->object;
    if (rare->pool != birth->pool)
        rare->pool = birth->pool;
}

static void registry_add_ledger(prof_coro_t *coro, uint64_t now, gp_ledger_t *sum)
{
    gp_ledger_t ledger;
    gp_ledger_read(coro, now, &ledger);
    gp_ledger_add(sum, &ledger);
}

// A wait that will never end does not count. Totals keep the part already told to them.
static void registry_void_wait_locked(prof_coro_t *coro)
{
    gp_ledger_t told, rest;
    // Acquire: partner of the release in gp_ledger_edge_leave().
    if (coro->kind == GP_CORO_THREAD || gp_ledger_edge_is_over(coro) ||
        (atomic_load_explicit(&coro->running, memory_order_acquire) && gp_ledger_edge_is_current(coro)))
        return;
    gp_ledger_read(coro, totals_asked, &told);
    gp_ledger_edge_store(&coro->ready_ticks, GP_EDGE_OVER);
    gp_ledger_read(coro, totals_asked, &rest);
    gp_ledger_subtract(&told, &rest);
    gp_ledger_add(&gone, &told);
}

// Has nothing happened to it but its birth, or its end at rest? Then no sum changes when it goes.
static bool registry_is_blank(prof_coro_t *coro)
{
    uint64_t birth = coro->birth_ticks;
    return gp_word_is(&coro->since, birth) && gp_word_is(&coro->settled, birth) && birth > totals_asked &&
           gp_ledger_edge_is_of_epoch(coro) && gp_word_is(&gp_coro_rare(coro)->spawned, 0);
}

static void registry_retire_locked(prof_coro_t *coro)
{
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    if (id == 0)
        return;
    if (coro->lo != coro->hi)
        gp_region_remove(coro);
    gp_ledger_edge_store(&coro->final_id, id);
    atomic_store_explicit(&coro->id, 0, memory_order_release);
    bool is_blank = registry_is_blank(coro) && (!draining || gp_ledger_edge_is_over(coro));
    uint64_t now = is_blank && !draining ? coro->birth_ticks : gp_ticks();
    // Release: partner of the fence in the walk of a parked stack, which then sees that it is retired.
    atomic_store_explicit(&coro->final_ticks, now, memory_order_release);
    if (!is_blank)
        registry_add_ledger(coro, now, &gone);
    gp_scope_quit(coro);
    registry_push(draining ? &retired_records : &free_records, coro);
}

static void registry_abandon_locked(prof_coro_t *coro)
{
    if (!registry_is_blank(coro))
        registry_void_wait_locked(coro);
    else if (coro->kind != GP_CORO_THREAD)
        gp_ledger_edge_store(&coro->ready_ticks, GP_EDGE_OVER);
    registry_retire_locked(coro);
}

static void registry_fill(prof_coro_t *coro, const gp_coro_birth_t *birth)
{
    atomic_store_explicit(&coro->lo, birth->lo, memory_order_relaxed);
    atomic_store_explicit(&coro->hi, birth->hi, memory_order_relaxed);
    coro->kind = (uint8_t)birth->kind;
    coro->hook_mark = 0;
    coro->keeps_stack = birth->keeps_stack;
    atomic_store_explicit(&coro->owner, GP_OWNER_UNKNOWN, memory_order_relaxed);
    coro->shares_stack = birth->shares_stack;
    coro->is_loop = 0;
    coro->entry = birth->entry;
    registry_fill_rare(gp_coro_rare(coro), birth);
    coro->birth_ticks = gp_ticks();
    gp_ledger_begin(coro, coro->birth_ticks);
    gp_ledger_edge_store(&coro->ready_ticks, birth->kind == GP_CORO_ANNOUNCED ? coro->birth_ticks : 0);
    coro->spawn_site = (uint16_t)birth->spawn_site;
    coro->region_kind = (uint8_t)birth->region_kind;
    gp_coro_name_set(coro, birth->name);
    registry_inherit(coro, birth->spawner, birth->parent_id);
}

// A stack carved out of the calling thread's own?
static void registry_note_nesting(const gp_coro_birth_t *birth)
{
    gp_thread_t *thread = gp_thread_self;
    if (thread != NULL && birth->lo < atomic_load_explicit(&thread->root->hi, memory_order_relaxed) &&
        birth->hi > atomic_load_explicit(&thread->root->lo, memory_order_relaxed))
        gp_slice_nest();
}

prof_coro_t *gp_coro_new(const gp_coro_birth_t *birth)
{
    gp_lock(&gp_registry_lock);
    if (birth->lo != birth->hi && birth->kind == GP_CORO_ANNOUNCED) {
        for (prof_coro_t *old; (old = gp_region_overlap(birth->lo, birth->hi)) != NULL;)
            registry_abandon_locked(old);
        registry_note_nesting(birth);
    }
    prof_coro_t *coro = NULL;
    if (free_records != 0 || registry_grow()) {
        coro = gp_coro_numbered(free_records);
        free_records = coro->next;
        registry_fill(coro, birth);
        // Release: partner of the acquires of `id` by handlers.
        atomic_store_explicit(&coro->id, ++last_id, memory_order_release);
        // A thread's own stack is compared with directly, one that is polled with what the runtime says: they are never
        // looked up by others.
        if (birth->lo != birth->hi && birth->kind != GP_CORO_THREAD && birth->kind != GP_CORO_POLLED &&
            !birth->shares_stack)
            gp_region_insert(coro);
    }
    gp_unlock(&gp_registry_lock);
    return coro;
}

static bool registry_is_plain(const prof_coro_t *coro)
{
    gp_coro_context_t *context = gp_coro_context(coro);
    uint64_t words = gp_ledger_edge_load(&context->trace[0]) | gp_ledger_edge_load(&context->trace[1]) |
                     gp_ledger_edge_load(&context->span) | context->birth_trace[0] | context->birth_trace[1];
    return words == 0 && atomic_load_explicit(&context->scope, memory_order_relaxed) == NULL;
}

// At rest, may `coro` become what is born, where it lies? Its birth is none that a recording has seen.
static bool registry_may_renew(prof_coro_t *coro, const gp_coro_birth_t *birth)
{
    const gp_coro_rare_t *rare = gp_coro_rare(coro);
    return coro->lo == birth->lo && coro->hi == birth->hi && coro->kind == GP_CORO_ANNOUNCED && coro->entry != 0 &&
           !coro->keeps_stack && coro->birth_ticks >= gp_ledger_edge_load(&gp_ledger_edge_epoch_over) &&
           registry_is_blank(coro) && registry_is_plain(coro) && rare->object == 0 && rare->subject == 0 &&
           !gp_coro_is_named(coro);
}

prof_coro_t *gp_coro_renew(const gp_coro_birth_t *birth)
{
    if (birth->name != NULL || (birth->spawner != NULL && !registry_is_plain(birth->spawner)))
        return NULL;
    gp_lock(&gp_registry_lock);
    prof_coro_t *coro = draining ? NULL : gp_region_overlap(birth->lo, birth->hi);
    if (coro != NULL && registry_may_renew(coro, birth)) {
        coro->entry = birth->entry;
        coro->hook_mark = 0;
        coro->is_loop = 0;
        gp_ledger_edge_store(&coro->ready_ticks, coro->birth_ticks);
        atomic_store_explicit(&coro->park_pc, 0, memory_order_relaxed);
        coro->parent_id = birth->spawner != NULL ? birth->spawner->id : 0;
        if (birth->spawner != NULL)
            gp_coro_add(&gp_coro_rare(birth->spawner)->spawned, 1);
        gp_region_renew(coro, ++last_id);
    } else {
        coro = NULL;
    }
    gp_unlock(&gp_registry_lock);
    return coro;
}

prof_coro_t *gp_coro_adopt(uintptr_t lo, uintptr_t hi, uintptr_t entry)
{
    gp_lock(&gp_registry_lock);
    prof_coro_t *coro = gp_region_overlap(lo, hi);
    if (coro != NULL && (coro->lo != lo || coro->hi != hi || coro->entry != 0 || coro->switches != 0 ||
                         gp_ledger_edge_settled_cpu_ns(coro) != 0))
        coro = NULL;
    if (coro != NULL) {
        coro->entry = entry;
        atomic_store_explicit(&coro->owner, GP_OWNER_PROGRAM, memory_order_relaxed);
    }
    gp_unlock(&gp_registry_lock);
    return coro;
}

void gp_coro_ends(prof_coro_t *coro, uint64_t id)
{
    if (coro != NULL && coro->kind == GP_CORO_ANNOUNCED && atomic_load_explicit(&coro->id, memory_order_acquire) == id)
        gp_ledger_edge_store(&coro->ready_ticks, GP_EDGE_OVER);
}

void gp_coro_idles(prof_coro_t *coro)
{
    gp_lock(&gp_registry_lock);
    gp_scope_quit(coro);
    gp_unlock(&gp_registry_lock);
    gp_ledger_edge_store(&coro->ready_ticks, GP_EDGE_IDLE);
}

void gp_coro_forsake(prof_coro_t *coro, uint64_t id)
{
    gp_lock(&gp_registry_lock);
    if (atomic_load_explicit(&coro->id, memory_order_relaxed) == id)
        registry_void_wait_locked(coro);
    gp_unlock(&gp_registry_lock);
}

void gp_coro_abandon(prof_coro_t *coro, uint64_t id)
{
    gp_lock(&gp_registry_lock);
    if (atomic_load_explicit(&coro->id, memory_order_relaxed) == id)
        registry_abandon_locked(coro);
    gp_unlock(&gp_registry_lock);
}

void gp_coro_grow(prof_coro_t *coro, uint64_t id, uintptr_t lo)
{
    gp_lock(&gp_registry_lock);
    if (atomic_load_explicit(&coro->id, memory_order_relaxed) == id) {
        bool is_linked = coro->kind == GP_CORO_FOUND;
        if (is_linked)
            gp_region_remove(coro);
        atomic_store_explicit(&coro->lo, lo, memory_order_relaxed);
        if (is_linked)
            gp_region_insert(coro);
    }
    gp_unlock(&gp_registry_lock);
}

void gp_coro_retire(prof_coro_t *coro)
{
    if (coro == NULL)
        return;
    gp_lock(&gp_registry_lock);
    registry_retire_locked(coro);
    gp_unlock(&gp_registry_lock);
}

prof_coro_t *gp_coro_take_retired(void)
{
    gp_lock(&gp_registry_lock);
    prof_coro_t *list = retired_records != 0 ? gp_coro_numbered(retired_records) : NULL;
    retired_records = 0;
    gp_unlock(&gp_registry_lock);
    return list;
}

prof_coro_t *gp_coro_next_retired(const prof_coro_t *coro)
{
    return coro->next != 0 ? gp_coro_numbered(coro->next) : NULL;
}

void gp_coro_recycle(prof_coro_t *list)
{
    if (list == NULL)
        return;
    prof_coro_t *last = list;
    for (prof_coro_t *next; (next = gp_coro_next_retired(last)) != NULL;)
        last = next;
    gp_lock(&gp_registry_lock);
    last->next = free_records;
    free_records = list->number;
    gp_unlock(&gp_registry_lock);
}

bool gp_coro_piece(gp_coro_cursor_t *cursor, void (*visit)(prof_coro_t *coro, void *argument), void *argument)
{
    if (!cursor->has_begun) // Acquire: partner of the release in registry_grow().
        cursor->left = atomic_load_explicit(&chunk_count, memory_order_acquire);
    cursor->has_begun = true;
    for (uint32_t i = 0; cursor->left > 0 && i < GP_CORO_PIECE; i++) {
        prof_coro_t *coro = gp_coro_numbered(cursor->left * GP_CORO_PIECE + i);
        if (atomic_load_explicit(&coro->id, memory_order_acquire) != 0)
            visit(coro, argument);
    }
    cursor->left -= cursor->left > 0;
    return cursor->left > 0;
}

void gp_coro_each(void (*visit)(prof_coro_t *coro, void *argument), void *argument)
{
    gp_coro_cursor_t cursor = {0};
    while (gp_coro_piece(&cursor, visit, argument))
        ;
}

typedef struct total {
    uint64_t now;
    gp_ledger_t *sum;
} total_t;

static void registry_add_live(prof_coro_t *coro, void *argument)
{
    const total_t *total = argument;
    registry_add_ledger(coro, total->now, total->sum);
}

void gp_coro_total(uint64_t now, gp_ledger_t *sum)
{
    total_t total = {now, sum};
    gp_lock(&gp_registry_lock);
    gp_ledger_add(sum, &gone);
    gp_coro_each(registry_add_live, &total);
    totals_asked = now > totals_asked ? now : totals_asked;
    gp_unlock(&gp_registry_lock);
}

void gp_coro_set_draining(int (*sampling)(void))
{
    gp_lock(&gp_registry_lock);
    draining = sampling == NULL || sampling();
    gp_unlock(&gp_registry_lock);
}
