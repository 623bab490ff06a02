// SPDX-License-Identifier: MIT
// The switch hook and what can be asked about a coroutine from outside.
#include "coro/switch.h"
#include "coro/announce.h"

#include <errno.h>

#include "coro/coro_ledger.h"
#include "coro/otel_thread_context.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "signal/activity.h"
#include "signal/handler.h"
#include "signal/ledger_edges.h"
#include "signal/region.h"
#include "signal/slice_switch.h"

int prof_coro_active;
_Atomic bool gp_switch_meets_early;
_Atomic uint32_t gp_switch_special GP_SWITCH_WORD = GP_SWITCH_RESTS;

static inline gp_thread_t *switch_self(void)
{
    gp_thread_t *thread = gp_thread_self;
    return __builtin_expect(thread != NULL, 1) ? thread : gp_thread_attach();
}

// Any switch. now: what the clock said; 0 = it is not read yet. The rest is a gp_park_t, which would be in memory.
__attribute__((noinline, cold)) static void switch_any(prof_coro_t *to, uint64_t to_id, uint64_t now, uintptr_t pc,
                                                       uintptr_t sp, uintptr_t fp)
{
    gp_park_t park = {.pc = pc, .sp = sp, .fp = fp};
    gp_thread_t *thread = switch_self();
    if (thread == NULL)
        return;
    if (to == NULL) {
        to = thread->root;
        to_id = thread->root_id;
    }
    gp_slice_enter(thread);
    gp_slice_switch(thread, &park, to, to_id, now != 0 ? now : gp_ticks());
    gp_otel_thread_update(thread, to);
}

// Where the caller goes on: `park`; NULL = where the function was called that this is inlined into. Its frame is read
// only once it is needed: until then it takes no registers.
__attribute__((always_inline)) static inline uintptr_t switch_sp_of(const gp_park_t *park)
{
    return park != NULL ? park->sp : GP_ARCH_CALLER_SP();
}

__attribute__((always_inline)) static inline gp_park_t switch_park_of(const gp_park_t *park)
{
    if (park != NULL)
        return *park;
    const volatile uintptr_t *frame = __builtin_frame_address(0);
    return (gp_park_t){.pc = GP_ARCH_RETURN_OF(frame), .sp = switch_sp_of(NULL), .fp = frame[0]};
}

// Where contexts are shown, nothing samples, or the clock is another one.
__attribute__((noinline, cold)) static void switch_specially(prof_coro_t *to, uint64_t to_id, uintptr_t pc,
                                                             uintptr_t sp, uintptr_t fp)
{
    gp_thread_t *thread = gp_thread_self;
    gp_slice_plain_t plain;
    gp_park_t park = {.pc = pc, .sp = sp, .fp = fp};
    // Where the preloaded core and the host's library are both in the process, both hook; one of them samples.
    if (!atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed))
        return;
    if (thread == NULL || !gp_ticks_scale.counter) {
        switch_any(to_id != 0 ? to : NULL, to_id, 0, pc, sp, fp);
        return;
    }
    if (to == NULL || to_id == 0) {
        to = thread->root;
        to_id = thread->root_id;
    }
    gp_slice_enter(thread);
    bool may_be = gp_slice_may_be_plain(thread, sp, to, &plain);
    uint64_t now = gp_ticks_counter();
    if (!may_be || !gp_slice_is_plain(thread, now, &plain)) {
        switch_any(to, to_id, now, pc, sp, fp);
        return;
    }
    gp_slice_switch_plainly(thread, &plain, &park, to_id, now);
    gp_otel_thread_update(thread, to);
}

// The common case calls nothing, and jumps to what is for the others: no register need be saved. `to` is a coroutine.
__attribute__((always_inline)) static inline void switch_on(gp_thread_t *thread, prof_coro_t *to, uint64_t to_id,
                                                            const gp_park_t *park)
{
    gp_slice_plain_t plain;
    gp_slice_enter(thread);
    if (__builtin_expect(!gp_slice_may_be_plain(thread, switch_sp_of(park), to, &plain), 0)) {
        gp_park_t place = switch_park_of(park);
        switch_any(to, to_id, 0, place.pc, place.sp, place.fp);
        return;
    }
    uint64_t now = gp_ticks_counter();
    if (__builtin_expect(gp_slice_is_plain(thread, now, &plain), 1)) {
        gp_park_t place = switch_park_of(park);
        gp_slice_switch_plainly(thread, &plain, &place, to_id, now);
    } else {
        gp_park_t place = switch_park_of(park);
        switch_any(to, to_id, now, place.pc, place.sp, place.fp);
    }
}

void gp_switch_to(prof_coro_t *to, uint64_t to_id, const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_self;
    if (__builtin_expect(!gp_word32_is(&gp_switch_special, 0), 0) || __builtin_expect(thread == NULL, 0)) {
        switch_specially(to, to_id, park->pc, park->sp, park->fp);
        return;
    }
    if (to == NULL || to_id == 0) { // no coroutine, or one destroyed before it was switched to
        to = thread->root;
        to_id = thread->root_id;
    }
    switch_on(thread, to, to_id, park);
}

enum { PIECE_LOG2 = 12 };

// Cached entries say NULL for the thread's own stack.
__attribute__((noinline)) static prof_coro_t *switch_find_anew(gp_thread_t *thread, gp_recent_switch_t *entry,
                                                               uintptr_t sp, uint64_t *id)
{
    // Acquire: what is read of the table comes after.
    uint64_t version = atomic_load_explicit(&gp_region_version, memory_order_acquire);
    bool own = gp_region_holds(thread->root, thread->root_id, sp) &&
               !atomic_load_explicit(&gp_thread_nested, memory_order_relaxed);
    prof_coro_t *coro = own ? thread->root : gp_region_find(sp, id);
    if (coro == NULL || (version & 1))
        return own ? NULL : coro;
    if (own)
        *id = 0;
    uintptr_t piece = sp >> PIECE_LOG2 << PIECE_LOG2, end = piece + ((uintptr_t)1 << PIECE_LOG2);
    uintptr_t lo = atomic_load_explicit(&coro->lo, memory_order_relaxed);
    uintptr_t hi = atomic_load_explicit(&coro->hi, memory_order_relaxed);
    *entry = (gp_recent_switch_t){version, *id, lo > piece ? lo : piece, hi < end ? hi : end, own ? NULL : coro};
    return entry->coro;
}

static inline gp_recent_switch_t *switch_recent_switch(gp_thread_t *thread, uintptr_t sp)
{
    return &thread->recent_switches[(sp >> PIECE_LOG2) % GP_RECENT_SWITCHES];
}

__attribute__((noinline)) static void switch_to_found(uintptr_t target_sp, const gp_park_t *park)
{
    gp_thread_t *thread = switch_self();
    if (thread == NULL)
        return;
    uint64_t id = 0;
    prof_coro_t *to = switch_find_anew(thread, switch_recent_switch(thread, target_sp), target_sp, &id);
    gp_switch_to(to, id, park);
}

void gp_switch_to_stack(uintptr_t target_sp, const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_self;
    const gp_recent_switch_t *entry = thread != NULL ? switch_recent_switch(thread, target_sp) : NULL;
    if (__builtin_expect(entry != NULL && target_sp >= entry->lo && target_sp < entry->hi &&
                             entry->version == atomic_load_explicit(&gp_region_version, memory_order_acquire),
                         1))
        gp_switch_to(entry->coro, entry->id, park);
    else
        switch_to_found(target_sp, park);
}

void prof_coro_switch_to_stack(uintptr_t target_sp, const prof_park_t *park)
{
    gp_park_t caller = {.pc = park->pc, .sp = park->sp, .fp = park->fp};
    gp_switch_to_stack(target_sp, &caller);
}

// Above the top of a stack that a context was made on lies the context's record, with which it calls what frees it.
enum { RECORD_BYTES = 256 };

void gp_switch_ontop(uintptr_t target_sp, uintptr_t record, const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_self;
    prof_coro_t *from = thread != NULL ? atomic_load_explicit(&thread->current, memory_order_relaxed) : NULL;
    uint64_t id = thread != NULL ? atomic_load_explicit(&thread->current_id, memory_order_relaxed) : 0;
    gp_switch_to_stack(target_sp, park);
    // Callers of functions on other stacks pass data on their own stack instead.
    if (from != NULL && record - atomic_load_explicit(&from->hi, memory_order_relaxed) < RECORD_BYTES &&
        gp_region_holds(from, id, park->sp))
        gp_coro_ends(from, id);
}

void prof_coro_switch_ontop(uintptr_t target_sp, uintptr_t record, const prof_park_t *park)
{
    gp_park_t caller = {.pc = park->pc, .sp = park->sp, .fp = park->fp};
    gp_switch_ontop(target_sp, record, &caller);
}

// Some coroutines share a stack: its resume address will be overwritten, and the previous coroutine must be remembered
// until the stack pointer leaves the stack.
static void switch_with_sharers(prof_coro_t *to, uint64_t to_id, uintptr_t pc, uintptr_t sp, uintptr_t fp)
{
    gp_thread_t *thread = switch_self();
    if (thread == NULL)
        return;
    const prof_coro_t *from = atomic_load_explicit(&thread->current, memory_order_relaxed);
    if (to != NULL && to->shares_stack) {
        atomic_store_explicit(&thread->sharer_id, to_id, memory_order_relaxed);
        atomic_store_explicit(&thread->sharer, to, memory_order_relaxed);
    }
    gp_park_t place = {.pc = pc, .sp = sp, .fp = fp};
    if (from != NULL && from->shares_stack)
        place.pc = 0; // not known
    gp_switch_to(to, to_id, &place);
}

__attribute__((noinline, cold)) static void switch_hook_specially(prof_coro_t *to, uintptr_t pc, uintptr_t sp,
                                                                  uintptr_t fp)
{
    uint64_t to_id = to != NULL ? atomic_load_explicit(&to->id, memory_order_acquire) : 0;
    if (atomic_load_explicit(&gp_switch_special, memory_order_relaxed) & GP_SWITCH_SHARERS)
        switch_with_sharers(to, to_id, pc, sp, fp);
    else
        switch_specially(to, to_id, pc, sp, fp);
}

void prof_coro_switch_hook(prof_coro_t *to)
{
    gp_thread_t *thread = gp_thread_self;
    if (__builtin_expect(!gp_word32_is(&gp_switch_special, 0), 0) || __builtin_expect(thread == NULL, 0)) {
        gp_park_t park = switch_park_of(NULL);
        switch_hook_specially(to, park.pc, park.sp, park.fp);
        return;
    }
    prof_coro_t *root = thread->root;
    to = to != NULL ? to : root;
    uint64_t to_id = atomic_load_explicit(&to->id, memory_order_acquire);
    if (__builtin_expect(to_id == 0, 0)) { // destroyed before it was switched to
        gp_park_t park = switch_park_of(NULL);
        switch_hook_specially(to, park.pc, park.sp, park.fp);
        return;
    }
    switch_on(thread, to, to_id, NULL);
}

void prof_coro_ready(prof_coro_t *coro)
{
    if (coro == NULL || !__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        return;
    if (gp_ledger_edge_load(&coro->ready_ticks) == GP_EDGE_IDLE &&
        !atomic_load_explicit(&coro->running, memory_order_relaxed))
        return; // its wait does not count
    gp_thread_t *thread = gp_thread_self;
    uint64_t waker = thread != NULL ? atomic_load_explicit(&thread->current_id, memory_order_relaxed) : 0;
    if (atomic_load_explicit(&gp_activity_wanted, memory_order_relaxed))
        gp_ledger_edge_store(&gp_coro_timeline(coro)->waker, waker);
    // A coroutine never switched to was ready all the time; a tick later means that this was reported.
    bool runs = atomic_load_explicit(&coro->running, memory_order_relaxed) != 0;
    gp_ledger_edge_store(&coro->ready_ticks, !runs && gp_ledger_edge_is_new(coro) ? coro->birth_ticks + 1 : gp_ticks());
}

void prof_coro_unseen(prof_coro_t *coro)
{
    if (coro != NULL)
        gp_ledger_edge_store(&coro->ready_ticks, 0);
}

prof_coro_t *prof_coro_current(void)
{
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    return coro != NULL && coro->kind != GP_CORO_THREAD ? coro : NULL;
}

static prof_coro_t *switch_settled(prof_coro_t *coro, uintptr_t sp)
{
    prof_coro_t *own = gp_coro_of_caller(sp);
    if (coro == NULL)
        coro = own;
    if (coro != NULL && coro == own && __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        gp_slice_settle_now(gp_thread_self);
    return coro;
}

uint64_t prof_coro_cpu_ns(prof_coro_t *coro)
{
    coro = switch_settled(coro, (uintptr_t)__builtin_frame_address(0));
    return coro != NULL ? gp_ledger_edge_settled_cpu_ns(coro) : 0;
}

uint64_t prof_coro_switches(prof_coro_t *coro)
{
    coro = switch_settled(coro, (uintptr_t)__builtin_frame_address(0));
    return coro != NULL ? atomic_load_explicit(&coro->switches, memory_order_relaxed) : 0;
}

int prof_coro_ledger(prof_coro_t *coro, prof_ledger_t *out)
{
    gp_ledger_t ledger;
    coro = switch_settled(coro, (uintptr_t)__builtin_frame_address(0));
    if (coro == NULL)
        return -ENOMEM;
    gp_ledger_read(coro, gp_ticks(), &ledger);
    return gp_ledger_give(&ledger, out);
}
