// SPDX-License-Identifier: MIT
#include "exact/exact_stack.h"

#include <string.h>

#include "exact/exact_memory.h"
#include "signal/scope_record.h"

enum {
    FIRST_ROOM = 16,
    KEPT_ROOM = 256, // of a stack that is used for another coroutine: 16 KiB
    SCOPES_MAX = 256,
};

gp_exact_stack_t *gp_exact_stacks;
gp_exact_stack_t gp_exact_no_stack;
__thread gp_exact_stack_t *gp_exact_hint __attribute__((tls_model("initial-exec"))) = &gp_exact_no_stack;

// --- Everything up to the next such line: caller holds the lock.

static gp_exact_stack_t *exact_stack_new_stack(void)
{
    gp_exact_stack_t *stack = gp_exact_alloc(sizeof(*stack));
    gp_exact_frame_t *frames = stack != NULL ? gp_exact_alloc(FIRST_ROOM * sizeof(*frames)) : NULL;
    if (frames == NULL) {
        gp_exact_release(stack, sizeof(*stack));
        return NULL;
    }
    frames[0].cfa = UINTPTR_MAX;
    frames[0].site = &gp_exact_no_site;
    frames[0].object = gp_exact_no_site.object;
    stack->frames = stack->top = frames;
    stack->room = FIRST_ROOM;
    stack->turn = GP_EXACT_SLOW;
    stack->older = gp_exact_stacks;
    gp_exact_stacks = stack;
    return stack;
}

static void *exact_stack_grown(const void *from, size_t used, size_t bytes)
{
    void *to = gp_exact_alloc(bytes);
    return to != NULL ? memcpy(to, from, used) : NULL;
}

// Links that could be grown before memory was short have more room than they need.
static bool exact_stack_grow(gp_exact_stack_t *stack)
{
    uint32_t room = stack->room * 2, depth = gp_exact_depth(stack);
    for (uint32_t i = 0; i < stack->link_count; i++) {
        gp_exact_link_t *link = &stack->links[i];
        gp_exact_node_t **nodes = exact_stack_grown(link->nodes, link->room * sizeof(*nodes), room * sizeof(*nodes));
        if (nodes == NULL)
            return false;
        gp_exact_release(link->nodes, link->room * sizeof(*nodes));
        link->nodes = nodes;
        link->room = room;
    }
    gp_exact_frame_t *frames =
        exact_stack_grown(stack->frames, (size_t)stack->room * sizeof(*frames), (size_t)room * sizeof(*frames));
    if (frames == NULL)
        return false;
    gp_exact_release(stack->frames, (size_t)stack->room * sizeof(*frames));
    stack->frames = frames;
    stack->room = room;
    gp_exact_stack_aim(stack, depth);
    return true;
}

static void exact_stack_set_bounds(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    prof_coro_t *coro = stack->coro;
    if (atomic_load_explicit(&coro->lo, memory_order_relaxed) == atomic_load_explicit(&coro->hi, memory_order_relaxed))
        coro = thread->root;
    stack->lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    stack->hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
}

static gp_exact_tree_t *exact_stack_tree_for(gp_exact_t *recorder, gp_thread_t *thread)
{
    for (gp_exact_tree_t *tree = recorder->trees; tree != NULL; tree = tree->next)
        if (tree->thread == thread)
            return tree;
    gp_exact_tree_t *tree = gp_exact_tree_new(thread);
    if (tree != NULL) {
        tree->next = recorder->trees;
        recorder->trees = tree;
    }
    return tree;
}

// Let the link count in `tree` from now on, which is another thread's than before or the first.
static void exact_stack_plant(gp_exact_link_t *link, const gp_exact_stack_t *stack, gp_exact_tree_t *tree)
{
    gp_exact_node_t *node = &tree->root;
    link->tree = tree;
    link->nodes[link->base - 1] = node;
    for (uint32_t i = link->base, depth = gp_exact_depth(stack); i <= depth; i++) {
        gp_exact_node_t *child = gp_exact_tree_get(tree, node, stack->frames[i].site->function);
        link->nodes[i] = node = child != NULL ? child : node;
    }
}

static void exact_stack_forget_links(gp_exact_stack_t *stack)
{
    for (uint32_t i = 0; i < stack->link_count; i++)
        gp_exact_release(stack->links[i].nodes, stack->links[i].room * sizeof(*stack->links[i].nodes));
    stack->link_count = 0;
}

static void exact_stack_forget_frames(gp_exact_stack_t *stack)
{
    for (gp_exact_frame_t *frame = stack->top; frame > stack->frames; frame--)
        frame->on_alternate_stack = false;
    gp_exact_stack_aim(stack, 0);
}

// Room that one coroutine needed once does not stay with its record for ever.
static void exact_stack_shrink(gp_exact_stack_t *stack)
{
    gp_exact_frame_t *frames = stack->room > KEPT_ROOM ? gp_exact_alloc(FIRST_ROOM * sizeof(*frames)) : NULL;
    if (frames == NULL)
        return;
    frames[0] = stack->frames[0];
    gp_exact_release(stack->frames, (size_t)stack->room * sizeof(*frames));
    stack->frames = frames;
    stack->room = FIRST_ROOM;
    gp_exact_stack_aim(stack, 0);
}

static void exact_stack_begin_stack(gp_exact_stack_t *stack, prof_coro_t *coro, uint64_t id, gp_thread_t *thread)
{
    // Calls in progress took until the coroutine was last heard of.
    exact_stack_forget_links(stack);
    exact_stack_forget_frames(stack);
    exact_stack_shrink(stack);
    stack->coro = coro;
    stack->coro_id = id;
    stack->thread = NULL; // look up what covers it
    stack->last_ticks = stack->lag_ns = 0;
    stack->turn = GP_EXACT_SLOW;
    exact_stack_set_bounds(stack, thread);
}

typedef struct cover { // the new list of links
    gp_exact_link_t *links;
    uint32_t count, room;
} cover_t;

static gp_exact_link_t *exact_stack_next_link(cover_t *cover)
{
    if (cover->count == cover->room) {
        uint32_t room = cover->room > 0 ? cover->room * 2 : 4;
        gp_exact_link_t *links = gp_exact_alloc(room * sizeof(*links));
        if (links == NULL)
            return NULL;
        if (cover->count > 0)
            memcpy(links, cover->links, cover->count * sizeof(*links));
        gp_exact_release(cover->links, cover->room * sizeof(*links));
        cover->links = links;
        cover->room = room;
    }
    return &cover->links[cover->count];
}

// The link that the recorder has already moves over.
static bool exact_stack_add_link(cover_t *cover, gp_exact_stack_t *stack, gp_exact_t *recorder, gp_thread_t *thread)
{
    if (!(recorder->run & 1))
        return true;
    gp_exact_tree_t *tree = exact_stack_tree_for(recorder, thread);
    gp_exact_link_t *link = tree != NULL ? exact_stack_next_link(cover) : NULL;
    if (link == NULL)
        return false;
    *link = (gp_exact_link_t){.recorder = recorder, .run = recorder->run, .base = gp_exact_depth(stack) + 1};
    for (uint32_t i = 0; i < stack->link_count; i++) {
        gp_exact_link_t *old = &stack->links[i];
        if (old->recorder == recorder && old->run == recorder->run && old->nodes != NULL) {
            *link = *old;
            old->nodes = NULL;
        }
    }
    if (link->nodes == NULL && (link->nodes = gp_exact_alloc(stack->room * sizeof(*link->nodes))) == NULL)
        return false;
    if (link->room == 0)
        link->room = stack->room;
    cover->count++;
    if (link->tree != tree)
        exact_stack_plant(link, stack, tree);
    return true;
}

// Request profiles: the scopes from the coroutine's up to the root. Scopes and profiles are type-stable, and none anew
// in a slot runs before gp_exact_start() had the lock: a chain that changes meanwhile cannot lead astray.
static bool exact_stack_add_scopes(cover_t *cover, gp_exact_stack_t *stack, gp_thread_t *thread)
{
    gp_scope_t *scope = atomic_load_explicit(&gp_coro_context(stack->coro)->scope, memory_order_acquire);
    for (int steps = 0; scope != NULL && steps < SCOPES_MAX; steps++) {
        gp_exact_t *recorder = gp_scope_exact(scope);
        if (recorder != NULL && !exact_stack_add_link(cover, stack, recorder, thread))
            return false;
        scope = gp_scope_parent(scope);
    }
    return true;
}

static bool exact_stack_find_cover(cover_t *cover, gp_exact_stack_t *stack, gp_thread_t *thread)
{
    for (gp_exact_t *recorder = gp_exact_broad; recorder != NULL; recorder = recorder->next)
        if ((recorder->scope == PROF_SCOPE_PROCESS || recorder->thread_index == thread->index) &&
            !exact_stack_add_link(cover, stack, recorder, thread))
            return false;
    return exact_stack_add_scopes(cover, stack, thread);
}

// The first link's nodes go from the frames to the link.
static void exact_stack_take_nodes(gp_exact_stack_t *stack)
{
    gp_exact_link_t *link = stack->links;
    for (uint32_t i = stack->link_count > 0 ? link->base - 1 : UINT32_MAX; i <= gp_exact_depth(stack); i++)
        link->nodes[i] = stack->frames[i].node;
}

// And those of the link that is the first now, to the frames.
static void exact_stack_give_nodes(gp_exact_stack_t *stack)
{
    gp_exact_link_t *link = stack->links;
    for (uint32_t i = 0; i <= gp_exact_depth(stack) && stack->link_count > 0; i++) {
        gp_exact_frame_t *frame = &stack->frames[i];
        bool is_counted = i >= link->base;
        frame->node = is_counted ? link->nodes[i] : &link->tree->root;
        frame->object = is_counted ? frame->site->object : gp_exact_no_site.object;
        if (is_counted)
            gp_exact_frame_check(frame);
    }
}

static void exact_stack_refresh(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    cover_t cover = {0};
    exact_stack_take_nodes(stack);
    if (stack->link_count == 0) // its calls have not been followed for a while
        exact_stack_forget_frames(stack);
    uint64_t epoch = atomic_load_explicit(&gp_exact_epoch, memory_order_acquire);
    bool complete = exact_stack_find_cover(&cover, stack, thread);
    exact_stack_forget_links(stack);
    gp_exact_release(stack->links, stack->link_room * sizeof(*stack->links));
    stack->links = cover.links;
    stack->link_count = cover.count;
    stack->link_room = cover.room;
    if (!complete) {
        gp_exact_lose();
        exact_stack_forget_links(stack);
    }
    exact_stack_give_nodes(stack);
    gp_exact_stack_aim(stack, gp_exact_depth(stack));
    exact_stack_set_bounds(stack, thread);
    stack->thread = thread;
    stack->epoch = epoch;
}

// --- The lock is taken below.

gp_exact_stack_t *gp_exact_stack_of(prof_coro_t *coro, uint64_t id, gp_thread_t *thread)
{
    gp_exact_guard_t guard;
    gp_exact_stack_t *stack = gp_coro_rare(coro)->exact_stack;
    if (stack != NULL && stack->coro_id == id)
        return stack;
    gp_exact_lock(&guard);
    if (stack == NULL)
        stack = gp_coro_rare(coro)->exact_stack = exact_stack_new_stack();
    if (stack != NULL)
        exact_stack_begin_stack(stack, coro, id, thread);
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
        stack->interrupt = exact_stack_new_stack();
    if (stack->interrupt != NULL)
        exact_stack_begin_stack(stack->interrupt, stack->coro, stack->coro_id, thread);
    gp_exact_unlock(&guard);
    return stack->interrupt;
}

void gp_exact_stack_refresh(gp_exact_stack_t *stack, gp_thread_t *thread)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    exact_stack_refresh(stack, thread);
    gp_exact_unlock(&guard);
}

bool gp_exact_stack_grow(gp_exact_stack_t *stack)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    bool ok = exact_stack_grow(stack);
    gp_exact_unlock(&guard);
    return ok;
}

gp_exact_node_t *gp_exact_stack_node(gp_exact_tree_t *tree, gp_exact_node_t *parent, uint32_t function)
{
    bool is_full = tree->count >= GP_EXACT_NODES_MAX && parent != &tree->root;
    gp_exact_node_t *node = is_full ? gp_exact_find(tree, &tree->root, function) : NULL;
    if (node == NULL) {
        gp_exact_guard_t guard;
        gp_exact_lock(&guard);
        node = gp_exact_tree_get(tree, parent, function);
        gp_exact_unlock(&guard);
    }
    if (node == NULL || is_full)
        gp_exact_lose();
    return node != NULL ? node : parent;
}
