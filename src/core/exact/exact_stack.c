// SPDX-License-Identifier: MIT
#include "exact/exact_stack.h"

#include <string.h>

#include "exact/exact_memory.h"
#include "signal/scope_record.h"

enum { FIRST_ROOM = 16, FIRST_MAP = 32, SCOPES_MAX = 256 };

gp_exact_stack_t *gp_exact_stacks;

// --- Everything up to the next such line: caller holds the lock.

static gp_exact_stack_t *new_stack(void)
{
    gp_exact_stack_t *stack = gp_exact_alloc(sizeof(*stack));
    gp_exact_frame_t *frames = stack != NULL ? gp_exact_alloc(FIRST_ROOM * sizeof(*frames)) : NULL;
    gp_exact_last_t *map = frames != NULL ? gp_exact_alloc(FIRST_MAP * sizeof(*map)) : NULL;
    if (map == NULL) {
        gp_exact_release(frames, FIRST_ROOM * sizeof(*frames));
        gp_exact_release(stack, sizeof(*stack));
        return NULL;
    }
    frames[0].cfa = UINTPTR_MAX;
    stack->frames = frames;
    stack->room = FIRST_ROOM;
    stack->map = map;
    stack->map_mask = FIRST_MAP - 1;
    stack->next = gp_exact_stacks;
    gp_exact_stacks = stack;
    return stack;
}

static void clear_map(gp_exact_stack_t *stack)
{
    memset(stack->map, 0, (stack->map_mask + 1) * sizeof(*stack->map));
    stack->map_used = 0;
}

static void rebuild_map(gp_exact_stack_t *stack)
{
    clear_map(stack);
    for (uint32_t i = 1; i <= stack->depth; i++)
        gp_exact_stack_enter(stack, i);
}

static bool grow_frames(gp_exact_stack_t *stack)
{
    gp_exact_frame_t *frames = gp_exact_alloc((size_t)stack->room * 2 * sizeof(*frames));
    if (frames == NULL)
        return false;
    memcpy(frames, stack->frames, (size_t)(stack->depth + 1) * sizeof(*frames));
    gp_exact_release(stack->frames, (size_t)stack->room * sizeof(*frames));
    stack->frames = frames;
    stack->room *= 2;
    return true;
}

static bool grow_map(gp_exact_stack_t *stack)
{
    size_t slots = (size_t)stack->map_mask + 1;
    gp_exact_last_t *map = gp_exact_alloc(slots * 2 * sizeof(*map));
    if (map == NULL)
        return false;
    gp_exact_release(stack->map, slots * sizeof(*map));
    stack->map = map;
    stack->map_mask = (uint32_t)(slots * 2 - 1);
    rebuild_map(stack);
    return true;
}

static void set_bounds(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    prof_coro_t *coro = stack->coro;
    if (atomic_load_explicit(&coro->lo, memory_order_relaxed) == atomic_load_explicit(&coro->hi, memory_order_relaxed))
        coro = thread->root;
    stack->lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    stack->hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
}

static gp_exact_table_t *table_for(gp_exact_t *recorder, gp_thread_t *thread)
{
    for (gp_exact_table_t *table = recorder->tables; table != NULL; table = table->next)
        if (table->thread == thread)
            return table;
    gp_exact_table_t *table = gp_exact_table_new(thread);
    if (table != NULL) {
        table->next = recorder->tables;
        recorder->tables = table;
    }
    return table;
}

// Calls in progress on a coroutine that is over took until it was last heard of.
static void close_frames(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    uint64_t called_ticks = 0, called_cpu_ns = 0;
    for (uint32_t index = stack->depth; index > 0; index--) {
        const gp_exact_frame_t *frame = &stack->frames[index];
        gp_exact_share_t share =
            gp_exact_frame_share(frame, stack->last_ticks, stack->last_cpu_ns, frame->called_ticks + called_ticks,
                                 frame->called_cpu_ns + called_cpu_ns);
        for (uint32_t i = 0; i < stack->link_count; i++) {
            gp_exact_link_t *link = &stack->links[i];
            if (index < link->base || link->run != link->recorder->run)
                continue;
            gp_exact_table_t *table = table_for(link->recorder, thread);
            uint64_t key = gp_exact_frame_key(stack->frames, index, link->base);
            gp_exact_record_t *record = table != NULL ? gp_exact_table_get(table, key) : NULL;
            if (record != NULL)
                gp_exact_charge(record, frame, link->base, &share);
        }
        called_ticks = share.ticks;
        called_cpu_ns = share.cpu_ns;
    }
    stack->depth = 0;
}

static void begin_stack(gp_exact_stack_t *stack, prof_coro_t *coro, uint64_t id, gp_thread_t *thread)
{
    close_frames(stack, thread);
    clear_map(stack);
    stack->coro = coro;
    stack->coro_id = id;
    stack->link_count = 0;
    stack->thread = NULL; // look up who covers it
    stack->last_ticks = stack->last_cpu_ns = 0;
    stack->busy = false;
    set_bounds(stack, thread);
}

typedef struct cover { // the new list of links
    gp_exact_link_t *links;
    uint32_t count, room;
} cover_t;

static bool add_link(cover_t *cover, gp_exact_stack_t *stack, gp_exact_t *recorder, gp_thread_t *thread)
{
    if (!(recorder->run & 1))
        return true;
    if (cover->count == cover->room) {
        uint32_t room = cover->room > 0 ? cover->room * 2 : 4;
        gp_exact_link_t *links = gp_exact_alloc(room * sizeof(*links));
        if (links == NULL)
            return false;
        if (cover->count > 0)
            memcpy(links, cover->links, cover->count * sizeof(*links));
        gp_exact_release(cover->links, cover->room * sizeof(*links));
        cover->links = links;
        cover->room = room;
    }
    gp_exact_link_t *link = &cover->links[cover->count++];
    *link = (gp_exact_link_t){recorder, table_for(recorder, thread), recorder->run, stack->depth + 1};
    for (uint32_t i = 0; i < stack->link_count; i++)
        if (stack->links[i].recorder == recorder && stack->links[i].run == recorder->run)
            link->base = stack->links[i].base;
    return link->table != NULL;
}

// Request profiles: the scopes from the coroutine's up to the root. Scopes and profiles are type-stable, and none that
// comes anew into a slot runs before gp_exact_start() had the lock: a chain that changes meanwhile cannot lead astray.
static bool add_scopes(cover_t *cover, gp_exact_stack_t *stack, gp_thread_t *thread)
{
    gp_scope_t *scope = atomic_load_explicit(&stack->coro->scope, memory_order_acquire);
    for (int steps = 0; scope != NULL && steps < SCOPES_MAX; steps++) {
        gp_exact_t *recorder = gp_scope_exact(scope);
        if (recorder != NULL && !add_link(cover, stack, recorder, thread))
            return false;
        scope = gp_scope_parent(scope);
    }
    return true;
}

static bool find_cover(cover_t *cover, gp_exact_stack_t *stack, gp_thread_t *thread)
{
    for (gp_exact_t *recorder = gp_exact_broad; recorder != NULL; recorder = recorder->next)
        if ((recorder->scope == PROF_SCOPE_PROCESS || recorder->thread_index == thread->index) &&
            !add_link(cover, stack, recorder, thread))
            return false;
    return add_scopes(cover, stack, thread);
}

static void refresh(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    cover_t cover = {0};
    if (stack->link_count == 0) { // nobody has followed its calls for a while
        stack->depth = 0;
        clear_map(stack);
    }
    uint64_t epoch = atomic_load_explicit(&gp_exact_epoch, memory_order_acquire);
    if (!find_cover(&cover, stack, thread)) {
        gp_exact_lose();
        cover.count = 0;
    }
    gp_exact_release(stack->links, stack->link_room * sizeof(*stack->links));
    stack->links = cover.links;
    stack->link_count = cover.count;
    stack->link_room = cover.room;
    set_bounds(stack, thread);
    stack->thread = thread;
    stack->epoch = epoch;
}

// --- The lock is taken below.

gp_exact_stack_t *gp_exact_stack_of(prof_coro_t *coro, uint64_t id, gp_thread_t *thread)
{
    gp_exact_guard_t guard;
    gp_exact_stack_t *stack = coro->exact_stack;
    if (stack != NULL && stack->coro_id == id)
        return stack;
    gp_exact_lock(&guard);
    if (stack == NULL)
        stack = coro->exact_stack = new_stack();
    if (stack != NULL)
        begin_stack(stack, coro, id, thread);
    gp_exact_unlock(&guard);
    return stack;
}

gp_exact_stack_t *gp_exact_stack_interrupt(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    gp_exact_guard_t guard;
    if (stack->interrupt != NULL && stack->interrupt->coro_id == stack->coro_id)
        return stack->interrupt;
    gp_exact_lock(&guard);
    if (stack->interrupt == NULL)
        stack->interrupt = new_stack();
    if (stack->interrupt != NULL)
        begin_stack(stack->interrupt, stack->coro, stack->coro_id, thread);
    gp_exact_unlock(&guard);
    return stack->interrupt;
}

void gp_exact_stack_refresh(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    refresh(stack, thread);
    gp_exact_unlock(&guard);
}

bool gp_exact_stack_grow(gp_exact_stack_t *stack)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    bool ok = stack->depth + 1 < stack->room || grow_frames(stack);
    if (ok && (stack->map_used + 1) * 2 > stack->map_mask)
        ok = grow_map(stack);
    gp_exact_unlock(&guard);
    return ok;
}

void gp_exact_stack_repair(gp_exact_stack_t *stack)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    rebuild_map(stack);
    gp_exact_unlock(&guard);
}

gp_exact_record_t *gp_exact_stack_record(gp_exact_table_t *table, uint64_t key)
{
    gp_exact_record_t *record = gp_exact_find(table, key);
    if (record != NULL)
        return record;
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    record = gp_exact_table_get(table, key);
    gp_exact_unlock(&guard);
    if (record == NULL)
        gp_exact_lose();
    return record;
}
