// SPDX-License-Identifier: MIT
#include "collect/ring_drain.h"

#include "collect/found_stack.h"
#include "collect/hog_samples.h"
#include "collect/modules.h"
#include "collect/polled.h"
#include "collect/pools.h"
#include "collect/thread_off.h"
#include "coro/coro_name.h"
#include "coro/threads.h"
#include "signal/language.h"
#include "unwind/generated.h"

static gp_frame_place_t *frame_table;

void gp_ring_drain_note_frames(gp_frame_place_t *table)
{
    frame_table = table;
}

static gp_loc_t ring_drain_locate_frame(void *context, uintptr_t word)
{
    const gp_sample_t *sample = context;
    if (!gp_language_is_frame(word))
        return gp_modules_locate(word);
    gp_loc_t loc = gp_language_of(gp_language_number(word))->locate(word, sample->ticks);
    if (frame_table != NULL)
        gp_frame_table_note(frame_table, word, loc);
    return loc;
}

void gp_ring_drain_locate(const gp_sample_t *sample, gp_loc_t *locs, gp_stack_t *stack)
{
    gp_locator_t locator = {.locate = ring_drain_locate_frame, .context = (void *)(uintptr_t)sample};
    gp_thread_entry_code(locator.entry);
    gp_ring_stack(sample, &locator, locs, stack);
    if (stack->flags & GP_STACK_INCOMPLETE && sample->depth > 0)
        gp_generated_met(sample->frames[sample->depth - 1]);
}

void gp_ring_drain_name(prof_coro_t *coro, uint64_t id, const gp_stack_t *stack)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    if (language == NULL || gp_coro_is_named(coro) || coro->kind == GP_CORO_THREAD)
        return;
    const char *name = language->coro_name(stack->locs, stack->depth);
    if (name != NULL && gp_coro_name_default(coro, id, name))
        gp_coro_written(coro)->written_id = 0; // the capture gets the name with its next record
}

static gp_loc_t sample_locs[GP_UNWIND_DEPTH_DEFAULT + GP_RING_STACK_MORE]; // guarded by the drain lock

// Hand a sample on, by what is known of its time.
static void ring_drain_hand_on(const gp_sample_t *sample, enum gp_ring_type type, gp_thread_t *thread,
                               const gp_stack_t *stack)
{
    gp_share_t shares[2];
    size_t count = gp_ring_shares(sample, type, shares);
    if (count > 0)
        GP_SINKS_CALL(sample, sample, thread, stack, shares, count);
}

// The same of a sample with time of one kind alone.
static void ring_drain_hand_on_whole(const gp_sample_t *sample, enum gp_sample_kind kind, gp_thread_t *thread,
                                     const gp_stack_t *stack)
{
    const gp_share_t share = {kind, sample->weight_ns};
    if (share.weight_ns > 0)
        GP_SINKS_CALL(sample, sample, thread, stack, &share, 1);
}

// Charge a sample on an unannounced stack to this stack, or to the coroutine named by the polled runtime.
static void ring_drain_find_owner(gp_thread_t *thread, gp_sample_t *sample)
{
    uint64_t id;
    bool polled = sample->flags & (GP_SAMPLE_POLLED | GP_SAMPLE_MISFIT);
    prof_coro_t *coro =
        polled ? gp_polled_owner(thread, sample, &id) : gp_found_stack(thread, sample->frames[sample->depth], &id);
    if (coro == NULL)
        return;
    sample->coro = coro;
    sample->coro_id = id;
    sample->trace[0] = sample->trace[1] = 0;
}

static void ring_drain_take_sample(gp_thread_t *thread, gp_sample_t *sample)
{
    gp_stack_t stack;
    if (sample->flags & (GP_SAMPLE_OUTSIDE | GP_SAMPLE_POLLED))
        ring_drain_find_owner(thread, sample);
    if (sample->depth > 0)
        gp_unwind_prepare_leaf(sample->frames[0]); // no code where it is a frame of a language
    gp_ring_drain_locate(sample, sample_locs, &stack);
    if (!(sample->flags & GP_SAMPLE_UNREPORTED))
        gp_ring_drain_name(sample->coro, sample->coro_id, &stack);
    gp_hog_keep_sample(thread, sample, &stack, true);
    if (sample->coro == thread->root)
        gp_thread_off_told(thread, sample->off_ns);
    ring_drain_hand_on(sample, GP_RING_SAMPLE, thread, &stack);
}

void gp_ring_drain_take_preempted(gp_thread_t *thread, const gp_sample_t *sample, const gp_stack_t *known)
{
    gp_stack_t stack;
    if (known == NULL)
        gp_ring_drain_locate(sample, sample_locs, &stack);
    ring_drain_hand_on_whole(sample, GP_KIND_PREEMPTED, thread, known != NULL ? known : &stack);
}

void gp_ring_drain_take_sleep(gp_thread_t *thread, const gp_sample_t *sample)
{
    gp_stack_t stack;
    gp_ring_drain_locate(sample, sample_locs, &stack);
    gp_hog_keep_sample(thread, sample, &stack, false);
    ring_drain_hand_on_whole(sample, GP_KIND_BLOCKED, thread, &stack);
}

void gp_ring_drain_take_wait(gp_thread_t *thread, const gp_sample_t *sample)
{
    gp_stack_t stack = {.locs = sample_locs};
    if (sample->depth > 0 || sample->flags & GP_SAMPLE_NOT_STARTED)
        gp_ring_drain_locate(sample, sample_locs, &stack);
    if (sample->flags & GP_SAMPLE_NOT_STARTED && gp_coro_rare(sample->coro)->pool != 0)
        sample_locs[0] = gp_pool_locate(gp_coro_rare(sample->coro)->pool); // in place of [not started]
    if (sample->depth > 0)
        gp_ring_drain_name(sample->coro, sample->coro_id, &stack);
    ring_drain_hand_on(sample, GP_RING_WAIT, thread, &stack);
}

static void ring_drain_take_gil(gp_thread_t *thread, const gp_sample_t *sample)
{
    gp_stack_t stack;
    gp_ring_drain_locate(sample, sample_locs, &stack);
    ring_drain_hand_on(sample, GP_RING_GIL, thread, &stack);
}

static uint64_t samples_taken;

void gp_ring_drain_leave_late(uint64_t counters[GP_COUNTER_COUNT])
{
    if (counters[GP_COUNTER_SAMPLES] <= samples_taken)
        return;
    counters[GP_COUNTER_SIGNALS] -= counters[GP_COUNTER_SAMPLES] - samples_taken;
    counters[GP_COUNTER_SAMPLES] = samples_taken;
}

void gp_ring_drain_after_fork(void)
{
    samples_taken = 0;
}

static void ring_drain_take_hog(gp_thread_t *thread, const gp_hog_mark_t *mark)
{
    size_t count;
    const gp_hog_sample_t *samples = gp_hog_samples(thread, mark->start, &count);
    GP_SINKS_CALL(hog, mark, thread, samples, count);
}

void gp_ring_drain_drain(gp_thread_t *thread)
{
    for (gp_ring_header_t *header; (header = gp_ring_peek(&thread->ring)) != NULL;) {
        void *record = header;
        switch (atomic_load_explicit(&header->committed, memory_order_relaxed)) {
        case GP_RING_SAMPLE:
            samples_taken++;
            ring_drain_take_sample(thread, record);
            break;
        case GP_RING_WAIT:
            gp_ring_drain_take_wait(thread, record);
            break;
        case GP_RING_GIL:
            ring_drain_take_gil(thread, record);
            break;
        case GP_RING_HOG:
            ring_drain_take_hog(thread, record);
            break;
        case GP_RING_TRACE_MARK:
            GP_SINKS_CALL(trace_mark, record);
            break;
        case GP_RING_SPAN:
            GP_SINKS_CALL(span, record);
            break;
        case GP_RING_ACTIVITY:
            GP_SINKS_CALL(activity, record, thread);
            break;
        case GP_RING_DELAY:
            GP_SINKS_CALL(delay, record, thread);
            break;
        default:
            break;
        }
        gp_ring_consume(&thread->ring, header);
    }
}
