// SPDX-License-Identifier: MIT
#include "record/census.h"

#include <errno.h>

#include "collect/cpu_time.h"
#include "collect/hog_samples.h"
#include "collect/ring_drain.h"
#include "collect/sleep_scan.h"
#include "collect/waiting_stack.h"
#include "coro/registry.h"
#include "coro/task.h"
#include "signal/gil_wait.h"
#include "signal/handler.h"
#include "signal/language.h"
#include "signal/ledger_edges.h"

enum { TRIES = 3 }; // at a coroutine that is switched meanwhile

#define SAMPLED_MOST_NS 1000000000ull // before: what runs has been elsewhere since

typedef struct census {
    const gp_census_stand_t *stand;
    bool sampling;
    uint64_t began; // ticks at which census_note_sleeps() was through
    gp_census_visit_t *visit;
    void *argument;
} census_t;

typedef struct look { // what was seen of one coroutine
    enum gp_census_state state;
    unsigned flags;   // enum gp_census_flag
    uint64_t since;   // ticks
    uint64_t most_ns; // it cannot have been in this state for longer; 0 = not known
    gp_thread_t *thread;
    int depth;       // -EAGAIN: it was switched meanwhile
    unsigned walked; // enum gp_unwind_flag
} look_t;

static gp_sample_buffer_t walk; // guarded by the drain lock
static gp_loc_t locs[GP_UNWIND_DEPTH_DEFAULT + GP_RING_STACK_MORE];

static int census_walk_language(gp_thread_t *thread, unsigned *flags)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    return language != NULL ? (int)language->walk_asleep(thread, walk.sample.frames, GP_UNWIND_DEPTH_DEFAULT, flags)
                            : 0;
}

// The stand's thread goes nowhere meanwhile.
static void census_look_at_stand(const gp_census_stand_t *stand, prof_coro_t *coro, look_t *look)
{
    const prof_coro_t *on = coro;
    if (atomic_load_explicit(&coro->lo, memory_order_relaxed) == atomic_load_explicit(&coro->hi, memory_order_relaxed))
        on = look->thread->root; // it shares the thread's stack
    uintptr_t lo = atomic_load_explicit(&on->lo, memory_order_relaxed);
    uintptr_t hi = atomic_load_explicit(&on->hi, memory_order_relaxed);
    if (stand->is_fatal) {
        look->flags |= GP_CENSUS_FATAL;
    } else {
        look->state = GP_CENSUS_BLOCKED;
        look->depth = census_walk_language(look->thread, &look->walked);
    }
    if (look->depth == 0 && stand->regs.sp >= lo && stand->regs.sp < hi)
        look->depth = (int)gp_waiting_stack_walk_from(&stand->regs, stand->is_fatal, hi, walk.sample.frames,
                                                      GP_UNWIND_DEPTH_DEFAULT, &look->walked);
}

// A sleeper was on the CPU when it was sampled there.
static void census_not_before_it_ran(look_t *look, uint64_t slice)
{
    uint64_t ticks;
    if (gp_hog_latest(look->thread, slice, &ticks).depth == 0 || ticks <= look->since)
        return;
    look->since = ticks;
    look->flags &= ~(unsigned)GP_CENSUS_AT_LEAST;
}

// Threads are looked at one after the other, and holders are true of one moment alone. So a wait counts as
// one only from when it is known to go on: where the thread has not woken up since before the first of these looks, all
// of them saw the same moment.
static void census_note_sleeps(census_t *census)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next)
        if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE ||
            !gp_task_voluntary_switches(atomic_load_explicit(&thread->tid, memory_order_relaxed),
                                        &thread->census_sleeps))
            thread->census_sleeps = UINT64_MAX;
    census->began = gp_ticks();
}

// A hook knows when a wait for a lock began; else the kernel, whether the thread woke up since the census did.
static void census_bound_lock_wait(const census_t *census, uint64_t waits_since, look_t *look)
{
    uint64_t sleeps;
    if (!(look->walked & GP_SAMPLE_LOCK))
        return;
    if (gp_ledger_edge_load(&look->thread->gil.since) != waits_since)
        look->depth = -EAGAIN;
    else if (waits_since != 0)
        look->since = waits_since > look->since ? waits_since : look->since;
    else if (look->thread->start_ticks > census->began || look->thread->census_sleeps == UINT64_MAX ||
             !gp_task_voluntary_switches(atomic_load_explicit(&look->thread->tid, memory_order_relaxed), &sleeps) ||
             sleeps != look->thread->census_sleeps)
        look->most_ns = 1; // not known
}

// On a thread: asleep with a stack, where it is known to stand, or at work, where no stack is to be had from outside
// (census_take_sampled()).
static void census_look_at_running(const census_t *census, prof_coro_t *coro, look_t *look)
{
    uint64_t since = gp_ledger_edge_load(&coro->since);
    pid_t tid = look->thread != NULL ? atomic_load_explicit(&look->thread->tid, memory_order_relaxed) : 0;
    look->state = GP_CENSUS_RUNNING;
    look->depth = tid == 0 && coro->kind != GP_CORO_THREAD ? -EAGAIN : 0; // no thread has it any more
    if (tid == 0)
        return;
    if (look->thread == gp_thread_self && atomic_load_explicit(&gp_language, memory_order_acquire) != NULL) {
        look->depth = census_walk_language(look->thread, &look->walked); // the asking thread itself
        return;
    }
    if (census->stand != NULL && census->stand->tid == tid) {
        census_look_at_stand(census->stand, coro, look);
        return;
    }
    uint64_t waits_since = gp_ledger_edge_load(&look->thread->gil.since);
    int depth =
        gp_sleep_scan_walk(look->thread, coro, since, walk.sample.frames, GP_UNWIND_DEPTH_DEFAULT, &look->walked);
    if (depth >= 0) {
        look->state = GP_CENSUS_BLOCKED;
        look->depth = depth;
        census_not_before_it_ran(look, since);
        census_bound_lock_wait(census, waits_since, look);
    } else if (coro->kind == GP_CORO_THREAD) { // on it since its last switch, if any: it may have slept
        uint64_t cpu_ns = gp_cpu_time_thread(tid), before_ns = look->thread->cpu.start_ns;
        look->most_ns = cpu_ns > before_ns ? cpu_ns - before_ns : 1;
    }
}

static void census_look_at_waiting(prof_coro_t *coro, look_t *look)
{
    uint64_t ready = gp_ledger_edge_ready(coro);
    look->state = gp_ledger_edge_is_reported(coro) ? GP_CENSUS_PARKED : GP_CENSUS_WAITING;
    if (ready > gp_ticks()) {
        look->state = GP_CENSUS_PARKED; // until then, as far as is known
    } else if (gp_ledger_edge_is_new(coro)) {
        look->state = GP_CENSUS_NEW;
    } else if (ready != 0) {
        look->state = GP_CENSUS_READY;
        look->since = ready > look->since ? ready : look->since;
    }
    look->depth = gp_waiting_stack_walk(coro, walk.sample.frames, GP_UNWIND_DEPTH_DEFAULT, &look->walked);
}

static void census_look_at(const census_t *census, prof_coro_t *coro, uint64_t id, look_t *look)
{
    *look = (look_t){.since = coro->birth_ticks};
    if (coro->kind == GP_CORO_THREAD)
        look->thread = gp_sleep_scan_thread_of(coro, id);
    if (!census->sampling || coro->kind == GP_CORO_POLLED) { // a language knows where its coroutines wait all the same
        look->depth = gp_coro_rare(coro)->object != 0
                          ? gp_waiting_stack_walk(coro, walk.sample.frames, GP_UNWIND_DEPTH_DEFAULT, &look->walked)
                          : 0;
        return;
    }
    bool is_current = gp_ledger_edge_is_current(coro);
    // Acquire: partner of the release in gp_ledger_edge_leave().
    bool runs = is_current && atomic_load_explicit(&coro->running, memory_order_acquire) != 0;
    uint64_t epoch_ticks = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    if (is_current)
        look->since = gp_ledger_edge_load(&coro->since);
    if (look->since < epoch_ticks) {
        look->since = epoch_ticks;
        look->flags |= GP_CENSUS_AT_LEAST;
    }
    if (coro->kind == GP_CORO_THREAD)
        runs = look->thread != NULL && atomic_load_explicit(&look->thread->current, memory_order_relaxed) == coro;
    else if (runs)
        look->thread = gp_sleep_scan_thread_of(coro, id);
    if (runs)
        census_look_at_running(census, coro, look);
    else if (coro->kind == GP_CORO_THREAD)
        look->state = GP_CENSUS_AWAY;
    else
        census_look_at_waiting(coro, look);
}

// The walked stack, as locations. stack->depth 0 = nothing is known.
static void census_locate(prof_coro_t *coro, uint64_t id, const look_t *look, gp_stack_t *stack)
{
    *stack = (gp_stack_t){.locs = locs};
    if (look->depth <= 0 && !(look->depth == 0 && look->walked & GP_SAMPLE_NOT_STARTED))
        return;
    walk.sample.depth = (uint64_t)look->depth;
    walk.sample.flags = look->walked;
    gp_ring_drain_locate(&walk.sample, locs, stack);
    gp_ring_drain_name(coro, id, stack);
}

// At work: where its thread was when it was sampled last, if that is of the same slice.
static void census_take_sampled(gp_census_seen_t *seen)
{
    uint64_t ticks;
    if (seen->state != GP_CENSUS_RUNNING || seen->stack.depth > 0 || seen->thread == NULL)
        return;
    gp_stack_t stack = gp_hog_latest(seen->thread, gp_ledger_edge_load(&seen->coro->since), &ticks);
    uint64_t age_ns = seen->ticks > ticks ? gp_ticks_to_ns(seen->ticks - ticks) : 0;
    if (stack.depth == 0 || age_ns > SAMPLED_MOST_NS)
        return;
    seen->stack = stack;
    seen->stack_age_us = (uint32_t)(age_ns / 1000) + 1;
}

static bool census_is_over(prof_coro_t *coro)
{
    // Acquire: partner of the release in gp_ledger_edge_leave().
    bool runs = atomic_load_explicit(&coro->running, memory_order_acquire) != 0 && gp_ledger_edge_is_current(coro);
    return !runs && gp_ledger_edge_is_over(coro);
}

static void census_count_one(prof_coro_t *coro, void *argument)
{
    const census_t *census = argument;
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire);
    look_t look;
    bool idles = census_is_over(coro) && gp_ledger_edge_load(&coro->ready_ticks) == GP_EDGE_IDLE;
    if ((census_is_over(coro) && !idles) || gp_waiting_stack_is_forsaken(coro, true))
        return;
    uint64_t ticks = gp_ticks(); // before the look: then what it saw began before that
    census_look_at(census, coro, id, &look);
    for (int i = 1; i < TRIES && look.depth == -EAGAIN; i++) {
        ticks = gp_ticks();
        census_look_at(census, coro, id, &look);
    }
    gp_census_seen_t seen = {
        .coro = coro,
        .id = id,
        .ticks = ticks,
        .state = look.state,
        .flags = look.flags,
        .thread = look.thread,
    };
    if (idles)
        seen.state = GP_CENSUS_IDLE;
    seen.state_ns = seen.ticks > look.since ? gp_ticks_to_ns(seen.ticks - look.since) : 0;
    if (look.most_ns != 0 && seen.state_ns > look.most_ns)
        seen.state_ns = look.most_ns;
    census_locate(coro, id, &look, &seen.stack);
    census_take_sampled(&seen);
    gp_waiting_stack_trace(coro, seen.trace);
    if (id != 0 && atomic_load_explicit(&coro->id, memory_order_acquire) == id) // else it is over
        census->visit(&seen, census->argument);
}

void gp_census_each(const gp_census_stand_t *stand, gp_census_visit_t *visit, void (*between)(void *argument),
                    void *argument)
{
    census_t census = {
        .stand = stand,
        .sampling = atomic_load_explicit(&gp_handler_sampling, memory_order_acquire),
        .visit = visit,
        .argument = argument,
    };
    gp_coro_cursor_t cursor = {0};
    if (census.sampling)
        census_note_sleeps(&census);
    for (bool more = true; more;) {
        gp_language_before_drain(); // what is not true any more is forgotten
        more = gp_coro_piece(&cursor, census_count_one, &census);
        between(argument);
    }
}

typedef struct writing {
    gp_recording_t *recording;
    uint32_t number;
    size_t count;
    void (*between)(gp_recording_t *recording);
} writing_t;

static void census_write_one(const gp_census_seen_t *seen, void *argument)
{
    writing_t *writing = argument;
    gp_recording_t *recording = writing->recording;
    uint32_t thread = seen->thread != NULL ? seen->thread->index
                                           : atomic_load_explicit(&gp_coro_timeline(seen->coro)->thread,
                                                                  memory_order_relaxed); // where it ran
    gp_recording_coro(recording, seen->coro, seen->id, seen->coro->kind == GP_CORO_THREAD ? thread : 0);
    uint32_t trace = gp_recording_trace(recording, seen->trace);
    uint32_t stack = seen->stack.depth > 0 ? gp_recording_stack(recording, &seen->stack) : 0;
    gp_census_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_CENSUS, sizeof(*record));
    if (record == NULL)
        return;
    record->coro_id = seen->id;
    record->time_ns = gp_recording_since(recording, seen->ticks);
    record->state_ns = seen->state_ns;
    record->number = writing->number;
    record->trace = trace;
    record->stack_id = stack;
    record->thread = thread;
    record->state = (uint16_t)seen->state;
    record->flags = (uint16_t)seen->flags;
    record->stack_age_us = seen->stack_age_us;
    writing->count++;
}

static void census_between_pieces(void *argument)
{
    const writing_t *writing = argument;
    writing->between(writing->recording);
}

size_t gp_census_take(gp_recording_t *recording, uint32_t number, const gp_census_stand_t *stand,
                      void (*between)(gp_recording_t *recording))
{
    writing_t writing = {.recording = recording, .number = number, .between = between};
    gp_census_each(stand, census_write_one, census_between_pieces, &writing);
    return writing.count;
}
