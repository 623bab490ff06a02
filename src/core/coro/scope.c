// SPDX-License-Identifier: MIT
#include "coro/scope.h"

#include <stddef.h>

#include "coro/coro_ledger.h"
#include "coro/helper_memory.h"
#include "coro/lock.h"
#include "signal/ticks.h"

enum { SLOTS_PER_CHUNK = 1024, CHUNKS_MAX = 4096 };

static _Atomic(gp_scope_t *) chunks[CHUNKS_MAX];
static uint32_t chunk_count;
static gp_scope_t *free_slots, *retired_slots, *drained_slots;

static int scope_grow(void)
{
    if (chunk_count == CHUNKS_MAX)
        return 0;
    gp_scope_t *chunk = gp_own_map(SLOTS_PER_CHUNK * sizeof(gp_scope_t));
    if (chunk == NULL)
        return 0;
    for (uint32_t i = SLOTS_PER_CHUNK; i-- > 0;) {
        chunk[i].index = chunk_count * SLOTS_PER_CHUNK + i;
        if (chunk[i].index == 0)
            continue; // index 0 means no scope
        chunk[i].next_free = free_slots;
        free_slots = &chunk[i];
    }
    // Release: partner of the acquire in gp_scope_at().
    atomic_store_explicit(&chunks[chunk_count++], chunk, memory_order_release);
    return 1;
}

static void scope_link_child(gp_scope_t *parent, gp_scope_t *child)
{
    // Release: partner of the acquire in gp_scope_parent().
    __atomic_store_n(&child->parent, parent, __ATOMIC_RELEASE);
    child->prev_sibling = NULL;
    child->next_sibling = parent != NULL ? parent->first_child : NULL;
    if (child->next_sibling != NULL)
        child->next_sibling->prev_sibling = child;
    if (parent != NULL) {
        parent->first_child = child;
        parent->children++;
    }
}

static void scope_unlink_child(gp_scope_t *child)
{
    if (child->prev_sibling != NULL)
        child->prev_sibling->next_sibling = child->next_sibling;
    else if (child->parent != NULL)
        child->parent->first_child = child->next_sibling;
    if (child->next_sibling != NULL)
        child->next_sibling->prev_sibling = child->prev_sibling;
    if (child->parent != NULL)
        child->parent->children--;
}

static void scope_retire(gp_scope_t *scope)
{
    scope->next_free = retired_slots;
    retired_slots = scope;
}

static void scope_join(prof_coro_t *coro, gp_scope_t *scope, uint64_t now)
{
    gp_coro_context_t *context = gp_coro_context(coro);
    gp_coro_member_t *member = gp_coro_member(coro);
    if (atomic_load_explicit(&context->scope, memory_order_relaxed) != scope)
        atomic_store_explicit(&context->scope, scope, memory_order_release);
    if (scope == NULL)
        return;
    gp_ledger_read(coro, now, &member->at_entry);
    member->longest_before = member->at_entry.longest_ns;
    atomic_store_explicit(&coro->longest_ticks, 0, memory_order_relaxed);
    member->prev = NULL;
    member->next = scope->members;
    if (scope->members != NULL)
        gp_coro_member(scope->members)->prev = coro;
    scope->members = coro;
}

// The coroutine's ledger since it joined.
static void scope_add_member(prof_coro_t *coro, uint64_t now, gp_ledger_t *sum)
{
    gp_ledger_t ledger;
    gp_ledger_read(coro, now, &ledger);
    gp_ledger_subtract(&ledger, &gp_coro_member(coro)->at_entry);
    ledger.longest_ns = gp_ledger_longest_since_entry(coro, now);
    gp_ledger_add(sum, &ledger);
}

static gp_scope_t *scope_part(prof_coro_t *coro, uint64_t now)
{
    gp_scope_t *scope = atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_relaxed);
    if (scope == NULL)
        return NULL;
    scope_add_member(coro, now, &scope->ledger);
    gp_coro_member_t *member = gp_coro_member(coro);
    if (member->next != NULL)
        gp_coro_member(member->next)->prev = member->prev;
    if (member->prev != NULL)
        gp_coro_member(member->prev)->next = member->next;
    else
        scope->members = member->next;
    member->next = member->prev = NULL;
    return scope;
}

void gp_scope_inherit(prof_coro_t *coro, gp_scope_t *scope)
{
    gp_coro_member_t *member = gp_coro_member(coro);
    gp_scope_ref(scope);
    if (member->longest_before != 0)
        member->longest_before = 0;
    scope_join(coro, scope, scope != NULL ? gp_ticks() : 0);
}

void gp_scope_quit(prof_coro_t *coro)
{
    if (atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_relaxed) == NULL)
        return; // as most are: no clock is read
    gp_scope_t *scope = scope_part(coro, gp_ticks());
    atomic_store_explicit(&gp_coro_context(coro)->scope, NULL, memory_order_release);
    gp_scope_unref(scope);
}

// Releases: partners of the acquires in gp_scope_profile() and gp_scope_exact().
static void scope_set_profile(gp_scope_t *scope, struct prof *profile, struct gp_exact *exact)
{
    __atomic_store_n(&scope->profile, profile, __ATOMIC_RELEASE);
    __atomic_store_n(&scope->exact, exact, __ATOMIC_RELEASE);
}

gp_scope_t *gp_scope_push(prof_coro_t *coro, struct prof *profile, struct gp_exact *exact)
{
    if (free_slots == NULL && !scope_grow())
        return NULL;
    gp_scope_t *scope = free_slots;
    free_slots = scope->next_free;
    // The coroutine's reference to what it had becomes the new scope's reference to its parent.
    uint64_t now = gp_ticks();
    scope_link_child(scope_part(coro, now), scope);
    scope->first_child = NULL;
    scope->children = 0;
    scope->members = NULL;
    scope->ledger = (gp_ledger_t){0};
    scope_set_profile(scope, profile, exact);
    scope->references = 2; // the coroutine and the profile
    scope_join(coro, scope, now);
    return scope;
}

int gp_scope_covers(prof_coro_t *coro, const struct prof *profile)
{
    for (gp_scope_t *scope = atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_relaxed); scope != NULL;
         scope = scope->parent)
        if (scope->profile == profile)
            return 1;
    return 0;
}

void gp_scope_pop(prof_coro_t *coro, int (*is_over)(const struct prof *profile, const prof_coro_t *coro))
{
    gp_scope_t *scope;
    while ((scope = atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_relaxed)) != NULL &&
           (scope->profile == NULL || is_over(scope->profile, coro))) {
        uint64_t now = gp_ticks();
        gp_scope_ref(scope->parent);
        scope_part(coro, now);
        scope_join(coro, scope->parent, now);
        gp_scope_unref(scope);
    }
}

void gp_scope_ref(gp_scope_t *scope)
{
    if (scope != NULL)
        scope->references++;
}

// A scope alive by its children only (its profile is freed, no coroutine is in it any more) is taken out of the tree:
// otherwise profiles that overlap on one coroutine would grow a chain for ever.
static void scope_splice_if_dead(gp_scope_t *scope)
{
    uint32_t children = scope->children;
    if (scope->profile != NULL || children == 0 || scope->references != children)
        return;
    gp_scope_t *parent = scope->parent;
    scope_unlink_child(scope);
    while (scope->first_child != NULL) {
        gp_scope_t *child = scope->first_child;
        scope->first_child = child->next_sibling;
        scope_link_child(parent, child);
    }
    if (parent != NULL) {
        gp_ledger_add(&parent->ledger, &scope->ledger);
        parent->references += children - 1;
    }
    scope_retire(scope);
}

void gp_scope_unref(gp_scope_t *scope)
{
    while (scope != NULL && --scope->references == 0) {
        gp_scope_t *parent = scope->parent;
        scope_unlink_child(scope);
        if (parent != NULL)
            gp_ledger_add(&parent->ledger, &scope->ledger);
        scope_retire(scope);
        scope = parent;
    }
    if (scope != NULL)
        scope_splice_if_dead(scope);
}

void gp_scope_forget_profile(gp_scope_t *scope)
{
    scope_set_profile(scope, NULL, NULL);
    gp_scope_unref(scope);
}

// The scope after `scope` in the tree below `top`: children first, then siblings, then up. NULL at the end. No
// recursion, the caller's stack may be small.
static gp_scope_t *scope_next_below(gp_scope_t *scope, const gp_scope_t *top)
{
    if (scope->first_child != NULL)
        return scope->first_child;
    while (scope != top && scope->next_sibling == NULL)
        scope = scope->parent;
    return scope == top ? NULL : scope->next_sibling;
}

void gp_scope_total(gp_scope_t *top, uint64_t now, gp_ledger_t *sum)
{
    for (gp_scope_t *scope = top; scope != NULL; scope = scope_next_below(scope, top)) {
        gp_ledger_add(sum, &scope->ledger);
        for (prof_coro_t *coro = scope->members; coro != NULL; coro = gp_coro_member(coro)->next)
            scope_add_member(coro, now, sum);
    }
}

gp_scope_t *gp_scope_at(uint32_t index)
{
    if (index == 0 || index >= CHUNKS_MAX * SLOTS_PER_CHUNK)
        return NULL;
    // Acquire: partner of the release in scope_grow().
    gp_scope_t *chunk = atomic_load_explicit(&chunks[index / SLOTS_PER_CHUNK], memory_order_acquire);
    return chunk != NULL ? &chunk[index % SLOTS_PER_CHUNK] : NULL;
}

void gp_scope_recycle(void)
{
    gp_lock(&gp_registry_lock);
    // A slot retired now may be named by a sample that is drained in the next round: two rounds make it free.
    while (drained_slots != NULL) {
        gp_scope_t *slot = drained_slots;
        drained_slots = slot->next_free;
        slot->next_free = free_slots;
        free_slots = slot;
    }
    drained_slots = retired_slots;
    retired_slots = NULL;
    gp_unlock(&gp_registry_lock);
}
