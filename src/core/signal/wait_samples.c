// SPDX-License-Identifier: MIT
#include "signal/wait_samples.h"

#include <string.h>

#include "signal/language.h"
#include "signal/ledger_edges.h"
#include "signal/sample.h"
#include "signal/sampling.h"
#include "signal/scope_record.h"
#include "signal/spare_stack.h"

enum {
    WINDOWS_PER_SECOND = 10, // how often the rate is looked at
    PER_HERTZ = 4,           // samples for each of the sampler's: without a signal they cost a fourth
    FEW = 4,                 // a window with a fourth of what is aimed at halves the period
};

static _Atomic uint64_t shortest_period = 1, window_ticks = 1;
static _Atomic uint32_t window_samples = 1;
static _Atomic int wanted;

void gp_wait_samples_want(int change)
{
    atomic_fetch_add_explicit(&wanted, change, memory_order_relaxed);
}

void gp_wait_samples_set_frequency(unsigned hz)
{
    uint64_t second = gp_ticks_from_ns(1000000000u);
    gp_ledger_edge_store(&shortest_period, second / hz);
    gp_ledger_edge_store(&window_ticks, second / WINDOWS_PER_SECOND);
    atomic_store_explicit(&window_samples, PER_HERTZ * hz / WINDOWS_PER_SECOND + 1, memory_order_relaxed);
}

// xorshift32. Source: Marsaglia, Xorshift RNGs.
static uint64_t wait_samples_draw_below(gp_thread_t *thread, uint64_t limit)
{
    uint32_t x = thread->wait.random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    thread->wait.random = x;
    return (uint64_t)(((unsigned __int128)limit * x) >> 32);
}

// Draw the point of the next period.
static void wait_samples_next_point(gp_thread_t *thread)
{
    uint64_t at = wait_samples_draw_below(thread, thread->wait.period);
    thread->wait.left += (int64_t)(thread->wait.rest + at);
    thread->wait.rest = thread->wait.period - at;
}

void gp_wait_samples_begin(gp_thread_t *thread)
{
    if (thread->wait.random == 0)
        thread->wait.random = ((uint32_t)gp_ticks() ^ thread->index * 2654435761u) | 1;
    thread->wait.period = gp_ledger_edge_load(&shortest_period);
    thread->wait.window = gp_ticks();
    thread->wait.count = 0;
    thread->wait.left = 0;
    thread->wait.rest = 0;
    wait_samples_next_point(thread);
}

static void wait_samples_adapt(gp_thread_t *thread, uint64_t now)
{
    uint32_t aim = atomic_load_explicit(&window_samples, memory_order_relaxed);
    bool over = now - thread->wait.window >= gp_ledger_edge_load(&window_ticks);
    thread->wait.count++;
    if (!over && thread->wait.count < aim)
        return;
    if (!over)
        thread->wait.period *= 2;
    else if (thread->wait.count < aim / FEW && thread->wait.period / 2 >= gp_ledger_edge_load(&shortest_period))
        thread->wait.period /= 2;
    thread->wait.window = now;
    thread->wait.count = 0;
}

// Ticks that the wait stands for; moves the clock on.
static uint64_t wait_samples_weigh(gp_thread_t *thread, uint64_t wait)
{
    if (wait >= 2 * thread->wait.period) {
        thread->wait.left += (int64_t)wait;
        return wait;
    }
    uint64_t weight = 0;
    while (thread->wait.left < 0) {
        weight += thread->wait.period;
        wait_samples_next_point(thread);
    }
    return weight;
}

typedef struct ended_wait {
    gp_thread_t *thread;
    prof_coro_t *coro;
    uint64_t id, from, now;
    uint64_t weight, ready; // ticks
    bool blind, is_new;
} ended_wait_t;

// Coroutines of a language on the thread's stack: the next one to run has its frames back by now.
static size_t wait_samples_walk_language(gp_thread_t *thread, unsigned *flags)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    if (language == NULL)
        return 0;
    gp_language_place_t place = {
        // all of the thread's stack: this may run on the spare one
        .sp = atomic_load_explicit(&thread->root->lo, memory_order_relaxed),
        .stack_hi = atomic_load_explicit(&thread->root->hi, memory_order_relaxed),
    };
    return language->walk(&place, thread->parked_frames, atomic_load_explicit(&gp_handler_depth, memory_order_relaxed),
                          flags);
}

// Walk a coroutine with a stack of its own.
static size_t wait_samples_walk_stack(gp_thread_t *thread, const gp_unwind_regs_t *regs, uintptr_t hi, unsigned *flags)
{
    const gp_language_place_t place = {.sp = regs->sp, .stack_hi = hi, .in_doubt = true};
    size_t depth = 0, max = atomic_load_explicit(&gp_handler_depth, memory_order_relaxed);
    const gp_language_t *language = atomic_load_explicit(&gp_languages, memory_order_acquire);
    for (; language != NULL && depth == 0; language = atomic_load_explicit(&language->next, memory_order_acquire))
        if (language->is_of_stack)
            depth = language->walk(&place, thread->parked_frames, max, flags);
    return depth > 0 ? depth : gp_unwind_walk_parked(regs, regs->sp, hi, thread->parked_frames, max, flags);
}

static size_t wait_samples_walk(gp_thread_t *thread, prof_coro_t *coro, unsigned *flags)
{
    gp_kept_frames_t *kept = atomic_load_explicit(&gp_coro_rare(coro)->kept_frames, memory_order_acquire);
    uintptr_t lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    uintptr_t hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
    gp_unwind_regs_t regs = {
        .pc = atomic_load_explicit(&coro->park_pc, memory_order_relaxed),
        .sp = atomic_load_explicit(&coro->park_sp, memory_order_relaxed),
        .fp = atomic_load_explicit(&coro->park_fp, memory_order_relaxed),
        .doubt = coro->keeps_stack ? GP_UNWIND_SURE : GP_UNWIND_DOUBTS,
    };
    *flags = 0;
    if (kept != NULL)
        return kept(coro, thread->parked_frames, atomic_load_explicit(&gp_handler_depth, memory_order_relaxed));
    if (regs.pc == 0 && (lo == hi || coro == thread->root))
        return wait_samples_walk_language(thread, flags);
    if (regs.pc == 0 || regs.sp < lo || regs.sp >= hi)
        return 0; // it has not run yet, or has no stack of its own
    return wait_samples_walk_stack(thread, &regs, hi, flags);
}

static void wait_samples_record(void *argument)
{
    const ended_wait_t *wait = argument;
    gp_thread_t *thread = wait->thread;
    unsigned flags;
    size_t depth = wait_samples_walk(thread, wait->coro, &flags);
    if (depth == 0 && wait->is_new)
        depth = gp_sample_not_started(wait->coro, thread->parked_frames, &flags);
    gp_sample_t *sample = gp_ring_reserve(&thread->ring, (uint32_t)(sizeof(*sample) + depth * sizeof(uintptr_t)));
    if (sample == NULL) {
        gp_thread_count(thread, GP_COUNTER_LOST_WAITS);
        return;
    }
    gp_scope_t *scope = atomic_load_explicit(&gp_coro_context(wait->coro)->scope, memory_order_acquire);
    sample->ticks = wait->now;
    sample->weight_ns = gp_ticks_to_ns(wait->weight);
    sample->off_ns = gp_ticks_to_ns(wait->ready);
    sample->slice = wait->from;
    sample->coro = wait->coro;
    sample->coro_id = wait->id;
    for (int i = 0; i < 2; i++)
        sample->trace[i] = atomic_load_explicit(&gp_coro_context(wait->coro)->trace[i], memory_order_relaxed);
    sample->scope = scope != NULL ? scope->index : 0;
    sample->flags = flags | (wait->blind ? GP_SAMPLE_BLIND : 0);
    sample->depth = depth;
    memcpy(sample->frames, thread->parked_frames, depth * sizeof(uintptr_t));
    gp_thread_commit(thread, sample, GP_RING_WAIT);
    gp_thread_count(thread, GP_COUNTER_WAIT_SAMPLES);
    if (gp_ring_is_pressed(&thread->ring))
        gp_handler_kick();
}

static void wait_samples_sample(ended_wait_t *ended)
{
    if (ended->weight > 0 && !gp_run_on_spare_stack(ended->thread, wait_samples_record, ended))
        gp_thread_count(ended->thread, GP_COUNTER_LOST_WAITS);
}

static uint64_t wait_samples_share_of(uint64_t weight, uint64_t part, uint64_t whole)
{
    return part < whole ? (uint64_t)((unsigned __int128)weight * part / whole) : weight;
}

// A wait of which it is not known when it ended: parked, then either, then ready, each a sample with its share.
static void wait_samples_sample_in_parts(const ended_wait_t *whole, uint64_t unseen, uint64_t ready)
{
    const uint64_t edges[] = {whole->from, ready - unseen, ready, whole->now};
    for (size_t i = 0; i < 3; i++) {
        ended_wait_t part = *whole;
        part.from = edges[i];
        part.now = edges[i + 1];
        part.weight = wait_samples_share_of(whole->weight, part.now - part.from, whole->now - whole->from);
        part.ready = i == 2 ? part.weight : 0;
        part.blind = i == 1;
        wait_samples_sample(&part);
    }
}

void gp_wait_samples_over(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, const gp_ledger_edge_wait_t *wait)
{
    // Exchange: the collector may be about to take what the wait was so far (gp_waiting_stack_take()).
    uint64_t from = atomic_exchange_explicit(&coro->unsampled_from, UINT64_MAX, memory_order_acq_rel);
    uint64_t now = wait->now, ticks = now > from ? now - from : 0, weight = wait_samples_weigh(thread, ticks);
    if (weight == 0)
        return;
    wait_samples_adapt(thread, now);
    if (atomic_load_explicit(&wanted, memory_order_relaxed) <= 0)
        return;
    uint64_t ready = wait->ready > from ? wait->ready : from;
    uint64_t unseen = wait->unseen < ready - from ? wait->unseen : ready - from;
    ended_wait_t ended = {
        .thread = thread,
        .coro = coro,
        .id = id,
        .from = from,
        .now = now,
        .weight = weight,
        .ready = wait->ready != 0 && ticks > 0 ? wait_samples_share_of(weight, now - ready, ticks) : 0,
        .blind = wait->ready == 0,
        .is_new = wait->is_new,
    };
    if (unseen == 0)
        wait_samples_sample(&ended);
    else
        wait_samples_sample_in_parts(&ended, unseen, ready);
}
