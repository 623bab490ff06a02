// SPDX-License-Identifier: MIT
#include "collect/waiting_stack.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/peek.h"
#include "collect/ring_drain.h"
#include "coro/registry.h"
#include "signal/language.h"
#include "signal/ledger_edges.h"
#include "signal/scope_record.h"

enum { COPY_BYTES = 256 << 10 }; // of a deeper stack the outermost frames are missing

static uintptr_t copy[COPY_BYTES / sizeof(uintptr_t)];

typedef struct wait { // as it was found
    uint64_t id, since;
    uintptr_t lo, hi, object;
    gp_unwind_regs_t regs;
} wait_t;

static bool waiting_stack_find_wait(prof_coro_t *coro, wait_t *wait)
{
    // Acquire: partner of the release in gp_ledger_edge_leave(): what it left is complete.
    bool running = atomic_load_explicit(&coro->running, memory_order_acquire) != 0;
    wait->id = atomic_load_explicit(&coro->id, memory_order_acquire);
    wait->since = gp_ledger_edge_load(&coro->since);
    wait->lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    wait->hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
    wait->object = gp_coro_rare(coro)->object;
    wait->regs = (gp_unwind_regs_t){
        .pc = atomic_load_explicit(&coro->park_pc, memory_order_relaxed),
        .sp = atomic_load_explicit(&coro->park_sp, memory_order_relaxed),
        .fp = atomic_load_explicit(&coro->park_fp, memory_order_relaxed),
    };
    bool current = gp_ledger_edge_is_current(coro);
    if (!current)
        wait->regs.pc = 0; // left there while nothing sampled
    return wait->id != 0 && !(running && current) && !gp_ledger_edge_is_over(coro);
}

static bool waiting_stack_is_unchanged(prof_coro_t *coro, const wait_t *wait)
{
    atomic_thread_fence(memory_order_acquire);
    return gp_ledger_edge_load(&coro->since) == wait->since && gp_ledger_edge_load(&coro->id) == wait->id &&
           atomic_load_explicit(&coro->park_sp, memory_order_relaxed) == wait->regs.sp;
}

// Copy [sp, hi), as far as there is room, and make what points into it point into the copy. Returns the bytes copied.
static size_t waiting_stack_copy_stack(uintptr_t sp, uintptr_t hi)
{
    size_t length = hi - sp < COPY_BYTES ? hi - sp : COPY_BYTES;
    if (!gp_peek(sp, copy, length))
        return 0;
    uintptr_t move = (uintptr_t)copy - sp;
    for (size_t i = 0; i < length / sizeof(copy[0]); i++)
        if (copy[i] >= sp && copy[i] < hi)
            copy[i] += move;
    return length;
}

typedef struct copied { // and what walking it gives
    gp_unwind_regs_t regs;
    uintptr_t hi, *frames;
    size_t max, depth;
    unsigned *flags;
    bool exact;
} copied_t;

static int waiting_stack_walk_copy(struct dl_phdr_info *info, size_t size, void *argument)
{
    copied_t *it = argument;
    (void)info;
    (void)size;
    it->depth = (it->exact ? gp_unwind_walk : gp_unwind_walk_parked)(&it->regs, (uintptr_t)copy, it->hi, it->frames,
                                                                     it->max, it->flags);
    return 1;
}

size_t gp_waiting_stack_walk_from(const gp_unwind_regs_t *regs, bool exact, uintptr_t hi, uintptr_t *frames, size_t max,
                                  unsigned *flags)
{
    *flags = 0;
    size_t length = waiting_stack_copy_stack(regs->sp, hi);
    if (length == 0)
        return 0;
    copied_t copied = {.regs = {.pc = regs->pc, .sp = (uintptr_t)copy, .fp = regs->fp},
                       .hi = (uintptr_t)copy + length,
                       .frames = frames,
                       .max = max,
                       .flags = flags,
                       .exact = exact};
    if (regs->fp >= regs->sp && regs->fp < hi)
        copied.regs.fp += (uintptr_t)copy - regs->sp;
    // Nothing of the program's holds the modules that a stack leads into: its coroutine may be forsaken, and they be on
    // their way out. The loader unmaps none while its list is read. Source: glibc 2.36, elf/dl-close.c.
    dl_iterate_phdr(waiting_stack_walk_copy, &copied);
    return copied.depth;
}

enum stack_state { STACK_KEPT, STACK_OVERWRITTEN, STACK_UNMAPPED };

static bool waiting_stack_is_of_stubs(prof_coro_t *coro)
{
    return atomic_load_explicit(&coro->owner, memory_order_relaxed) == GP_OWNER_STUBS;
}

// Is the stack of a waiting coroutine as it left it?
static enum stack_state waiting_stack_look_at_stack(prof_coro_t *coro, const wait_t *wait)
{
    uintptr_t word = 0, at = wait->hi - sizeof(word);
    bool knows_place = wait->regs.pc != 0 && wait->regs.sp > wait->lo && wait->regs.sp < wait->hi;
    if (knows_place)
        at = wait->regs.sp - sizeof(word);
    if (!gp_peek(at, &word, sizeof(word))) // or the kernel lets no memory be read at all
        return gp_peek((uintptr_t)&at, &word, sizeof(word)) ? STACK_UNMAPPED : STACK_KEPT;
    if (GP_ARCH_PC_BELOW_STACK && knows_place && waiting_stack_is_of_stubs(coro) && word != wait->regs.pc)
        return STACK_OVERWRITTEN;
    return STACK_KEPT;
}

bool gp_waiting_stack_is_forsaken(prof_coro_t *coro, bool may_retire)
{
    wait_t wait;
    bool can_be = coro->kind == GP_CORO_ANNOUNCED || coro->kind == GP_CORO_FOUND;
    if (!can_be || coro->shares_stack || !waiting_stack_find_wait(coro, &wait))
        return false;
    bool has_stack = wait.lo != wait.hi;
    bool (*is_gone)(const prof_coro_t *) = atomic_load_explicit(&gp_coro_rare(coro)->is_gone, memory_order_acquire);
    enum stack_state state = has_stack ? waiting_stack_look_at_stack(coro, &wait) : STACK_KEPT;
    bool is_over = state != STACK_KEPT || (!has_stack && is_gone != NULL && is_gone(coro));
    if (!is_over || !waiting_stack_is_unchanged(coro, &wait))
        return false;
    if (may_retire && (!has_stack || (state == STACK_UNMAPPED && waiting_stack_is_of_stubs(coro))))
        gp_coro_abandon(coro, wait.id);
    else
        gp_coro_forsake(coro, wait.id);
    return true;
}

static int waiting_stack_walk_wait(prof_coro_t *coro, const wait_t *wait, uintptr_t *frames, size_t max,
                                   unsigned *flags)
{
    size_t depth = 0;
    *flags = 0;
    gp_kept_frames_t *kept = atomic_load_explicit(&gp_coro_rare(coro)->kept_frames, memory_order_acquire);
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    if (wait->regs.pc != 0 && wait->regs.sp >= wait->lo && wait->regs.sp < wait->hi)
        depth = gp_waiting_stack_walk_from(&wait->regs, false, wait->hi, frames, max, flags);
    else if (kept != NULL)
        depth = kept(coro, frames, max);
    else if (wait->object != 0 && language != NULL)
        depth = language->walk_parked(wait->object, frames, max, flags);
    if (depth == 0 && gp_ledger_edge_is_new(coro))
        depth = gp_sample_not_started(coro, frames, flags);
    return waiting_stack_is_unchanged(coro, wait) ? (int)depth : -EAGAIN;
}

int gp_waiting_stack_walk(prof_coro_t *coro, uintptr_t *frames, size_t max, unsigned *flags)
{
    wait_t wait;
    return waiting_stack_find_wait(coro, &wait) ? waiting_stack_walk_wait(coro, &wait, frames, max, flags) : -EAGAIN;
}

void gp_waiting_stack_trace(prof_coro_t *coro, uint64_t trace[2])
{
    for (int i = 0; i < 2; i++)
        trace[i] = atomic_load_explicit(&gp_coro_context(coro)->trace[i], memory_order_relaxed);
}

uint32_t gp_waiting_stack_scope(prof_coro_t *coro)
{
    gp_lock(&gp_registry_lock);
    gp_scope_t *scope = atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_relaxed);
    uint32_t index = scope != NULL ? scope->index : 0;
    gp_unlock(&gp_registry_lock);
    return index;
}

static void waiting_stack_fill(gp_sample_t *sample, prof_coro_t *coro, uint64_t from, uint64_t now)
{
    uint64_t ready = gp_ledger_edge_ready(coro);
    ready = ready == 0 || ready > from ? ready : from;
    sample->ticks = now;
    sample->slice = from;
    sample->weight_ns = gp_ticks_to_ns(now - from);
    sample->off_ns = ready != 0 && now > ready ? gp_ticks_to_ns(now - ready) : 0;
    sample->coro = coro;
    gp_waiting_stack_trace(coro, sample->trace);
    sample->scope = gp_waiting_stack_scope(coro);
    sample->flags |= ready == 0 && !gp_ledger_edge_is_reported(coro) ? GP_SAMPLE_BLIND : 0;
}

void gp_waiting_stack_take(prof_coro_t *coro, uint64_t least_ticks)
{
    static gp_sample_buffer_t buffer; // guarded by the drain lock
    wait_t wait;
    unsigned flags;
    if (coro->kind == GP_CORO_THREAD || gp_ledger_edge_load(&gp_ledger_edge_epoch_over) != UINT64_MAX ||
        !waiting_stack_find_wait(coro, &wait))
        return; // what it does while nothing samples is not known
    uint64_t now = gp_ticks(), from = gp_ledger_edge_load(&coro->unsampled_from),
             start = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    uint64_t begin = from > start ? from : start;
    if (from == UINT64_MAX || now <= begin || now - begin < least_ticks)
        return;
    int depth = waiting_stack_walk_wait(coro, &wait, buffer.sample.frames, GP_UNWIND_DEPTH_DEFAULT, &flags);
    if (depth < 0)
        return;
    buffer.sample = (gp_sample_t){.coro_id = wait.id, .depth = (uint64_t)depth, .flags = flags};
    waiting_stack_fill(&buffer.sample, coro, begin, now);
    // Exchange: the thread that resumes it may be about to take the wait as a whole (gp_wait_samples_over()).
    if (atomic_compare_exchange_strong_explicit(&coro->unsampled_from, &from, now, memory_order_acq_rel,
                                                memory_order_relaxed))
        gp_ring_drain_take_wait(NULL, &buffer.sample);
}
