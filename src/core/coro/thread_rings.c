// SPDX-License-Identifier: MIT
#include "coro/thread_rings.h"

#include <string.h>
#include <sys/mman.h>

#include "coro/lock.h"

enum { STEPS = 16 }; // of a turn at a time: padding is half a ring at most, and a turn is two rings ahead

static struct {
    unsigned char *slots;
    uint32_t count; // of them
    bool is_on;     // they are to be used
    bool is_amid;   // not all rings are where they are to be
} kept;

// Records from now on, or from the turn on, are the block's present thread's.
static void thread_rings_note_owner(gp_thread_t *thread)
{
    gp_ring_owner_t *owner = gp_ring_owner(&thread->ring);
    owner->index[1] = owner->index[0];
    owner->root_id[1] = owner->root_id[0];
    owner->tids[1] = owner->tids[0];
    owner->index[0] = thread->index;
    owner->root_id[0] = thread->root_id;
    owner->tids[0] = (uint32_t)atomic_load_explicit(&thread->tid, memory_order_relaxed);
    owner->since = atomic_load_explicit(&thread->ring.head, memory_order_relaxed);
}

static bool thread_rings_is_to_be_file(const gp_thread_t *thread)
{
    return kept.is_on && thread->slot < kept.count;
}

// Or will be, once its turn is over.
static bool thread_rings_is_file(const gp_ring_t *ring)
{
    return gp_ring_is_file(ring, gp_ring_start(ring));
}

static bool thread_rings_is_settled(const gp_thread_t *thread)
{
    return gp_ring_has_turned(&thread->ring) &&
           thread_rings_is_file(&thread->ring) == thread_rings_is_to_be_file(thread);
}

static void thread_rings_turn(gp_thread_t *thread)
{
    bool to_file = thread_rings_is_to_be_file(thread);
    unsigned char *slot = to_file ? kept.slots + (size_t)thread->slot * GP_RING_SLOT_BYTES : NULL;
    gp_ring_turn(&thread->ring, to_file ? slot + GP_RING_OWNER_BYTES : NULL);
    if (to_file)
        thread_rings_note_owner(thread);
}

static void thread_rings_set_positions(gp_ring_t *ring, uint64_t position)
{
    atomic_store_explicit(&ring->head, position, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, position, memory_order_relaxed);
    atomic_store_explicit(&ring->read, position, memory_order_relaxed);
}

// For an empty ring with no thread amid it.
static void thread_rings_turn_at_once(gp_thread_t *thread)
{
    if (gp_ring_has_turned(&thread->ring) && thread_rings_is_file(&thread->ring) != thread_rings_is_to_be_file(thread))
        thread_rings_turn(thread);
    thread->ring.warm = 0;
    thread_rings_set_positions(&thread->ring, gp_ring_start(&thread->ring));
}

void gp_thread_ring_make(gp_thread_t *thread)
{
    if (thread_rings_is_to_be_file(thread))
        thread_rings_turn_at_once(thread);
}

void gp_thread_ring_begin(gp_thread_t *thread)
{
    if (thread_rings_is_file(&thread->ring))
        thread_rings_note_owner(thread);
}

static void thread_rings_clear(unsigned char *memory)
{
    if (madvise(memory, GP_RING_BYTES, MADV_DONTNEED) != 0)
        memset(memory, 0, GP_RING_BYTES);
}

// A ring in a file is bounded: its memory stays, and its positions go on. Records held up by one begun and never
// completed are lost with it.
static void thread_rings_empty_file_ring(gp_ring_t *ring)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (gp_ring_unread(ring) == 0)
        return;
    if (!gp_ring_has_turned(ring))
        thread_rings_clear(ring->data);
    if (gp_ring_is_file(ring, head)) {
        gp_ring_owner(ring)->tail = head;
        memset(atomic_load_explicit(&ring->file, memory_order_relaxed), 0, ring->capacity);
    }
    thread_rings_set_positions(ring, head);
}

// All but the written and unread part is zero, as new memory is.
void gp_thread_ring_give_back(gp_thread_t *thread)
{
    gp_ring_t *ring = &thread->ring;
    if (thread->ring_turns)
        return; // it is about to be elsewhere
    if (thread_rings_is_file(ring) || !gp_ring_has_turned(ring)) {
        thread_rings_empty_file_ring(ring);
        return;
    }
    if (atomic_load_explicit(&ring->head, memory_order_relaxed) == gp_ring_start(ring))
        return;
    thread_rings_clear(ring->data);
    *ring = (gp_ring_t){.data = ring->data, .capacity = ring->capacity};
}

// The lock: a thread that ends may give its block back meanwhile.
void gp_thread_ring_rewind(gp_thread_t *thread)
{
    if (!gp_ring_may_rewind(&thread->ring))
        return;
    gp_lock(&gp_registry_lock);
    gp_ring_rewind(&thread->ring);
    gp_unlock(&gp_registry_lock);
}

// Where nothing is left to do but wait for a running thread's ring, or nothing at all: false.
static bool thread_rings_begin_turn(gp_thread_t *thread)
{
    gp_lock(&gp_registry_lock);
    bool is_free = atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_FREE;
    bool is_amid = !thread_rings_is_settled(thread);
    if (is_amid && is_free && gp_ring_fill(&thread->ring) == 0)
        thread_rings_turn_at_once(thread);
    else
        thread->ring_turns = is_amid;
    gp_unlock(&gp_registry_lock);
    return is_amid;
}

static void thread_rings_turn_a_little(gp_thread_t *thread, void (*drain)(gp_thread_t *thread))
{
    if (!gp_ring_has_turned(&thread->ring)) {
        gp_ring_hasten(&thread->ring);
        drain(thread);
        return;
    }
    gp_lock(&gp_registry_lock);
    thread_rings_turn(thread);
    gp_unlock(&gp_registry_lock);
}

static bool thread_rings_turn_on(gp_thread_t *thread, void (*drain)(gp_thread_t *thread))
{
    for (int i = 0; i < STEPS && !thread_rings_is_settled(thread); i++)
        thread_rings_turn_a_little(thread, drain);
    bool is_there = thread_rings_is_settled(thread);
    if (is_there)
        thread->ring.warm = 0;
    if (is_there && thread_rings_is_file(&thread->ring))
        thread_rings_clear(thread->ring.data); // padding has touched all of it
    gp_lock(&gp_registry_lock);
    thread->ring_turns = false;
    gp_unlock(&gp_registry_lock);
    return is_there;
}

bool gp_thread_turn_rings(void (*drain)(gp_thread_t *thread))
{
    bool is_amid = false;
    for (uint32_t slot = 0; kept.is_amid && slot < kept.count; slot++) {
        gp_thread_t *thread = atomic_load_explicit(&gp_thread_blocks[slot], memory_order_acquire);
        if (thread == NULL)
            break;
        if (thread_rings_begin_turn(thread) && !thread_rings_is_settled(thread))
            is_amid |= !thread_rings_turn_on(thread, drain);
    }
    kept.is_amid = is_amid;
    if (!is_amid && !kept.is_on)
        kept.slots = NULL;
    return !is_amid;
}

void gp_thread_keep_rings(unsigned char *slots, uint32_t count)
{
    gp_lock(&gp_registry_lock);
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    kept.is_on = slots != NULL;
    kept.is_amid = true;
    if (slots != NULL) {
        kept.slots = slots;
        kept.count = count;
    }
    for (; thread != NULL; thread = thread->next) {
        if (slots == NULL && thread->ring.keeps) {
            thread->ring.keeps = false;
            gp_ring_relieve(&thread->ring);
        }
        if (slots != NULL && thread == gp_thread_self && gp_ring_fill(&thread->ring) == 0)
            thread_rings_turn_at_once(thread);
    }
    gp_unlock(&gp_registry_lock);
}

// This fails where the kernel has no memory at all, and then the fork did.
void gp_thread_leave_rings(void)
{
    if (kept.slots != NULL)
        (void)mmap(kept.slots, (size_t)kept.count * GP_RING_SLOT_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

// Records in the file are the parent's, and so are those left in the rings' own memory.
void gp_thread_rings_after_fork(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_relaxed);
    gp_thread_leave_rings();
    kept.slots = NULL;
    kept.is_on = kept.is_amid = false;
    for (; thread != NULL; thread = thread->next) {
        gp_ring_t *ring = &thread->ring;
        thread->ring_turns = false;
        if (atomic_load_explicit(&ring->file, memory_order_relaxed) == NULL)
            continue;
        thread_rings_clear(ring->data);
        *ring = (gp_ring_t){.data = ring->data, .capacity = ring->capacity};
    }
}
