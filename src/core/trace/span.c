// SPDX-License-Identifier: MIT
#include "trace/span.h"
#include "coro/announce.h"

#include <string.h>
#include <time.h>

#include "coro/otel_thread_context.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "signal/ledger_edges.h"
#include "signal/rest.h"
#include "signal/slice_switch.h"
#include "trace/context.h"
#include "trace/span_id.h"
#include "trace/span_mark.h"
#include "trace/span_past.h"
#include "trace/span_text.h"
#include "trace/span_watch.h"

enum { MAX_AGE_S = 60 }; // of a beginning in the past

static _Atomic uint32_t wanted; // enum gp_span_taker bits
gp_span_policy_t *_Atomic gp_span_policy;

#define FOR_ALL (GP_SPANS_CAPTURED | GP_SPANS_SHOWN) // that want those of each request

void gp_spans_want(enum gp_span_taker taker, bool is_wanted)
{
    if (is_wanted)
        atomic_fetch_or_explicit(&wanted, (uint32_t)taker, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&wanted, ~(uint32_t)taker, memory_order_relaxed);
}

bool gp_spans_are_wanted(unsigned takers)
{
    return atomic_load_explicit(&wanted, memory_order_relaxed) & takers;
}

// While a recording rests they are recorded as well, but for where their time went.
static bool span_are_recorded(void)
{
    return __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) || gp_rest_is_now();
}

static uint64_t span_start_of(uint64_t unix_ns, uint64_t now)
{
    if (unix_ns == 0)
        return now;
    uint64_t real = gp_clock_ns(CLOCK_REALTIME), ago = real > unix_ns ? real - unix_ns : 0;
    if (ago > MAX_AGE_S * 1000000000ull)
        ago = MAX_AGE_S * 1000000000ull;
    return now - gp_ticks_from_ns(ago);
}

typedef struct origin {
    prof_coro_t *coro;            // NULL = not known
    gp_park_t caller;             // pc 0 = not known
    const gp_span_since_t *since; // NULL = now
    bool is_wanted;               // span_is_skipped() said no
} origin_t;

typedef struct beginning {
    const prof_span_options_t *options; // whole
    const gp_span_since_t *since;       // as above
    prof_coro_t *coro;
    bool has_parent; // of this process
    gp_span_parent_t parent;
    bool sets_trace; // what is open on the coroutine is not its parent
    bool is_chosen;
} beginning_t;

// Returns false: it is over.
static inline bool span_read_parent(uint64_t handle, gp_span_parent_t *parent)
{
    const gp_span_slot_t *slot = gp_span_slot_open(handle);
    if (slot == NULL)
        return false;
    *parent = (gp_span_parent_t){
        slot->span.id, slot->request, {slot->span.trace[0], slot->span.trace[1]}, slot->span.is_chosen};
    atomic_thread_fence(memory_order_acquire); // another thread may end it
    return gp_span_slot_open(handle) == slot;
}

uint64_t gp_span_shown_id(prof_coro_t *coro)
{
    gp_span_parent_t span;
    uint64_t handle = gp_ledger_edge_load(&gp_coro_context(coro)->span);
    if (handle == 0 || gp_span_is_unrecorded(handle))
        return 0;
    if (gp_span_slot_process() == 1)
        return gp_span_id_of(handle);
    return span_read_parent(handle, &span) ? span.id : 0; // it may be of the process that forked
}

static void span_choose_trace(const beginning_t *what, gp_span_slot_t *slot)
{
    uint64_t *trace = slot->span.trace;
    if (what->has_parent)
        memcpy(trace, what->parent.trace, sizeof(what->parent.trace));
    if (what->has_parent && !what->sets_trace)
        return; // the coroutine has it
    gp_trace_of(what->coro, slot->outer_trace);
    if (what->has_parent)
        return;
    if (what->options->trace != NULL)
        memcpy(trace, what->options->trace->bytes, sizeof(what->options->trace->bytes));
    else
        memcpy(trace, slot->outer_trace, sizeof(slot->outer_trace));
    if (trace[0] == 0 && trace[1] == 0)
        gp_span_id_new_trace(trace);
}

static void span_fill_slot(gp_span_slot_t *slot, uint64_t handle, const beginning_t *what, prof_span_kind_t kind,
                           const char *name)
{
    const prof_span_options_t *options = what->options;
    const gp_thread_t *thread = gp_thread_self;
    gp_span_t *span = &slot->span;
    span->coro_id = atomic_load_explicit(&what->coro->id, memory_order_relaxed);
    span->id = gp_span_id_of(handle);
    span->parent_id = what->has_parent ? what->parent.id : options->parent_id;
    span->site = 0;
    span->thread = thread != NULL ? thread->index : 0;
    span->kind = (uint16_t)kind;
    span->is_chosen = what->is_chosen;
    slot->sets_trace = what->sets_trace;
    slot->is_client = options->flags & PROF_SPAN_CLIENT;
    slot->field_count = 0;
    atomic_store_explicit(&slot->is_told, false, memory_order_relaxed);
    slot->process = gp_span_slot_process();
    slot->coro = what->coro;
    slot->outer = gp_ledger_edge_load(&gp_coro_context(what->coro)->span);
    slot->request = what->has_parent ? what->parent.request : handle;
    unsigned flags = (options->flags & PROF_SPAN_REMOTE_PARENT ? GP_SPAN_REMOTE_PARENT : 0) |
                     (options->flags & PROF_SPAN_PROFILE ? GP_SPAN_ASKED : 0);
    atomic_store_explicit(&slot->flags, (uint16_t)flags, memory_order_relaxed);
    atomic_store_explicit(&slot->text_len, 0, memory_order_relaxed);
    span_choose_trace(what, slot);
    span->name_len = (uint16_t)gp_span_text_cut(name, GP_SPAN_NAME_MAX);
    memcpy(slot->text, name, span->name_len);
    atomic_store_explicit(&slot->text_len, span->name_len, memory_order_relaxed);
    for (size_t i = 0; i < options->field_count; i++)
        if (options->fields[i].key != NULL && options->fields[i].value != NULL)
            gp_span_text_add_field(slot, options->fields[i].key, options->fields[i].value);
}

// As it was noted; unless it was another coroutine's, or none was known then.
static void span_take_noted(gp_span_slot_t *slot, const beginning_t *what)
{
    slot->span.start = what->since->ticks;
    slot->has_words = false;
    if (what->since->coro == what->coro)
        gp_ledger_of_words(what->coro, &what->since->words, slot->span.start, &slot->times);
    else
        atomic_fetch_or_explicit(&slot->flags, GP_SPAN_NO_TIMES, memory_order_relaxed);
}

static void span_mark_start(gp_span_slot_t *slot, const beginning_t *what)
{
    slot->begun = gp_span_edge_now();
    if (what->since != NULL) {
        span_take_noted(slot, what);
        return;
    }
    slot->span.start = span_start_of(what->options->start_unix_ns, slot->begun);
    gp_span_mark_begin(slot);
}

__attribute__((always_inline)) static inline uint64_t span_begin(const beginning_t *what, prof_span_kind_t kind,
                                                                 const char *name, const gp_park_t *caller)
{
    uint32_t number;
    gp_span_slot_t *slot = gp_span_slot_take(&number);
    if (slot == NULL)
        return 0;
    if (gp_thread_self != NULL)
        gp_ring_expect(&gp_thread_self->ring, sizeof(gp_span_mark_t)); // for its end, or an inner one's
    uint64_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed) + 1;
    uint64_t handle = gp_span_handle(number, generation);
    span_fill_slot(slot, handle, what, kind, name);
    if (what->options->flags & PROF_SPAN_STACK)
        slot->span.site = gp_spawn_site_of_span(what->coro, caller);
    if (slot->sets_trace)
        gp_trace_change(what->coro, slot->span.trace);
    gp_span_watch_begin(slot, what->has_parent);
    span_mark_start(slot, what);
    // Release: partner of the acquire in gp_span_slot_open().
    atomic_store_explicit(&slot->generation, generation, memory_order_release);
    gp_ledger_edge_store(&gp_coro_context(what->coro)->span, handle);
    gp_otel_thread_update(gp_thread_self, what->coro);
    return handle;
}

static bool span_is_for_listeners(prof_span_kind_t kind, const char *name, uint32_t flags)
{
    gp_span_policy_t *policy = atomic_load_explicit(&gp_span_policy, memory_order_acquire);
    return (flags & PROF_SPAN_PROFILE) || policy == NULL || policy(kind, name);
}

// A request begins, and nothing is to record it: nor what is within it.
static prof_span_t *span_skip_request(prof_coro_t *coro)
{
    uint64_t handle = GP_SPAN_UNRECORDED(atomic_load_explicit(&coro->id, memory_order_relaxed));
    gp_ledger_edge_store(&gp_coro_context(coro)->span, handle);
    return (prof_span_t *)(uintptr_t)handle;
}

// The span open on the coroutine; NULL: nothing, or what it inherited is over.
static gp_span_slot_t *span_current(prof_coro_t *coro)
{
    return gp_span_slot_open(gp_ledger_edge_load(&gp_coro_context(coro)->span));
}

// Does the coroutine work for a request that is not recorded? A pool's coroutine inherits this from its spawner only
// until a request of its own begins.
static bool span_is_skipped(prof_coro_t *coro, prof_span_kind_t kind, uint32_t flags)
{
    uint64_t handle = gp_ledger_edge_load(&gp_coro_context(coro)->span);
    bool is_request = kind == PROF_SPAN_REQUEST || kind == PROF_SPAN_REST_DISPATCH || kind == PROF_SPAN_RPC_DISPATCH;
    bool gp_span_is_own = handle == GP_SPAN_UNRECORDED(atomic_load_explicit(&coro->id, memory_order_relaxed));
    return gp_span_is_unrecorded(handle) && !(flags & PROF_SPAN_REMOTE_PARENT) && (gp_span_is_own || !is_request);
}

// A span that is over is still the parent: a thread may begin its work after its starter has ended.
static void span_find_parent(beginning_t *what)
{
    uint64_t around = gp_ledger_edge_load(&gp_coro_context(what->coro)->span), id = what->options->parent_id;
    uint64_t handle = id != 0 ? gp_span_id_handle(id) : around;
    bool is_open = span_read_parent(handle, &what->parent) && (id == 0 || id == what->parent.id);
    what->has_parent = !(what->options->flags & PROF_SPAN_REMOTE_PARENT) &&
                       (is_open || (id != 0 && gp_span_past_find(id, &what->parent)));
    what->sets_trace = !what->has_parent || handle != around;
}

// Options of an older caller, with fewer fields, made whole.
static const prof_span_options_t *span_whole(const prof_span_options_t *options, prof_span_options_t *full)
{
    *full = (prof_span_options_t)PROF_SPAN_OPTIONS_INIT;
    memcpy(full, options, options->size < sizeof(*full) ? options->size : sizeof(*full));
    return full;
}

__attribute__((noinline)) static prof_span_t *span_begin_wanted(prof_span_kind_t kind, const char *name,
                                                                const prof_span_options_t *options, uint32_t takers,
                                                                const origin_t *origin)
{
    static const prof_span_options_t plain = PROF_SPAN_OPTIONS_INIT;
    prof_span_options_t full;
    beginning_t what = {
        .options = options != NULL ? span_whole(options, &full) : &plain, .coro = origin->coro, .since = origin->since};
    uint32_t flags = what.options->flags;
    if (what.coro == NULL || (unsigned)kind - 1 >= GP_SPAN_KIND_COUNT - 1 ||
        (!origin->is_wanted && span_is_skipped(what.coro, kind, flags)))
        return NULL;
    span_find_parent(&what);
    what.is_chosen = what.has_parent ? what.parent.is_chosen : span_is_for_listeners(kind, name, flags);
    if (!(takers & FOR_ALL) && !what.is_chosen)
        return !what.has_parent ? span_skip_request(what.coro) : NULL;
    return (prof_span_t *)(uintptr_t)span_begin(&what, kind, name != NULL ? name : "", &origin->caller);
}

prof_span_t *prof_span_begin(prof_span_kind_t kind, const char *name, const prof_span_options_t *options)
{
    uint32_t takers = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (__builtin_expect(takers == 0 || !span_are_recorded(), 1))
        return NULL;
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (options == NULL && coro != NULL && span_is_skipped(coro, kind, 0))
        return NULL;
    origin_t origin = {.coro = coro, .caller = gp_spawn_caller(), .is_wanted = options == NULL};
    return span_begin_wanted(kind, name, options, takers, &origin);
}

// Where the account is not settled, or nothing is recorded.
__attribute__((noinline)) static bool span_settle_noted(gp_thread_t *thread, gp_span_since_t *since)
{
    since->coro = NULL;
    since->ticks = gp_span_edge_now();
    return thread != NULL && gp_slice_is_settled(thread, since->ticks, gp_slice_long_ticks);
}

void gp_span_note(gp_span_since_t *since)
{
    gp_thread_t *thread = gp_thread_self;
    since->ticks = gp_ticks();
    bool is_settled = thread != NULL && gp_slice_is_settled(thread, since->ticks, gp_slice_long_ticks);
    if (__builtin_expect(!is_settled, 0) && !span_settle_noted(thread, since))
        return;
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    bool runs = atomic_load_explicit(&coro->running, memory_order_relaxed) != 0 && gp_ledger_edge_is_current(coro);
    since->coro = runs ? coro : NULL;
    gp_ledger_read_words(coro, &since->words);
}

prof_span_t *gp_span_begin_since(prof_span_kind_t kind, const char *name, const gp_span_since_t *since)
{
    uint32_t takers = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (takers == 0)
        return NULL;
    prof_span_options_t call = PROF_SPAN_OPTIONS_INIT;
    call.flags = PROF_SPAN_CLIENT;
    origin_t origin = {.coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0)), .since = since};
    return span_begin_wanted(kind, name, &call, takers, &origin);
}

// The id of an open span, for the program, which may name it as a parent later. NULL: 0.
static uint64_t span_tell_id(gp_span_slot_t *slot)
{
    if (slot == NULL)
        return 0;
    atomic_store_explicit(&slot->is_told, true, memory_order_relaxed);
    return slot->span.id;
}

uint64_t prof_span_id(const prof_span_t *span)
{
    return span_tell_id(gp_span_slot_open((uintptr_t)span));
}

uint64_t prof_span_current(void)
{
    if (atomic_load_explicit(&wanted, memory_order_relaxed) == 0)
        return 0;
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    return span_tell_id(coro != NULL ? span_current(coro) : NULL);
}

bool gp_span_may_call(prof_span_kind_t kind)
{
    if (__builtin_expect(atomic_load_explicit(&wanted, memory_order_relaxed) == 0, 1))
        return false;
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    const gp_span_slot_t *slot = coro != NULL ? span_current(coro) : NULL;
    return slot != NULL && !(slot->is_client && slot->span.kind == kind);
}

void gp_span_begin_implicit(prof_coro_t *coro)
{
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    uint32_t takers = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (takers == 0 || !span_are_recorded() || span_current(coro) != NULL ||
        gp_span_is_unrecorded(gp_ledger_edge_load(&gp_coro_context(coro)->span)))
        return;
    beginning_t what = {.options = &options, .coro = coro};
    what.is_chosen = span_is_for_listeners(PROF_SPAN_REQUEST, "", 0);
    if (!(takers & FOR_ALL) && !what.is_chosen)
        return;
    const gp_park_t nowhere = {0};
    gp_span_slot_t *slot = gp_span_slot_open(span_begin(&what, PROF_SPAN_REQUEST, "", &nowhere));
    if (slot == NULL)
        return;
    memset(slot->outer_trace, 0, sizeof(slot->outer_trace));
    atomic_fetch_or_explicit(&slot->flags, GP_SPAN_IMPLICIT, memory_order_relaxed);
}

void gp_spans_after_fork(void)
{
    gp_span_slots_after_fork();
    gp_span_ids_after_fork();
}
