// SPDX-License-Identifier: MIT
#include "model/ring_stack.h"

#define PSEUDO(which) GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_##which)

static bool ring_stack_is_entry(const gp_locator_t *locator, uintptr_t word)
{
    return !gp_language_is_frame(word) && word >= locator->entry[0] && word < locator->entry[1];
}

// Put the frames behind the `depth` locations that are there. A call of greenprof's own is its caller's time: its frame
// takes those within it along, unless a thread's stack begins there, or it is a language's, which calls the program.
static size_t ring_stack_put_frames(const gp_sample_t *sample, const gp_locator_t *locator, size_t depth,
                                    gp_loc_t *locs, unsigned *flags)
{
    for (uint64_t i = 0; i < sample->depth; i++) {
        uintptr_t word = sample->frames[i];
        gp_loc_t loc = locator->locate(locator->context, word);
        if (loc == GP_LOC_CUT && gp_language_is_frame(word))
            break;
        if (loc == GP_LOC_OWN && !gp_language_is_frame(word) && !ring_stack_is_entry(locator, word))
            depth = 0;
        if (loc == GP_LOC_OWN || (depth > 0 && loc == PSEUDO(UNKNOWN) && locs[depth - 1] == loc))
            continue; // of a row of unknown ones, one stands for all
        locs[depth++] = loc;
        if (i == 0 && (sample->flags & GP_SAMPLE_TRUNCATED)) { // the leaf, then what is missing, then the root end
            locs[depth++] = PSEUDO(TRUNCATED);
            *flags |= GP_STACK_TRUNCATED;
        }
    }
    return depth;
}

void gp_ring_stack(const gp_sample_t *sample, const gp_locator_t *locator, gp_loc_t *locs, gp_stack_t *stack)
{
    size_t depth = 0;
    *stack = (gp_stack_t){.locs = locs};
    if (sample->flags & GP_SAMPLE_SWITCHING) {
        locs[depth++] = PSEUDO(SWITCHING);
        stack->flags |= GP_STACK_SWITCHING;
    }
    if (sample->flags & GP_SAMPLE_HELD_BACK)
        locs[depth++] = PSEUDO(SIGNAL_BLOCKED);
    if (sample->flags & GP_SAMPLE_NOT_STARTED)
        locs[depth++] = PSEUDO(NOT_STARTED);
    if (!(sample->flags & GP_SAMPLE_SWITCHING)) {
        depth = ring_stack_put_frames(sample, locator, depth, locs, &stack->flags);
        if (sample->flags & GP_SAMPLE_INCOMPLETE) {
            locs[depth++] = PSEUDO(UNKNOWN);
            stack->flags |= GP_STACK_INCOMPLETE;
        }
    }
    if (depth == 0) // all of it was greenprof's own, on the way into or out of the program
        locs[depth++] = PSEUDO(UNKNOWN);
    stack->depth = depth;
}

size_t gp_ring_shares(const gp_sample_t *sample, enum gp_ring_type type, gp_share_t shares[2])
{
    uint64_t weight_ns = sample->weight_ns, ready_ns = sample->off_ns < weight_ns ? sample->off_ns : weight_ns;
    gp_share_t first = {GP_KIND_CPU, weight_ns}, second = {GP_KIND_PREEMPTED, sample->off_ns};
    size_t count = 0;
    if (type == GP_RING_GIL || type == GP_RING_LOCK) {
        first.kind = type == GP_RING_GIL ? GP_KIND_GIL : GP_KIND_LOCK;
        second.weight_ns = 0;
    } else if (type == GP_RING_WAIT && (sample->flags & GP_SAMPLE_BLIND)) {
        first.kind = GP_KIND_WAITING;
        second.weight_ns = 0;
    } else if (type == GP_RING_WAIT) {
        first = (gp_share_t){GP_KIND_READY, ready_ns};
        second = (gp_share_t){GP_KIND_PARKED, weight_ns - ready_ns};
    }
    if (first.weight_ns != 0 || first.kind == GP_KIND_CPU)
        shares[count++] = first;
    if (second.weight_ns != 0)
        shares[count++] = second;
    return count;
}
