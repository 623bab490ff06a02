// SPDX-License-Identifier: MIT
#include "collect/pace_queue.h"

#include <string.h>
#include <sys/mman.h>

#include "coro/helper_memory.h"

enum {
    FIRST_ROOM = 4096 / sizeof(gp_pace_entry_t),
    IDLE_LOOK_NS = 50000, // between two looks at threads that sleep, each ~0.5 us
};

static bool pace_queue_grow(gp_pace_queue_t *queue)
{
    size_t room = queue->room > 0 ? 2 * queue->room : FIRST_ROOM;
    gp_pace_entry_t *grown = gp_own_map(room * sizeof(*grown));
    if (grown == NULL)
        return false;
    if (queue->count > 0)
        memcpy(grown, queue->entries, queue->count * sizeof(*grown));
    gp_pace_entry_t *old = queue->entries;
    size_t old_room = queue->room;
    queue->entries = grown; // first: a forked child goes on with what it finds
    queue->room = room;
    if (old_room > 0)
        munmap(old, old_room * sizeof(*old));
    return true;
}

bool gp_pace_put(gp_pace_queue_t *queue, gp_timer_t *timer, uint64_t due_ns)
{
    if (queue->count == queue->room && !pace_queue_grow(queue))
        return false;
    gp_pace_entry_t *entries = queue->entries;
    size_t at = queue->count++;
    for (size_t parent; at > 0 && entries[parent = (at - 1) / 2].due_ns > due_ns; at = parent)
        entries[at] = entries[parent];
    entries[at] = (gp_pace_entry_t){due_ns, timer};
    return true;
}

gp_pace_entry_t gp_pace_take(gp_pace_queue_t *queue)
{
    gp_pace_entry_t *entries = queue->entries, first = entries[0], last = entries[--queue->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < queue->count; at = child) {
        if (child + 1 < queue->count && entries[child + 1].due_ns < entries[child].due_ns)
            child++;
        if (entries[child].due_ns >= last.due_ns)
            break;
        entries[at] = entries[child];
    }
    entries[at] = last;
    return first;
}

uint64_t gp_pace_idle_ns(uint64_t interval_ns, size_t idle)
{
    uint64_t all_ns = idle * IDLE_LOOK_NS;
    return interval_ns > all_ns ? interval_ns : all_ns;
}
