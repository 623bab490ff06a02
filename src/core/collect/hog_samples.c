// SPDX-License-Identifier: MIT
#include "collect/hog_samples.h"

#include <string.h>

#include "coro/helper_memory.h"
#include "signal/ticks.h"

enum {
    STACKS_MAX = 64, // distinct stacks kept of a slice; what comes later is left to these
    LOCS_MAX = 4096, // locations, of all of them
};

typedef struct kept {
    uint32_t first, depth, flags;
    uint64_t weight_ns;
} kept_t;

typedef struct gp_hog_buffer {
    uint64_t slice; // ticks at which it began
    size_t count, used;
    kept_t stacks[STACKS_MAX];
    gp_loc_t locs[LOCS_MAX];
    uint64_t latest_ticks;
    gp_stack_t latest;
    gp_loc_t latest_locs[GP_UNWIND_DEPTH_DEFAULT + GP_RING_STACK_MORE]; // as many as gp_ring_drain_locate() gives
} gp_hog_buffer_t;

static gp_hog_buffer_t *hog_samples_buffer_of(gp_thread_t *thread)
{
    // Mapped, not allocated: only the thread's block refers to it, where LeakSanitizer does not look.
    if (thread->hog_buffer == NULL)
        thread->hog_buffer = gp_own_map(sizeof(gp_hog_buffer_t));
    return thread->hog_buffer;
}

static kept_t *hog_samples_find(gp_hog_buffer_t *buffer, const gp_stack_t *stack)
{
    for (size_t i = 0; i < buffer->count; i++) {
        kept_t *kept = &buffer->stacks[i];
        if (kept->depth == stack->depth &&
            memcmp(&buffer->locs[kept->first], stack->locs, stack->depth * sizeof(gp_loc_t)) == 0)
            return kept;
    }
    return NULL;
}

static kept_t *hog_samples_keep(gp_hog_buffer_t *buffer, const gp_stack_t *stack)
{
    if (buffer->count == STACKS_MAX || buffer->used + stack->depth > LOCS_MAX)
        return NULL;
    kept_t *kept = &buffer->stacks[buffer->count++];
    *kept = (kept_t){.first = (uint32_t)buffer->used, .depth = (uint32_t)stack->depth, .flags = stack->flags};
    memcpy(&buffer->locs[buffer->used], stack->locs, stack->depth * sizeof(gp_loc_t));
    buffer->used += stack->depth;
    return kept;
}

static void hog_samples_keep_latest(gp_hog_buffer_t *buffer, uint64_t ticks, const gp_stack_t *stack)
{
    memcpy(buffer->latest_locs, stack->locs, stack->depth * sizeof(gp_loc_t));
    buffer->latest = *stack;
    buffer->latest.locs = buffer->latest_locs;
    buffer->latest_ticks = ticks;
}

void gp_hog_keep_sample(gp_thread_t *thread, const gp_sample_t *sample, const gp_stack_t *stack, bool runs)
{
    gp_hog_buffer_t *buffer = hog_samples_buffer_of(thread);
    if (buffer == NULL)
        return;
    if (buffer->slice != sample->slice) {
        buffer->slice = sample->slice;
        buffer->count = buffer->used = buffer->latest.depth = 0;
    }
    if (runs)
        hog_samples_keep_latest(buffer, sample->ticks, stack);
    kept_t *kept = hog_samples_find(buffer, stack);
    if (kept == NULL)
        kept = hog_samples_keep(buffer, stack);
    if (kept == NULL)
        return;
    // The first sample of a slice may stand for time before it: only what passed since can count.
    uint64_t weight = sample->weight_ns + sample->off_ns, since = gp_ticks_to_ns(sample->ticks - sample->slice);
    kept->weight_ns += weight < since ? weight : since;
}

const gp_hog_sample_t *gp_hog_samples(gp_thread_t *thread, uint64_t start, size_t *count)
{
    static gp_hog_sample_t samples[STACKS_MAX]; // guarded by the drain lock
    gp_hog_buffer_t *buffer = thread->hog_buffer;
    *count = 0;
    if (buffer == NULL || buffer->slice != start)
        return samples;
    for (; *count < buffer->count; (*count)++) {
        const kept_t *kept = &buffer->stacks[*count];
        samples[*count] = (gp_hog_sample_t){
            .stack = {.locs = &buffer->locs[kept->first], .depth = kept->depth, .flags = kept->flags},
            .weight_ns = kept->weight_ns,
        };
    }
    return samples;
}

gp_stack_t gp_hog_latest(gp_thread_t *thread, uint64_t start, uint64_t *ticks)
{
    const gp_hog_buffer_t *buffer = thread->hog_buffer;
    if (buffer == NULL || buffer->slice != start)
        return (gp_stack_t){0};
    *ticks = buffer->latest_ticks;
    return buffer->latest;
}

void gp_hog_forget(gp_thread_t *thread)
{
    gp_own_unmap(thread->hog_buffer, sizeof(gp_hog_buffer_t));
    thread->hog_buffer = NULL;
}
