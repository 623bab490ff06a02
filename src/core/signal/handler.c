// SPDX-License-Identifier: MIT
#include "signal/handler.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "signal/language.h"
#include "signal/poll.h"
#include "signal/region.h"
#include "signal/restart.h"
#include "signal/sample.h"
#include "signal/scope_record.h"
#include "signal/slice.h"

const gp_clock_engine_t *_Atomic gp_handler_engine;
_Atomic bool gp_handler_sampling;
_Atomic unsigned gp_handler_depth = GP_UNWIND_DEPTH_DEFAULT;
_Atomic int gp_handler_native;
_Atomic uint64_t gp_handler_census;
void (*gp_handler_kick)(void);

enum {
    HANDLER_BYTES_MAX = 2048,      // above the walk, which is limited by its own test
    POPPED_BYTES = 256,            // more than an epilogue pops
    GUESSED_STACK_BYTES = 8 << 20, // of a thread that was found, not created under our eyes: glibc's default
};

typedef struct moment { // what one signal found
    prof_coro_t *coro;
    uint64_t coro_id;
    uintptr_t entry; // where the handler's stack begins
    uint64_t now, cpu_ns;
    uintptr_t sp, lo, hi;    // stack pointer and the stack it is on
    uint64_t off_ns;         // preempted since the last coarse point of the same slice
    const uintptr_t *frames; // its stack
    bool outside;
    bool unreported; // coroutines share this stack, and the switch to this one has not reached the hook yet
    bool in_window;  // the switch hook ran a moment ago, or hook and stack pointer disagree
    bool misfit;     // so do the runtime that is polled and the stack pointer
    gp_poll_answer_t polled;
} moment_t;

// A thread that existed before sampling started: its block was made by others, it learns of it here. Its alternate
// stack is put into the context that the kernel restores on return.
static gp_thread_t *adopt(ucontext_t *context)
{
    gp_thread_t *thread = gp_thread_find((pid_t)syscall(SYS_gettid));
    if (thread == NULL)
        return NULL;
    if (context->uc_stack.ss_flags & SS_DISABLE) {
        context->uc_stack = thread->alternate_stack;
        context->uc_stack.ss_flags = 0;
    }
    if (thread->root->hi == 0) { // its stack could not be asked for: the thread's descriptor lies at the top of it
        uintptr_t top = (uintptr_t)__builtin_thread_pointer();
        atomic_store_explicit(&thread->root->lo, top - GUESSED_STACK_BYTES, memory_order_relaxed);
        atomic_store_explicit(&thread->root->hi, top, memory_order_relaxed);
        atomic_store_explicit(&gp_thread_nested, true, memory_order_relaxed);
    }
    thread->adopted = true;
    gp_thread_self = thread;
    return thread;
}

// The thread is in its switch hook, on its spare stack: that is neither coroutine's, and not walked.
static void stay_on_spare_stack(gp_thread_t *thread, moment_t *moment)
{
    moment->coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    moment->coro_id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    moment->in_window = true;
    moment->lo = moment->hi = moment->sp;
}

// Ask the runtime, where no hook has announced this stack. The time of its coroutines is the thread's until the
// collector has sorted it out.
static void ask_runtime(gp_thread_t *thread, moment_t *moment)
{
    bool is_own = moment->coro == thread->root && !moment->outside;
    if (moment->coro->kind == GP_CORO_ANNOUNCED)
        return;
    enum gp_poll_result result = gp_poll_ask(moment->sp, &moment->polled);
    moment->misfit = result == GP_POLL_MISFIT || (result == GP_POLL_STACKLESS && !is_own);
    if (moment->misfit)
        gp_thread_count(thread, GP_COUNTER_POLL_MISFIT);
    if (is_own) // its scheduler may have the thread's stack for its own
        moment->polled.poll = NULL;
    if (is_own || result == GP_POLL_NOBODY)
        return;
    moment->coro = thread->root;
    moment->coro_id = thread->root_id;
    moment->outside = moment->misfit;
}

// What is known to be mapped of the stack: [*lo, moment->hi).
static void find_bounds(gp_thread_t *thread, moment_t *moment, uintptr_t *lo)
{
    prof_coro_t *coro = moment->coro;
    *lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    moment->hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
    if (moment->hi == *lo) { // shares the thread's stack
        *lo = atomic_load_explicit(&thread->root->lo, memory_order_relaxed);
        moment->hi = atomic_load_explicit(&thread->root->hi, memory_order_relaxed);
    }
    if (moment->polled.poll != NULL) {
        *lo = moment->polled.lo;
        moment->hi = moment->polled.hi;
    } else if (moment->outside || moment->hi <= moment->sp) {
        // The page that the stack pointer is on.
        *lo = moment->sp & ~(uintptr_t)4095;
        moment->hi = (moment->sp | 4095u) + 1;
        if (!moment->misfit)
            gp_thread_count(thread, GP_COUNTER_OUTSIDE);
    }
}

static void find_stack(gp_thread_t *thread, moment_t *moment)
{
    uintptr_t lo;
    moment->coro = gp_thread_coro_at(thread, moment->sp, &moment->coro_id, &moment->outside);
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    prof_coro_t *unreported = language != NULL ? language->unreported(&moment->coro_id) : NULL;
    if (unreported != NULL) {
        moment->coro = unreported;
        moment->unreported = !atomic_load_explicit(&gp_language_reads, memory_order_relaxed);
    }
    ask_runtime(thread, moment);
    find_bounds(thread, moment, &lo);
    // In an epilogue, the rows say that a register already popped is where it was: below the stack pointer. It still
    // is.
    moment->lo = moment->sp - lo > POPPED_BYTES ? moment->sp - POPPED_BYTES : lo;
}

// Bring the accounts up to now, unless the interrupted thread is doing so.
static void account(gp_thread_t *thread, moment_t *moment)
{
    uint64_t start = atomic_load_explicit(&thread->slice_start, memory_order_relaxed);
    prof_coro_t *hint = atomic_load_explicit(&thread->current, memory_order_relaxed);
    bool fresh = moment->now - start < gp_slice_window_ticks;
    moment->in_window = fresh || moment->misfit || (hint != NULL && hint != moment->coro);
    if (atomic_load_explicit(&thread->busy, memory_order_relaxed)) {
        moment->in_window = true;
        return;
    }
    gp_slice_begin(thread, moment->sp);
    hint = atomic_load_explicit(&thread->current, memory_order_relaxed);
    if (hint != moment->coro && !fresh && !moment->outside && !moment->unreported) {
        // The hint is old: a switch that no hook saw.
        gp_slice_correct(thread, moment->coro, moment->coro_id, moment->now, moment->cpu_ns);
    }
    moment->off_ns = gp_slice_settle(thread, moment->now, moment->cpu_ns);
}

static void read_trace(prof_coro_t *coro, uint64_t trace[2])
{
    // The writer is this very thread, interrupted: an odd sequence means that it was about to change the id, and what
    // is there may be torn. Its birth id would be wrong, none is honest.
    uint32_t before = atomic_load_explicit(&coro->trace_seq, memory_order_acquire);
    trace[0] = atomic_load_explicit(&coro->trace[0], memory_order_relaxed);
    trace[1] = atomic_load_explicit(&coro->trace[1], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if ((before & 1) || atomic_load_explicit(&coro->trace_seq, memory_order_relaxed) != before)
        trace[0] = trace[1] = 0;
}

// Frames of a language runtime, where its code is on this stack.
static size_t walk_language(gp_thread_t *thread, const moment_t *moment, uintptr_t pc, unsigned *flags)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    if (language == NULL)
        return 0;
    gp_language_place_t place = {.pc = pc, .sp = moment->sp, .stack_hi = moment->hi};
    return language->walk(&place, thread->language_frames,
                          atomic_load_explicit(&gp_handler_depth, memory_order_relaxed), flags);
}

// Put the language's frames where the native frames of its interpreter's loop are.
static size_t mix(gp_thread_t *thread, size_t native, size_t of_language)
{
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    size_t max = atomic_load_explicit(&gp_handler_depth, memory_order_relaxed), depth = 0, at = 0;
    for (size_t i = 0; i < native && depth < max; i++) {
        if (!language->is_loop(thread->frames[i])) {
            thread->mixed_frames[depth++] = thread->frames[i];
            continue;
        }
        for (bool entry = false; !entry && at < of_language && depth < max; at++) {
            entry = thread->language_frames[at] & GP_LANGUAGE_ENTRY;
            thread->mixed_frames[depth++] = thread->language_frames[at];
        }
    }
    while (at < of_language && depth < max) // the native walk ended early
        thread->mixed_frames[depth++] = thread->language_frames[at++];
    return depth;
}

static size_t walk(gp_thread_t *thread, moment_t *moment, const ucontext_t *context, unsigned *flags)
{
    gp_unwind_regs_t registers;
    gp_unwind_regs_from_ucontext(&registers, thread->registers, context);
    *flags = 0;
    size_t depth = walk_language(thread, moment, registers.pc, flags), of_language = depth;
    bool is_native = atomic_load_explicit(&gp_handler_native, memory_order_relaxed) != 0;
    bool mixed = of_language > 0 && is_native && !(*flags & GP_UNWIND_TRUNCATED);
    moment->frames = mixed ? thread->mixed_frames : of_language > 0 ? thread->language_frames : thread->frames;
    if (of_language == 0 || mixed)
        depth = gp_unwind_walk(&registers, moment->lo, moment->hi, thread->frames,
                               atomic_load_explicit(&gp_handler_depth, memory_order_relaxed), flags);
    if (mixed)
        depth = mix(thread, depth, of_language);
    if ((*flags & GP_UNWIND_INCOMPLETE) && depth <= 1 && moment->in_window) {
        *flags |= GP_SAMPLE_SWITCHING;
        gp_thread_count(thread, GP_COUNTER_SWITCHING);
    } else if (*flags & GP_UNWIND_INCOMPLETE) {
        gp_thread_count(thread, GP_COUNTER_INCOMPLETE);
    }
    if (*flags & GP_UNWIND_TRUNCATED)
        gp_thread_count(thread, GP_COUNTER_TRUNCATED);
    if (moment->outside)
        *flags |= GP_SAMPLE_OUTSIDE | (moment->misfit ? GP_SAMPLE_MISFIT : 0u);
    if (moment->polled.poll != NULL)
        *flags |= GP_SAMPLE_POLLED;
    return depth;
}

// In debug builds: the handler must fit on the smallest alternate stack that a host may have given the thread.
static void check_stack_use(uintptr_t entry)
{
#ifndef NDEBUG
    if (entry - (uintptr_t)__builtin_frame_address(0) > HANDLER_BYTES_MAX)
        __builtin_trap();
#else
    (void)entry;
#endif
}

static void record(gp_thread_t *thread, moment_t *moment, const ucontext_t *context, uint64_t weight_ns)
{
    unsigned flags;
    size_t depth = walk(thread, moment, context, &flags);
    check_stack_use(moment->entry);
    size_t words = depth + (moment->polled.poll != NULL ? GP_POLL_ANSWER_WORDS : moment->outside ? 1 : 0);
    gp_sample_t *sample = gp_ring_reserve(&thread->ring, (uint32_t)(sizeof(gp_sample_t) + words * sizeof(uintptr_t)));
    if (sample == NULL) {
        gp_thread_count(thread, GP_COUNTER_DROP_RING_FULL);
        return;
    }
    thread->sample_cpu_ns = moment->cpu_ns;
    sample->ticks = moment->now;
    sample->weight_ns = weight_ns;
    sample->off_ns = moment->off_ns;
    sample->slice = gp_edge_load(&moment->coro->since);
    sample->coro = moment->coro;
    sample->coro_id = moment->coro_id;
    read_trace(moment->coro, sample->trace);
    gp_scope_t *scope = atomic_load_explicit(&moment->coro->scope, memory_order_acquire);
    sample->scope = scope != NULL ? scope->index : 0;
    sample->flags = flags;
    sample->depth = depth;
    memcpy(sample->frames, moment->frames, depth * sizeof(uintptr_t));
    if (moment->polled.poll != NULL)
        memcpy(&sample->frames[depth], &moment->polled, sizeof(moment->polled));
    else if (moment->outside)
        sample->frames[depth] = moment->sp;
    gp_ring_commit(sample, GP_RING_SAMPLE);
    gp_thread_count(thread, GP_COUNTER_SAMPLES);
    if ((moment->outside && !moment->misfit) || gp_ring_fill(&thread->ring) > thread->ring.capacity / 2)
        gp_handler_kick(); // an unknown stack is better known soon
}

static void take_sample(gp_thread_t *thread, ucontext_t *context)
{
    moment_t moment = {
        .entry = thread->handler_entry, .now = gp_ticks(), .cpu_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    uint64_t weight_ns = moment.cpu_ns - thread->sample_cpu_ns;
    if (moment.cpu_ns <= thread->sample_cpu_ns || weight_ns * 16 < thread->timer.period_ns) {
        // A wall-clock timer on a thread that hardly ran: too little to be worth a walk. The time is not lost, it is in
        // the weight of the next sample.
        gp_thread_count(thread, GP_COUNTER_DROP_IDLE);
        return;
    }
    gp_unwind_regs_t registers;
    gp_unwind_regs_from_ucontext(&registers, thread->registers, context);
    moment.sp = registers.sp;
    if (atomic_load_explicit(&thread->on_spare_stack, memory_order_relaxed)) {
        stay_on_spare_stack(thread, &moment);
    } else {
        find_stack(thread, &moment);
        account(thread, &moment);
    }
    record(thread, &moment, context, weight_ns);
}

static void handle(gp_thread_t *thread, siginfo_t *info, ucontext_t *context)
{
    const gp_clock_engine_t *engine = atomic_load_explicit(&gp_handler_engine, memory_order_acquire);
    gp_thread_count(thread, GP_COUNTER_SIGNALS);
    if (!atomic_load_explicit(&gp_handler_sampling, memory_order_acquire)) {
        gp_thread_count(thread, GP_COUNTER_DROP_IDLE);
    } else if (engine == NULL || !engine->is_mine(&thread->timer, info)) {
        gp_thread_count(thread, GP_COUNTER_DROP_FOREIGN);
    } else if (engine->is_late != NULL && engine->is_late(&thread->timer, context)) {
        gp_thread_count(thread, GP_COUNTER_DROP_IDLE); // its time is in the weight of the next sample
        gp_timer_tick(&thread->timer, engine);
    } else {
        take_sample(thread, context);
        gp_timer_tick(&thread->timer, engine);
    }
}

// Whatever became of a timer's signal, the program must not see it.
static void restart(const siginfo_t *info, ucontext_t *context)
{
    if (info->si_code > 0 || info->si_code == SI_TIMER)
        gp_restart_call(context);
}

static bool is_census(const siginfo_t *info)
{
    if (info->si_code != SI_QUEUE || (uintptr_t)info->si_value.sival_ptr >> 32 != GP_CENSUS_MAGIC)
        return false;
    atomic_store_explicit(&gp_handler_census, (uintptr_t)info->si_value.sival_ptr, memory_order_release);
    gp_handler_kick();
    return true;
}

void gp_handler(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    int saved_errno = errno;
    gp_thread_t *thread = gp_thread_self;
    if (is_census(info)) {
        errno = saved_errno;
        return;
    }
    if (thread == NULL)
        thread = adopt(context);
    if (thread == NULL) {
        atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_SIGNALS], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_DROP_NO_THREAD], 1, memory_order_relaxed);
    } else if (atomic_exchange_explicit(&thread->in_handler, true, memory_order_relaxed)) {
        gp_thread_count(thread, GP_COUNTER_SIGNALS);
        gp_thread_count(thread, GP_COUNTER_DROP_REENTERED);
    } else {
        thread->handler_entry = (uintptr_t)__builtin_frame_address(0);
        handle(thread, info, context);
        atomic_store_explicit(&thread->in_handler, false, memory_order_relaxed);
    }
    restart(info, context);
    errno = saved_errno;
}
