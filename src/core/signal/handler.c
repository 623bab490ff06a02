// SPDX-License-Identifier: MIT
#include "signal/handler.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/copy_words.h"
#include "signal/held_back.h"
#include "signal/host_stack.h"
#include "signal/language.h"
#include "signal/more_stack.h"
#include "signal/poll.h"
#include "signal/region.h"
#include "signal/restart.h"
#include "signal/sample.h"
#include "signal/scope_record.h"
#include "signal/slice.h"
#include "signal/spare_stack.h"
#include "signal/transfer.h"

_Atomic bool gp_handler_sampling;
_Atomic unsigned gp_handler_depth = GP_UNWIND_DEPTH_DEFAULT;
_Atomic int gp_handler_native;
_Atomic uintptr_t gp_handler_own_code, gp_handler_own_bytes;
_Atomic uint64_t gp_handler_census;
_Atomic bool gp_more_stack_of_go;
void (*gp_handler_kick)(void);

enum {
    HANDLER_STACK_BYTES = 8 << 10, // the walk, reading of new rows, and calls to be made again included
    HANDLER_BYTES_MAX = 2048,      // above the walk, which is limited by its own test
    PAGE = 4096,
    POPPED_BYTES = 512,            // more than an epilogue pops, and than a row reaches below where its frame ends
    MORE_BYTES = 64 << 20,         // of a stack whose end is not known
    GUESSED_STACK_BYTES = 8 << 20, // of a thread that was found, not created under our eyes: glibc's default
    DOUBTED_NS = 50000,            // a handler that takes longer was preempted, as a rule
};

typedef struct found { // what one signal found
    gp_unwind_regs_t registers;
    prof_coro_t *coro;
    uint64_t coro_id;
    uintptr_t entry; // where the handler's stack begins
    uint64_t now, cpu_ns;
    uintptr_t at;            // the last byte below the stack pointer: one at the end of an empty stack is on it
    uintptr_t lo, hi;        // the stack that the stack pointer is on
    uint64_t held_ns;        // of the time since the sample before, what is not this place's: held_back.h
    uint64_t off_ns;         // preempted since the last coarse point of the same slice
    const uintptr_t *frames; // its stack
    bool outside;
    bool on_more;    // on a stack of the thread's beside its own
    bool unreported; // coroutines share this stack, and the switch to this one has not reached the hook yet
    bool in_window;  // the switch hook ran a moment ago, or hook and stack pointer disagree
    bool misfit;     // so do the runtime that is polled and the stack pointer
    gp_poll_answer_t polled;
} found_t;

// A thread older than sampling: others made its block, and it learns of the block here. Its alternate stack is put into
// the context that the kernel restores on return.
//   roomy: set to whether the handler is on such a stack already; else it is on the thread's, which may be small.
static gp_thread_t *handler_adopt(ucontext_t *context, bool *roomy)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);
    gp_thread_t *thread = gp_thread_find(tid);
    if (thread == NULL)
        return NULL;
    if (context->uc_stack.ss_flags & SS_DISABLE) {
        context->uc_stack = thread->alternate_stack;
        context->uc_stack.ss_flags = 0;
        *roomy = false;
    }
    // Its stack could not be asked for: the thread's descriptor lies at the top of it, but for the main thread's.
    if (thread->root->hi == 0 && tid != getpid()) {
        uintptr_t top = (uintptr_t)__builtin_thread_pointer();
        atomic_store_explicit(&thread->root->lo, top - GUESSED_STACK_BYTES, memory_order_relaxed);
        atomic_store_explicit(&thread->root->hi, top, memory_order_relaxed);
        gp_slice_nest();
    }
    thread->adopted = true;
    gp_thread_self = thread;
    return thread;
}

// Ask the runtime, where no hook has announced this stack. The time of its coroutines is the thread's until the
// collector has sorted it out.
static void handler_ask_runtime(gp_thread_t *thread, found_t *found)
{
    bool is_own = found->coro == thread->root && !found->outside;
    if (found->coro->kind == GP_CORO_ANNOUNCED)
        return;
    enum gp_poll_result result = gp_poll_ask(found->at, &found->polled);
    found->misfit = result == GP_POLL_MISFIT || (result == GP_POLL_STACKLESS && !is_own);
    if (found->misfit)
        gp_thread_count(thread, GP_COUNTER_POLL_MISFIT);
    if (is_own) // its scheduler may have the thread's stack for its own
        found->polled.poll = NULL;
    if (is_own || result == GP_POLL_NOBODY)
        return;
    found->coro = thread->root;
    found->coro_id = thread->root_id;
    found->outside = found->misfit;
}

// The stack [*lo, found->hi), and whether it is there. The owner of a thread's stack, or of one that the program has
// announced itself, says when it goes; what else is known of stacks is how they once were.
static void handler_find_bounds(gp_thread_t *thread, found_t *found, uintptr_t *lo)
{
    prof_coro_t *coro = found->coro;
    *lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    found->hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
    if (found->hi == *lo) { // shares the thread's stack
        *lo = atomic_load_explicit(&thread->root->lo, memory_order_relaxed);
        found->hi = atomic_load_explicit(&thread->root->hi, memory_order_relaxed);
        coro = thread->root;
    }
    found->registers.doubt = coro->keeps_stack ? GP_UNWIND_SURE : GP_UNWIND_DOUBTS;
    found->registers.in_pieces = found->on_more;
    if (found->on_more) { // mostly mapped later than the thread's own, and so below it; the walk sees to others
        *lo = found->at & ~(uintptr_t)(PAGE - 1);
        found->hi = found->at < found->hi ? found->hi : *lo + MORE_BYTES;
        found->registers.doubt = GP_UNWIND_DOUBTS;
    }
    if (found->polled.poll != NULL) {
        *lo = found->polled.lo;
        found->hi = found->polled.hi;
        found->registers.doubt = GP_UNWIND_DOUBTS;
    } else if (found->outside || found->hi <= found->at) {
        // The page that the stack pointer is on, or at the end of.
        *lo = found->at & ~(uintptr_t)(PAGE - 1);
        found->hi = *lo + PAGE;
        found->registers.doubt = GP_UNWIND_DOUBTS_ALL;
        if (!found->misfit)
            gp_thread_count(thread, GP_COUNTER_OUTSIDE);
    }
}

static void handler_find_stack(gp_thread_t *thread, found_t *found)
{
    uintptr_t lo;
    found->coro = gp_thread_coro_at(thread, found->at, &found->coro_id, &found->outside);
    found->on_more = found->outside && gp_more_stack_at(found->at);
    found->outside = found->outside && !found->on_more;
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    prof_coro_t *unreported = language != NULL ? language->unreported(&found->coro_id) : NULL;
    if (unreported != NULL) {
        found->coro = unreported;
        found->unreported = !gp_language_is_read();
    }
    handler_ask_runtime(thread, found);
    handler_find_bounds(thread, found, &lo);
    // In an epilogue, the rows still place a register already popped where it was: below the stack pointer.
    found->lo = found->registers.sp - lo > POPPED_BYTES ? found->registers.sp - POPPED_BYTES : lo;
}

// Bring the accounts up to now, unless the interrupted thread is doing so.
static void handler_account(gp_thread_t *thread, found_t *found)
{
    uint64_t start = atomic_load_explicit(&thread->slice_start, memory_order_relaxed);
    prof_coro_t *hint = atomic_load_explicit(&thread->current, memory_order_relaxed);
    bool fresh = found->now - start < gp_slice_window_ticks;
    found->in_window = fresh || found->misfit || (hint != NULL && hint != found->coro);
    if (atomic_load_explicit(&thread->busy, memory_order_relaxed)) {
        found->in_window = true;
        return;
    }
    gp_slice_begin(thread, found->at);
    hint = atomic_load_explicit(&thread->current, memory_order_relaxed);
    if (hint != found->coro && !fresh && !found->outside && !found->unreported) {
        // The hint is old: a switch that no hook saw.
        gp_slice_correct(thread, found->coro, found->coro_id, found->now, found->cpu_ns);
    }
    found->off_ns = gp_slice_settle(thread, found->now, found->cpu_ns);
}

static void handler_read_trace(prof_coro_t *coro, uint64_t trace[2])
{
    // The writer is this very thread, interrupted: an odd sequence means that it was about to change the id, and what
    // is there may be torn. Its birth id would be wrong, none is honest.
    uint32_t before = atomic_load_explicit(&gp_coro_context(coro)->trace_seq, memory_order_acquire);
    trace[0] = atomic_load_explicit(&gp_coro_context(coro)->trace[0], memory_order_relaxed);
    trace[1] = atomic_load_explicit(&gp_coro_context(coro)->trace[1], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if ((before & 1) || atomic_load_explicit(&gp_coro_context(coro)->trace_seq, memory_order_relaxed) != before)
        trace[0] = trace[1] = 0;
}

// Frames of a language runtime, where its code is on this stack.
static size_t handler_walk_language(gp_thread_t *thread, const found_t *found, unsigned *flags)
{
    const gp_language_t *language = atomic_load_explicit(&gp_languages, memory_order_acquire);
    if (language == NULL)
        return 0;
    gp_language_place_t place = {.pc = found->registers.pc,
                                 .sp = found->registers.sp,
                                 .stack_hi = found->hi,
                                 .in_doubt = found->registers.doubt != GP_UNWIND_SURE,
                                 .gp = found->registers.gp};
    size_t depth = 0, max = atomic_load_explicit(&gp_handler_depth, memory_order_relaxed);
    for (; language != NULL && depth == 0; language = atomic_load_explicit(&language->next, memory_order_acquire))
        depth = language->walk(&place, thread->language_frames, max, flags);
    return depth;
}

// By how many the loops of the native walk are more than the runs of the language's frames: one is being entered, or
// left.
static ptrdiff_t handler_odd_loops(const gp_thread_t *thread, const gp_language_t *language, size_t native,
                                   size_t of_language)
{
    ptrdiff_t odd = 0;
    for (size_t i = 0; i < native; i++)
        odd += language->is_loop(thread->frames[i]);
    for (size_t i = 0; i < of_language; i++)
        odd -= (thread->language_frames[i] & GP_LANGUAGE_ENTRY) != 0;
    return odd;
}

// Put the language's frames where the native frames of its interpreter's loop are.
static size_t handler_mix(gp_thread_t *thread, size_t native, size_t of_language, bool is_whole)
{
    const gp_language_t *language = gp_language_of(gp_language_number(thread->language_frames[0]));
    size_t max = atomic_load_explicit(&gp_handler_depth, memory_order_relaxed), depth = 0, at = 0;
    bool may_be_odd = is_whole && language->is_own != NULL;
    ptrdiff_t odd = may_be_odd ? handler_odd_loops(thread, language, native, of_language) : 0;
    for (size_t i = 0; i < native && depth < max; i++) {
        bool is_loop = language->is_loop(thread->frames[i]);
        if (!is_loop && (language->is_own == NULL || !language->is_own(thread->frames[i])))
            thread->mixed_frames[depth++] = thread->frames[i];
        if (!is_loop || odd > 0) {
            odd -= is_loop;
            continue;
        }
        for (bool entry = false; !entry && at < of_language && depth < max; at++) {
            entry = thread->language_frames[at] & GP_LANGUAGE_ENTRY;
            thread->mixed_frames[depth++] = thread->language_frames[at];
            if (entry && odd < 0) {
                odd++;
                entry = false;
            }
        }
    }
    while (at < of_language && depth < max) // the native walk ended early
        thread->mixed_frames[depth++] = thread->language_frames[at++];
    return depth;
}

static unsigned handler_flags(const found_t *found)
{
    unsigned outside = found->outside ? GP_SAMPLE_OUTSIDE | (found->misfit ? GP_SAMPLE_MISFIT : 0u) : 0;
    return outside | (found->polled.poll != NULL ? GP_SAMPLE_POLLED : 0u) |
           (found->unreported ? GP_SAMPLE_UNREPORTED : 0u);
}

// Where the time went is not known. The next interval begins here, not where the last one ended.
static size_t handler_hold_back(gp_thread_t *thread, found_t *found, unsigned *flags)
{
    *flags = GP_SAMPLE_HELD_BACK | handler_flags(found);
    found->frames = thread->frames;
    gp_thread_count(thread, GP_COUNTER_HELD_BACK);
    thread->timer.block_left = 0;
    return 0;
}

static size_t handler_walk(gp_thread_t *thread, found_t *found, unsigned *flags)
{
    *flags = 0;
    size_t depth = handler_walk_language(thread, found, flags), of_language = depth;
    bool is_native = atomic_load_explicit(&gp_handler_native, memory_order_relaxed) != 0;
    bool mixed = of_language > 0 && is_native && !(*flags & GP_UNWIND_TRUNCATED);
    found->frames = mixed ? thread->mixed_frames : of_language > 0 ? thread->language_frames : thread->frames;
    if (of_language == 0 || mixed)
        depth = gp_unwind_walk(&found->registers, found->lo, found->hi, thread->frames,
                               atomic_load_explicit(&gp_handler_depth, memory_order_relaxed), flags);
    if (mixed)
        depth = handler_mix(thread, depth, of_language, !(*flags & (GP_UNWIND_INCOMPLETE | GP_UNWIND_TRUNCATED)));
    if ((*flags & GP_UNWIND_INCOMPLETE) && depth <= 1 && found->in_window) {
        *flags |= GP_SAMPLE_SWITCHING;
        gp_thread_count(thread, GP_COUNTER_SWITCHING);
    } else if (*flags & GP_UNWIND_INCOMPLETE) {
        gp_thread_count(thread, GP_COUNTER_INCOMPLETE);
    }
    if (*flags & GP_UNWIND_TRUNCATED)
        gp_thread_count(thread, GP_COUNTER_TRUNCATED);
    *flags |= handler_flags(found);
    return depth;
}

// In debug builds: the handler must fit on the smallest alternate stack that a host may have given the thread.
static void handler_check_stack_use(uintptr_t entry)
{
#ifndef NDEBUG
    if (entry - (uintptr_t)__builtin_frame_address(0) > HANDLER_BYTES_MAX)
        __builtin_trap();
#else
    (void)entry;
#endif
}

static void handler_record(gp_thread_t *thread, found_t *found, uint64_t weight_ns)
{
    unsigned flags;
    size_t depth = found->held_ns != 0 ? handler_hold_back(thread, found, &flags) : handler_walk(thread, found, &flags);
    handler_check_stack_use(found->entry);
    size_t words = depth + (found->polled.poll != NULL ? GP_POLL_ANSWER_WORDS : found->outside ? 1 : 0);
    gp_sample_t *sample = gp_ring_reserve(&thread->ring, (uint32_t)(sizeof(gp_sample_t) + words * sizeof(uintptr_t)));
    if (sample == NULL) {
        gp_thread_count(thread, GP_COUNTER_DROP_RING_FULL);
        return;
    }
    thread->cpu.carried_ns = found->held_ns != 0 ? weight_ns - found->held_ns : 0;
    thread->cpu.sample_ns = found->cpu_ns - thread->cpu.carried_ns;
    sample->ticks = found->now;
    sample->weight_ns = weight_ns - thread->cpu.carried_ns;
    sample->off_ns = found->off_ns;
    sample->slice = gp_ledger_edge_load(&found->coro->since);
    sample->coro = found->coro;
    sample->coro_id = found->coro_id;
    handler_read_trace(found->coro, sample->trace);
    gp_scope_t *scope = atomic_load_explicit(&gp_coro_context(found->coro)->scope, memory_order_acquire);
    sample->scope = scope != NULL ? scope->index : 0;
    sample->flags = flags;
    sample->depth = depth;
    gp_copy_words(sample->frames, found->frames, depth * sizeof(uintptr_t));
    if (found->polled.poll != NULL)
        gp_copy_words(&sample->frames[depth], &found->polled, sizeof(found->polled));
    else if (found->outside)
        sample->frames[depth] = found->at;
    gp_thread_commit(thread, sample, GP_RING_SAMPLE);
    gp_thread_count(thread, GP_COUNTER_SAMPLES);
    if ((found->outside && !found->misfit) || gp_ring_is_pressed(&thread->ring))
        gp_handler_kick(); // an unknown stack is better known soon
}

// Charge this sample's cost. Ticks tell for next to nothing that it was cheap; otherwise the thread may just have been
// preempted, which only its CPU clock knows.
static void handler_charge(gp_thread_t *thread, const found_t *found)
{
    uint64_t cost_ns = gp_ticks_to_ns(gp_ticks() - found->now);
    if (gp_timer_is_costly(&thread->timer, cost_ns))
        cost_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - found->cpu_ns;
    gp_timer_charge(&thread->timer, cost_ns);
    if (atomic_load_explicit(&thread->timer.slowed_ns, memory_order_relaxed) != 0)
        gp_thread_count(thread, GP_COUNTER_SLOWED);
}

// Count the hooks' share of the program's threads (switches, spans and the like): by the samples that hit them.
static void handler_count_own(gp_thread_t *thread, uintptr_t pc, uint64_t weight_ns)
{
    uintptr_t bytes = atomic_load_explicit(&gp_handler_own_bytes, memory_order_relaxed);
    if (pc - atomic_load_explicit(&gp_handler_own_code, memory_order_relaxed) < bytes)
        gp_coro_add(&thread->counters[GP_COUNTER_HOOK_NS], weight_ns);
}

// Ask for what the sample will need while the kernel reads the clock: after a millisecond of the program's own work
// most of it is in no near cache.
static void handler_prefetch(gp_thread_t *thread, const gp_unwind_regs_t *registers)
{
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    unsigned char *record =
        (unsigned char *)gp_ring_at(&thread->ring, atomic_load_explicit(&thread->ring.head, memory_order_relaxed));
    __builtin_prefetch(record, 1);
    if (coro == NULL)
        return;
    for (size_t i = 0; i < 3; i++)
        __builtin_prefetch((unsigned char *)coro + i * 64, 1);
    __builtin_prefetch(gp_coro_context(coro));
    gp_unwind_prefetch(registers->pc, atomic_load_explicit(&coro->hi, memory_order_relaxed));
}

// begun: ticks as the handler began. Returns the thread's CPU clock then.
static uint64_t handler_take_sample(gp_thread_t *thread, int number, ucontext_t *context, uint64_t begun)
{
    found_t found = {.entry = thread->handler_entry, .now = begun};
    gp_unwind_regs_from_ucontext(&found.registers, thread->registers, context);
    gp_transfer_see_through(&found.registers, thread->registers);
    handler_prefetch(thread, &found.registers);
    found.cpu_ns = gp_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t weight_ns = found.cpu_ns - thread->cpu.sample_ns;
    gp_host_stack_come_back(thread, context, found.cpu_ns);
    if (found.cpu_ns <= thread->cpu.sample_ns || weight_ns * 16 < thread->timer.period_ns) {
        // A wall-clock timer on a thread that hardly ran: too little to be worth a walk. The time is not lost, it is in
        // the weight of the next sample.
        gp_thread_count(thread, GP_COUNTER_DROP_IDLE);
        return found.cpu_ns;
    }
    found.held_ns = gp_held_back_ns(thread, context, number, found.cpu_ns);
    thread->returned_to.pc = 0;
    found.at = found.registers.sp - 1;
    handler_find_stack(thread, &found);
    handler_account(thread, &found);
    if (found.held_ns == 0)
        handler_count_own(thread, found.registers.pc, weight_ns);
    handler_record(thread, &found, weight_ns);
    handler_charge(thread, &found);
    return found.cpu_ns;
}

// Count the handler's cost, the redraw of the interval included.
//   cpu_ns: of the thread's CPU clock as it began; 0 = it was not read.
static void handler_count_cost(gp_thread_t *thread, uint64_t begun, uint64_t cpu_ns)
{
    uint64_t cost_ns = gp_ticks_to_ns(gp_ticks() - begun);
    if (cost_ns > DOUBTED_NS)
        cost_ns = cpu_ns != 0 ? gp_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns : 0;
    gp_coro_add(&thread->counters[GP_COUNTER_HANDLER_NS], cost_ns);
}

static void handler_handle(gp_thread_t *thread, siginfo_t *info, ucontext_t *context, bool roomy)
{
    const gp_clock_engine_t *engine = atomic_load_explicit(&thread->timer.engine, memory_order_acquire);
    uint64_t begun = gp_ticks(), cpu_ns = 0;
    gp_thread_count(thread, GP_COUNTER_SIGNALS);
    if (!atomic_load_explicit(&gp_handler_sampling, memory_order_acquire)) {
        gp_thread_count(thread, GP_COUNTER_DROP_IDLE);
    } else if (engine == NULL || !engine->is_mine(&thread->timer, info)) {
        gp_thread_count(thread, GP_COUNTER_DROP_FOREIGN);
    } else if (!roomy || (engine->is_late != NULL && engine->is_late(&thread->timer, context))) {
        gp_thread_count(thread, GP_COUNTER_DROP_IDLE); // its time is in the weight of the next sample
        gp_timer_tick(&thread->timer, engine);
    } else {
        cpu_ns = handler_take_sample(thread, info->si_signo, context, begun);
        gp_timer_tick(&thread->timer, engine);
    }
    handler_count_cost(thread, begun, cpu_ns);
}

// Whatever became of a timer's signal, the program must not see it.
static void handler_restart(const siginfo_t *info, ucontext_t *context)
{
    if (info->si_code > 0 || info->si_code == SI_TIMER || gp_clock_lacks_info(info))
        gp_restart_call(context);
}

static bool handler_is_census(const siginfo_t *info)
{
    if (info->si_code != SI_QUEUE || (uintptr_t)info->si_value.sival_ptr >> 32 != GP_CENSUS_MAGIC)
        return false;
    atomic_store_explicit(&gp_handler_census, (uintptr_t)info->si_value.sival_ptr, memory_order_release);
    gp_handler_kick();
    return true;
}

// Is too little left of the alternate stack that is in use? The program's may be of 8 KiB, and a handler of its own may
// run on it; ours is large.
static bool handler_is_cramped(const ucontext_t *context)
{
    uintptr_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)context->uc_stack.ss_sp;
    return left < context->uc_stack.ss_size && left < HANDLER_STACK_BYTES;
}

// As little stack as can be.
__attribute__((noinline)) static void handler_pass(void)
{
    gp_thread_t *thread = gp_thread_self;
    _Atomic uint64_t *counters = thread != NULL ? thread->counters : gp_thread_orphan_counters;
    atomic_fetch_add_explicit(&counters[GP_COUNTER_SIGNALS], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counters[GP_COUNTER_DROP_CRAMPED], 1, memory_order_relaxed);
    const gp_clock_engine_t *engine =
        thread != NULL ? atomic_load_explicit(&thread->timer.engine, memory_order_acquire) : NULL;
    if (engine != NULL)
        gp_timer_tick(&thread->timer, engine);
}

__attribute__((noinline)) static void handler_run(siginfo_t *info, void *context)
{
    gp_thread_t *thread = gp_thread_self;
    if (handler_is_census(info))
        return;
    bool roomy = true;
    if (thread == NULL)
        thread = handler_adopt(context, &roomy);
    if (thread == NULL) {
        atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_SIGNALS], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_DROP_NO_THREAD], 1, memory_order_relaxed);
    } else if (atomic_exchange_explicit(&thread->in_handler, true, memory_order_relaxed)) {
        gp_thread_count(thread, GP_COUNTER_SIGNALS);
        gp_thread_count(thread, GP_COUNTER_DROP_REENTERED);
    } else {
        thread->handler_entry = (uintptr_t)__builtin_frame_address(0);
        handler_handle(thread, info, context, roomy);
        atomic_store_explicit(&thread->in_handler, false, memory_order_relaxed);
    }
    handler_restart(info, context);
}

typedef struct handler_call {
    siginfo_t *info;
    void *context;
} handler_call_t;

static void handler_run_call(void *argument)
{
    handler_call_t *call = argument;
    handler_run(call->info, call->context);
}

// Run on the thread's stack of ours: another one is in force, so nothing is on it. All signals are blocked until the
// handler has left the stack. Returns false where the thread is not known.
__attribute__((noinline)) static bool handler_run_elsewhere(siginfo_t *info, void *context)
{
    gp_thread_t *thread = gp_thread_self;
    if (thread == NULL)
        thread = gp_thread_find((pid_t)syscall(SYS_gettid));
    if (thread == NULL || atomic_load_explicit(&thread->in_handler, memory_order_relaxed))
        return false;
    handler_call_t call = {info, context};
    gp_arch_run_on((unsigned char *)thread->alternate_stack.ss_sp + thread->alternate_stack.ss_size, handler_run_call,
                   &call);
    return true;
}

// Emulators enter it with any stack pointer (QEMU 7.2's qemu-x86_64).
GP_ARCH_ALIGNS void gp_handler(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    int saved_errno = errno;
    if (!handler_is_cramped(context))
        handler_run(info, context);
    else if (!handler_run_elsewhere(info, context))
        handler_pass(); // its time is in the weight of the next sample
    errno = saved_errno;
}
