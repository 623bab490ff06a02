// SPDX-License-Identifier: MIT
#include "trace/span.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "coro/coro_ledger.h"
#include "coro/own_memory.h"
#include "coro/registry.h"
#include "coro/shown.h"
#include "coro/spawn.h"
#include "model/span_kind.h"
#include "signal/edge.h"
#include "signal/handler.h"
#include "trace/context.h"

enum {
    CHUNK_LOG2 = 8,
    CHUNK = 1 << CHUNK_LOG2, // slots that are mapped at a time
    CHUNKS_MAX = 1 << 10,    // spans that may be open at a time: 262,144
    INDEX_BITS = CHUNK_LOG2 + 10,
    MAX_AGE_S = 60, // of a beginning in the past
};

// A handle is a generation, the number of a slot, and a zero bit; with a one, it stands for a request that is not
// recorded, on the coroutine with that id.
#define UNRECORDED(coro_id) ((uint64_t)(coro_id) << 1 | 1)

static bool is_unrecorded(uint64_t handle)
{
    return handle & 1;
}

typedef struct slot {
    _Atomic uint64_t generation; // odd: the span is open
    _Atomic uint32_t next;       // of the free ones, its number + 1
    bool is_chosen, sets_trace;
    uint16_t kind, name_len, field_count;
    _Atomic uint16_t flags, text_len; // of `text`; written with release
    uint32_t site, thread;
    uint32_t process; // `process` below, as it began
    prof_coro_t *coro;
    uint64_t coro_id;
    uint64_t id, parent_id;
    uint64_t trace[2], outer_trace[2];
    uint64_t outer;        // what was open on the coroutine before
    uint64_t request;      // the handle of the root around it, or its own
    uint64_t start, begun; // ticks: when it began; when it was called
    gp_ledger_t times;     // of the coroutine, as it began
    const gp_request_watch_t *watch;
    void *watched; // its token; NULL = none
    char text[GP_SPAN_TEXT_MAX];
} slot_t;

static _Atomic(slot_t *) chunks[CHUNKS_MAX];
static _Atomic uint32_t slot_count;  // that have a chunk
static _Atomic uint64_t free_slots;  // number + 1 of the first; a count above, which makes each state a new one
static _Atomic uint32_t wanted;      // enum gp_span_taker bits
static _Atomic uint32_t process = 1; // raised in a forked child
static _Atomic uint64_t id_seed, trace_count;
gp_span_policy_t *_Atomic gp_span_policy;
const gp_request_watch_t *_Atomic gp_request_watch;

#define FOR_ALL (GP_SPANS_CAPTURED | GP_SPANS_SHOWN) // that want those of each request

void gp_spans_want(enum gp_span_taker taker, bool is_wanted)
{
    if (is_wanted)
        atomic_fetch_or_explicit(&wanted, (uint32_t)taker, memory_order_relaxed);
    else
        atomic_fetch_and_explicit(&wanted, ~(uint32_t)taker, memory_order_relaxed);
}

// --- slots

static slot_t *slot_at(uint32_t number)
{
    return &atomic_load_explicit(&chunks[number >> CHUNK_LOG2], memory_order_acquire)[number & (CHUNK - 1)];
}

static void put_slots(uint32_t first, uint32_t last)
{
    uint64_t head = atomic_load_explicit(&free_slots, memory_order_relaxed), now;
    do {
        atomic_store_explicit(&slot_at(last)->next, (uint32_t)head, memory_order_relaxed);
        now = ((head >> 32) + 1) << 32 | (first + 1);
        // Release: partner of the acquire in pop_slot().
    } while (
        !atomic_compare_exchange_weak_explicit(&free_slots, &head, now, memory_order_release, memory_order_relaxed));
}

static bool pop_slot(uint32_t *number)
{
    uint64_t head = atomic_load_explicit(&free_slots, memory_order_acquire), now;
    do {
        if ((uint32_t)head == 0)
            return false;
        *number = (uint32_t)head - 1;
        // Slots are never unmapped: one that another thread has taken meanwhile is read in vain.
        now = ((head >> 32) + 1) << 32 | atomic_load_explicit(&slot_at(*number)->next, memory_order_relaxed);
    } while (
        !atomic_compare_exchange_weak_explicit(&free_slots, &head, now, memory_order_acquire, memory_order_acquire));
    return true;
}

// Returns false where memory is short, or there are as many as there may be.
static bool map_slots(void)
{
    uint32_t first = atomic_load_explicit(&slot_count, memory_order_relaxed);
    do {
        if (first >> CHUNK_LOG2 >= CHUNKS_MAX)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&slot_count, &first, first + CHUNK, memory_order_relaxed,
                                                    memory_order_relaxed));
    slot_t *chunk = gp_own_map(CHUNK * sizeof(slot_t));
    if (chunk == NULL)
        return false; // these numbers stay without slots
    // Release: partner of the acquires in slot_at() and open_slot().
    atomic_store_explicit(&chunks[first >> CHUNK_LOG2], chunk, memory_order_release);
    for (uint32_t i = 0; i + 1 < CHUNK; i++)
        atomic_store_explicit(&chunk[i].next, first + i + 2, memory_order_relaxed);
    put_slots(first, first + CHUNK - 1);
    return true;
}

static uint64_t handle_of(uint32_t number, uint64_t generation)
{
    return generation << (INDEX_BITS + 1) | (uint64_t)number << 1;
}

static uint32_t number_of(uint64_t handle)
{
    return (uint32_t)(handle >> 1) & ((1u << INDEX_BITS) - 1);
}

static uint64_t generation_of(uint64_t handle)
{
    return handle >> (INDEX_BITS + 1);
}

// The slot of a span that is open; NULL: it is over, or never was. Signals: safe.
static slot_t *open_slot(uint64_t handle)
{
    uint32_t number = number_of(handle);
    if (handle == 0 || is_unrecorded(handle) || number >= atomic_load_explicit(&slot_count, memory_order_relaxed) ||
        atomic_load_explicit(&chunks[number >> CHUNK_LOG2], memory_order_acquire) == NULL)
        return NULL;
    slot_t *slot = slot_at(number);
    uint64_t generation = atomic_load_explicit(&slot->generation, memory_order_acquire);
    return generation == generation_of(handle) && (generation & 1) ? slot : NULL;
}

// --- ids: random, different in each process; in the one that made it, an id tells the handle

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u; // Source: Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    x = (x ^ x >> 27) * 0x94d049bb133111ebu; // Generators (SplitMix64)
    return x ^ x >> 31;
}

// mix() backwards: by the factors' inverses modulo 2^64.
static uint64_t unmix(uint64_t x)
{
    x = (x ^ x >> 31 ^ x >> 62) * 0x319642b2d24d8ec3u;
    x = (x ^ x >> 27 ^ x >> 54) * 0x96de1b173f119089u;
    return x ^ x >> 30 ^ x >> 60;
}

static uint64_t seed(void)
{
    uint64_t now = atomic_load_explicit(&id_seed, memory_order_relaxed), fresh = 0;
    if (now != 0)
        return now;
    if (getrandom(&fresh, sizeof(fresh), GRND_NONBLOCK) != sizeof(fresh))
        fresh = mix(gp_ticks()) ^ gp_clock_ns(CLOCK_REALTIME);
    fresh |= 1;
    return atomic_compare_exchange_strong_explicit(&id_seed, &now, fresh, memory_order_relaxed, memory_order_relaxed)
               ? fresh
               : now;
}

static uint64_t not_zero(uint64_t id)
{
    return id != 0 ? id : 1;
}

static uint64_t id_of(uint64_t handle)
{
    return not_zero(mix(seed() + handle));
}

// Of any number, which may be no id of this process.
static uint64_t handle_of_id(uint64_t id)
{
    return unmix(id) - seed();
}

static void new_trace(uint64_t trace[2])
{
    uint64_t count = atomic_fetch_add_explicit(&trace_count, 2, memory_order_relaxed);
    for (unsigned i = 0; i < 2; i++) // odd, as no handle of a span is
        trace[i] = not_zero(mix(seed() + ((count + i) * 0x9e3779b97f4a7c15u | 1)));
}

// --- what is shown, and what goes to the sinks

typedef struct parent { // what a span takes from the one in which it nests
    uint64_t id, request, trace[2];
    bool is_chosen;
} parent_t;

// Returns false: it is over.
static bool read_parent(uint64_t handle, parent_t *parent)
{
    const slot_t *slot = open_slot(handle);
    if (slot == NULL)
        return false;
    *parent = (parent_t){slot->id, slot->request, {slot->trace[0], slot->trace[1]}, slot->is_chosen};
    atomic_thread_fence(memory_order_acquire); // another thread may end it
    return open_slot(handle) == slot;
}

uint64_t gp_span_shown_id(prof_coro_t *coro)
{
    parent_t span;
    uint64_t handle = gp_edge_load(&coro->span);
    if (handle == 0 || is_unrecorded(handle))
        return 0;
    if (atomic_load_explicit(&process, memory_order_relaxed) == 1)
        return id_of(handle);
    return read_parent(handle, &span) ? span.id : 0; // it may be of the process that forked
}

// Where its time went so far, as a coroutine that runs knows without asking the kernel. Preemption in the last
// milliseconds may not be known yet.
static void read_times(prof_coro_t *coro, uint64_t now, gp_ledger_t *times)
{
    gp_ledger_read(coro, now, times);
    if (atomic_load_explicit(&coro->running, memory_order_relaxed) != 0 && gp_edge_is_current(coro))
        times->cpu_ns = gp_edge_cpu_ns(coro, now);
}

static uint64_t not_below(uint64_t now, uint64_t before)
{
    return (int64_t)(now - before) > 0 ? now - before : 0;
}

static void subtract(gp_ledger_t *now, const gp_ledger_t *before)
{
    now->cpu_ns = not_below(now->cpu_ns, before->cpu_ns);
    now->blocked_ns = not_below(now->blocked_ns, before->blocked_ns);
    now->slice_ns = not_below(now->slice_ns, before->slice_ns);
    now->ready_ns = not_below(now->ready_ns, before->ready_ns);
    now->parked_ns = not_below(now->parked_ns, before->parked_ns);
    now->waiting_ns = not_below(now->waiting_ns, before->waiting_ns);
    now->switches = not_below(now->switches, before->switches);
    if (now->cpu_ns > now->slice_ns)
        now->cpu_ns = now->slice_ns;
}

// Is the record of its coroutine still that of this one? It is for the collector when it is over.
static bool is_known(const slot_t *slot)
{
    uint64_t id = atomic_load_explicit(&slot->coro->id, memory_order_relaxed);
    return id == slot->coro_id || (id == 0 && slot->coro->final_id == slot->coro_id);
}

// All but the header and the text.
static void fill(gp_span_mark_t *mark, const slot_t *slot, uint64_t now)
{
    mark->coro = slot->coro;
    mark->coro_id = slot->coro_id;
    mark->end_coro_id = 0;
    mark->id = slot->id;
    mark->parent_id = slot->parent_id;
    memcpy(mark->trace, slot->trace, sizeof(mark->trace));
    mark->start = slot->start;
    mark->end = now;
    mark->site = slot->site;
    mark->thread = slot->thread;
    mark->kind = slot->kind;
    mark->flags = atomic_load_explicit(&slot->flags, memory_order_relaxed);
    mark->is_chosen = slot->is_chosen;
    mark->name_len = slot->name_len;
    mark->field_count = slot->field_count;
    mark->times = (gp_ledger_t){0};
    if (is_known(slot)) {
        read_times(slot->coro, now, &mark->times);
        subtract(&mark->times, &slot->times);
    } else {
        mark->flags |= GP_SPAN_NO_TIMES;
    }
}

// Is the calling coroutine that of the span?
static bool is_own(const slot_t *slot, prof_coro_t *coro)
{
    return slot->coro == coro && slot->coro_id == atomic_load_explicit(&coro->id, memory_order_relaxed);
}

static void send(const slot_t *slot, prof_coro_t *coro, unsigned more_flags, uint64_t now)
{
    gp_thread_t *thread = gp_thread_self;
    if (!(atomic_load_explicit(&wanted, memory_order_relaxed) & (GP_SPANS_CAPTURED | GP_SPANS_HEARD)))
        return;
    uint16_t text_len = atomic_load_explicit(&slot->text_len, memory_order_acquire);
    uint32_t bytes = ((uint32_t)sizeof(gp_span_mark_t) + text_len + 7) & ~7u;
    gp_span_mark_t *mark = thread != NULL ? gp_ring_reserve(&thread->ring, bytes) : NULL;
    if (mark == NULL) {
        if (thread != NULL)
            gp_thread_count(thread, GP_COUNTER_LOST_SPANS);
        return;
    }
    fill(mark, slot, now);
    mark->flags = (uint16_t)(mark->flags | more_flags);
    if (coro != NULL)
        mark->end_coro_id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    if (coro == NULL || !is_own(slot, coro)) { // another thread runs it now, perhaps
        mark->flags |= GP_SPAN_NO_TIMES;
        mark->times = (gp_ledger_t){0};
    }
    mark->fields_len = (uint16_t)(text_len - slot->name_len);
    memcpy(mark->text, slot->text, text_len);
    gp_thread_commit(thread, mark, GP_RING_SPAN);
    if (gp_ring_fill(&thread->ring) > thread->ring.capacity / 2)
        gp_handler_kick();
}

static void count(enum gp_counter counter)
{
    if (gp_thread_self != NULL)
        gp_thread_count(gp_thread_self, counter);
}

// --- beginning

static void add_text(slot_t *slot, const char *text, size_t len)
{
    uint16_t at = atomic_load_explicit(&slot->text_len, memory_order_relaxed);
    memcpy(slot->text + at, text, len);
    slot->text[at + len] = '\0';
    // Release: partner of the acquires of those that copy it.
    atomic_store_explicit(&slot->text_len, (uint16_t)(at + len + 1), memory_order_release);
}

// Of a text that is too long, whole characters are kept (UTF-8).
static size_t cut(const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);
    if (len <= max)
        return len;
    len = max;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    count(GP_COUNTER_CUT_FIELDS);
    return len;
}

static int add_field(slot_t *slot, const char *key, const char *value)
{
    size_t room = GP_SPAN_TEXT_MAX - atomic_load_explicit(&slot->text_len, memory_order_relaxed);
    size_t key_len = cut(key, GP_SPAN_KEY_MAX);
    if (slot->field_count == GP_SPAN_FIELDS_MAX || key_len + 2 > room) {
        count(GP_COUNTER_CUT_FIELDS);
        return -ENOSPC;
    }
    size_t value_len = cut(value, room - key_len - 2);
    add_text(slot, key, key_len);
    add_text(slot, value, value_len);
    slot->field_count++;
    return 0;
}

static uint64_t start_of(uint64_t unix_ns, uint64_t now)
{
    if (unix_ns == 0)
        return now;
    uint64_t real = gp_clock_ns(CLOCK_REALTIME), ago = real > unix_ns ? real - unix_ns : 0;
    if (ago > MAX_AGE_S * 1000000000ull)
        ago = MAX_AGE_S * 1000000000ull;
    return now - gp_ticks_from_ns(ago);
}

typedef struct beginning {
    const prof_span_options_t *options; // whole
    prof_coro_t *coro;
    bool has_parent; // which is open in this process
    parent_t parent;
    bool sets_trace; // what is open on the coroutine is not its parent
    bool is_chosen;
} beginning_t;

static void choose_trace(const beginning_t *what, slot_t *slot)
{
    gp_trace_of(what->coro, slot->outer_trace);
    if (what->has_parent)
        memcpy(slot->trace, what->parent.trace, sizeof(slot->trace));
    else if (what->options->trace != NULL)
        memcpy(slot->trace, what->options->trace->bytes, sizeof(slot->trace));
    else
        memcpy(slot->trace, slot->outer_trace, sizeof(slot->trace));
    if (slot->trace[0] == 0 && slot->trace[1] == 0)
        new_trace(slot->trace);
}

static slot_t *take_slot(uint32_t *number)
{
    if (!pop_slot(number) && (!map_slots() || !pop_slot(number))) {
        count(GP_COUNTER_LOST_SPANS);
        return NULL;
    }
    return slot_at(*number);
}

static void fill_slot(slot_t *slot, uint64_t handle, const beginning_t *what, prof_span_kind_t kind, const char *name)
{
    const prof_span_options_t *options = what->options;
    const gp_thread_t *thread = gp_thread_self;
    slot->is_chosen = what->is_chosen;
    slot->sets_trace = what->sets_trace;
    slot->kind = (uint16_t)kind;
    slot->field_count = 0;
    slot->site = 0;
    slot->thread = thread != NULL ? thread->index : 0;
    slot->process = atomic_load_explicit(&process, memory_order_relaxed);
    slot->coro = what->coro;
    slot->coro_id = atomic_load_explicit(&what->coro->id, memory_order_relaxed);
    slot->id = id_of(handle);
    slot->parent_id = what->has_parent ? what->parent.id : options->parent_id;
    slot->outer = gp_edge_load(&what->coro->span);
    slot->request = what->has_parent ? what->parent.request : handle;
    unsigned flags = (options->flags & PROF_SPAN_REMOTE_PARENT ? GP_SPAN_REMOTE_PARENT : 0) |
                     (options->flags & PROF_SPAN_PROFILE ? GP_SPAN_ASKED : 0);
    atomic_store_explicit(&slot->flags, (uint16_t)flags, memory_order_relaxed);
    atomic_store_explicit(&slot->text_len, 0, memory_order_relaxed);
    choose_trace(what, slot);
    slot->name_len = (uint16_t)cut(name, GP_SPAN_NAME_MAX);
    memcpy(slot->text, name, slot->name_len);
    atomic_store_explicit(&slot->text_len, slot->name_len, memory_order_relaxed);
    for (size_t i = 0; i < options->field_count; i++)
        if (options->fields[i].key != NULL && options->fields[i].value != NULL)
            add_field(slot, options->fields[i].key, options->fields[i].value);
}

static void begin_watching(const beginning_t *what, slot_t *slot)
{
    slot->watch = atomic_load_explicit(&gp_request_watch, memory_order_acquire);
    bool is_watched = slot->watch != NULL && !what->has_parent && what->is_chosen;
    slot->watched = is_watched ? slot->watch->begins() : NULL;
}

// The slot is the caller's. In a forked child, the parent goes on with what began before.
static void end_watching(slot_t *slot, gp_request_end_t end, uint64_t now)
{
    if (slot->watched == NULL || slot->process != atomic_load_explicit(&process, memory_order_relaxed))
        return;
    memcpy(end.trace, slot->trace, sizeof(end.trace));
    end.id = slot->id;
    end.duration_ns = gp_ticks_to_ns(not_below(now, slot->start));
    end.is_asked = atomic_load_explicit(&slot->flags, memory_order_relaxed) & GP_SPAN_ASKED;
    slot->watch->ends(slot->watched, &end);
}

static uint64_t begin(const beginning_t *what, prof_span_kind_t kind, const char *name, const gp_park_t *caller)
{
    uint32_t number;
    slot_t *slot = take_slot(&number);
    if (slot == NULL)
        return 0;
    uint64_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed) + 1;
    uint64_t handle = handle_of(number, generation);
    fill_slot(slot, handle, what, kind, name);
    if (what->options->flags & PROF_SPAN_STACK)
        slot->site = gp_spawn_site_here(what->coro, caller);
    if (slot->sets_trace)
        gp_trace_change(what->coro, slot->trace);
    begin_watching(what, slot);
    slot->begun = gp_ticks();
    slot->start = start_of(what->options->start_unix_ns, slot->begun);
    read_times(what->coro, slot->begun, &slot->times);
    // Release: partner of the acquire in open_slot().
    atomic_store_explicit(&slot->generation, generation, memory_order_release);
    gp_edge_store(&what->coro->span, handle);
    gp_shown_update(gp_thread_self, what->coro);
    return handle;
}

static bool is_for_listeners(prof_span_kind_t kind, const char *name, uint32_t flags)
{
    gp_span_policy_t *policy = atomic_load_explicit(&gp_span_policy, memory_order_acquire);
    return (flags & PROF_SPAN_PROFILE) || policy == NULL || policy(kind, name);
}

// A request begins, and nothing is to record it: nor what is within it.
static prof_span_t *skip_request(prof_coro_t *coro)
{
    uint64_t handle = UNRECORDED(atomic_load_explicit(&coro->id, memory_order_relaxed));
    gp_edge_store(&coro->span, handle);
    return (prof_span_t *)(uintptr_t)handle;
}

// What is open on the coroutine; NULL: nothing, or what it inherited is over.
static slot_t *current(prof_coro_t *coro)
{
    return open_slot(gp_edge_load(&coro->span));
}

// Does the coroutine work for a request that is not recorded? What a pool's coroutine inherited from the one that
// spawned it ends where a request of its own begins.
static bool is_skipped(prof_coro_t *coro, prof_span_kind_t kind, uint32_t flags)
{
    uint64_t handle = gp_edge_load(&coro->span);
    bool is_request = kind == PROF_SPAN_REQUEST || kind == PROF_SPAN_REST_DISPATCH || kind == PROF_SPAN_RPC_DISPATCH;
    bool is_own = handle == UNRECORDED(atomic_load_explicit(&coro->id, memory_order_relaxed));
    return is_unrecorded(handle) && !(flags & PROF_SPAN_REMOTE_PARENT) && (is_own || !is_request);
}

static void find_parent(beginning_t *what)
{
    uint64_t around = gp_edge_load(&what->coro->span), id = what->options->parent_id;
    uint64_t handle = id != 0 ? handle_of_id(id) : around;
    what->has_parent = !(what->options->flags & PROF_SPAN_REMOTE_PARENT) && read_parent(handle, &what->parent) &&
                       (id == 0 || id == what->parent.id);
    what->sets_trace = !what->has_parent || handle != around;
}

__attribute__((noinline)) static prof_span_t *begin_wanted(prof_span_kind_t kind, const char *name,
                                                           const prof_span_options_t *options, uint32_t takers,
                                                           const gp_park_t *caller)
{
    prof_span_options_t full = PROF_SPAN_OPTIONS_INIT;
    if (options != NULL)
        memcpy(&full, options, options->size < sizeof(full) ? options->size : sizeof(full));
    beginning_t what = {.options = &full, .coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0))};
    if (what.coro == NULL || (unsigned)kind - 1 >= GP_SPAN_KIND_COUNT - 1 || is_skipped(what.coro, kind, full.flags))
        return NULL;
    find_parent(&what);
    what.is_chosen = what.has_parent ? what.parent.is_chosen : is_for_listeners(kind, name, full.flags);
    if (!(takers & FOR_ALL) && !what.is_chosen)
        return !what.has_parent ? skip_request(what.coro) : NULL;
    return (prof_span_t *)(uintptr_t)begin(&what, kind, name != NULL ? name : "", caller);
}

prof_span_t *prof_span_begin(prof_span_kind_t kind, const char *name, const prof_span_options_t *options)
{
    uint32_t takers = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (__builtin_expect(takers == 0 || !__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED), 1))
        return NULL;
    gp_park_t caller = gp_spawn_caller();
    return begin_wanted(kind, name, options, takers, &caller);
}

// --- the end

// Take a span: of all that end it, one does.
static bool claim(slot_t *slot, uint64_t handle)
{
    uint64_t generation = generation_of(handle);
    return atomic_compare_exchange_strong_explicit(&slot->generation, &generation, generation + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static void give_back(uint64_t handle)
{
    put_slots(number_of(handle), number_of(handle));
}

// What is open around a span; of what was, another thread may have ended the innermost.
static uint64_t around(const slot_t *slot)
{
    if (is_unrecorded(slot->outer) || open_slot(slot->outer) != NULL)
        return slot->outer;
    const slot_t *request = open_slot(slot->request);
    return request != NULL && request != slot ? slot->request : 0;
}

// What was open around a span that is taken goes on.
static void restore(prof_coro_t *coro, const slot_t *slot)
{
    uint64_t trace[2];
    gp_trace_of(coro, trace);
    if (slot->sets_trace && memcmp(trace, slot->trace, sizeof(trace)) == 0)
        gp_trace_change(coro, slot->outer_trace);
    gp_edge_store(&coro->span, around(slot));
    gp_shown_update(gp_thread_self, coro);
}

// It ends elsewhere: what is open on its coroutine is what was around it, unless that has begun another one meanwhile.
static void restore_from_outside(const slot_t *slot, uint64_t handle)
{
    if (is_known(slot))
        atomic_compare_exchange_strong_explicit(&slot->coro->span, &handle, around(slot), memory_order_relaxed,
                                                memory_order_relaxed);
}

// Returns false: another thread has just ended it.
static bool end_one(uint64_t handle, prof_coro_t *coro, bool is_on_it, unsigned flags, uint64_t now)
{
    slot_t *slot = open_slot(handle);
    if (slot == NULL || !claim(slot, handle))
        return false;
    end_watching(slot, (gp_request_end_t){0}, now);
    if (is_on_it)
        restore(coro, slot);
    else
        restore_from_outside(slot, handle);
    if (slot->process == atomic_load_explicit(&process, memory_order_relaxed))
        send(slot, coro, flags, now);
    give_back(handle);
    return true;
}

// Is `handle` open on the coroutine, perhaps with others within it?
static bool is_around(prof_coro_t *coro, uint64_t handle)
{
    uint64_t at = gp_edge_load(&coro->span);
    for (slot_t *slot; (slot = open_slot(at)) != NULL && is_own(slot, coro); at = around(slot))
        if (at == handle)
            return true;
    return false;
}

static bool end_on(prof_coro_t *coro, uint64_t handle, uint64_t now)
{
    for (uint64_t at; (at = gp_edge_load(&coro->span)) != handle;) {
        if (!end_one(at, coro, true, GP_SPAN_REPAIRED, now))
            break;
        count(GP_COUNTER_UNBALANCED_SPANS);
    }
    return end_one(handle, coro, true, 0, now);
}

// Ended elsewhere, what is left of it here may be that it is still called open.
static void drop_stale(prof_coro_t *coro)
{
    uint64_t at = gp_edge_load(&coro->span);
    if (at != 0 && !is_unrecorded(at) && open_slot(at) == NULL)
        gp_edge_store(&coro->span, 0);
}

__attribute__((noinline)) static int end_recorded(uint64_t handle)
{
    uint64_t now = gp_ticks();
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro != NULL)
        drop_stale(coro);
    bool is_on_it = coro != NULL && is_around(coro, handle);
    if (is_on_it ? end_on(coro, handle, now) : end_one(handle, coro, false, 0, now))
        return 0;
    count(GP_COUNTER_UNBALANCED_SPANS);
    return -EINVAL;
}

int prof_span_end(prof_span_t *span)
{
    uint64_t handle = (uintptr_t)span;
    if (handle == 0)
        return 0;
    if (!is_unrecorded(handle))
        return end_recorded(handle);
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro != NULL && gp_edge_load(&coro->span) == handle)
        gp_edge_store(&coro->span, 0);
    return 0;
}

// --- what is said of an open one

int prof_span_set(prof_span_t *span, const char *key, const char *value)
{
    uint64_t handle = (uintptr_t)span;
    if (handle == 0 || is_unrecorded(handle))
        return 0;
    slot_t *slot = open_slot(handle);
    if (slot == NULL || key == NULL || key[0] == '\0')
        return -EINVAL;
    return add_field(slot, key, value != NULL ? value : "");
}

int prof_span_fail(prof_span_t *span, const char *type, const char *message)
{
    uint64_t handle = (uintptr_t)span;
    if (handle == 0 || is_unrecorded(handle))
        return 0;
    slot_t *slot = open_slot(handle);
    if (slot == NULL)
        return -EINVAL;
    atomic_fetch_or_explicit(&slot->flags, GP_SPAN_FAILED, memory_order_relaxed);
    int result = type != NULL ? add_field(slot, "error.type", type) : 0;
    int other = message != NULL ? add_field(slot, "error.message", message) : 0;
    return result != 0 ? result : other;
}

uint64_t prof_span_id(const prof_span_t *span)
{
    const slot_t *slot = open_slot((uintptr_t)span);
    return slot != NULL ? slot->id : 0;
}

uint64_t prof_span_current(void)
{
    if (atomic_load_explicit(&wanted, memory_order_relaxed) == 0)
        return 0;
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    const slot_t *slot = coro != NULL ? current(coro) : NULL;
    return slot != NULL ? slot->id : 0;
}

// --- prof_trace_set()

void gp_span_begin_implicit(prof_coro_t *coro)
{
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    uint32_t takers = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (takers == 0 || !__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) || current(coro) != NULL ||
        is_unrecorded(gp_edge_load(&coro->span)))
        return;
    beginning_t what = {.options = &options, .coro = coro};
    what.is_chosen = is_for_listeners(PROF_SPAN_REQUEST, "", 0);
    if (!(takers & FOR_ALL) && !what.is_chosen)
        return;
    const gp_park_t nowhere = {0};
    slot_t *slot = open_slot(begin(&what, PROF_SPAN_REQUEST, "", &nowhere));
    if (slot == NULL)
        return;
    memset(slot->outer_trace, 0, sizeof(slot->outer_trace));
    atomic_fetch_or_explicit(&slot->flags, GP_SPAN_IMPLICIT, memory_order_relaxed);
}

static bool is_implicit(const slot_t *slot)
{
    return atomic_load_explicit(&slot->flags, memory_order_relaxed) & GP_SPAN_IMPLICIT;
}

void gp_span_end_implicit(prof_coro_t *coro)
{
    drop_stale(coro);
    uint64_t at = gp_edge_load(&coro->span);
    const slot_t *slot = open_slot(at);
    if (slot != NULL && is_own(slot, coro) && is_implicit(slot))
        end_on(coro, at, gp_ticks());
}

void gp_span_discard(prof_span_t *span)
{
    uint64_t handle = (uintptr_t)span;
    slot_t *slot = open_slot(handle);
    if (slot == NULL)
        return;
    if (gp_edge_load(&slot->coro->span) == handle)
        restore(slot->coro, slot);
    if (!claim(slot, handle))
        return;
    end_watching(slot, (gp_request_end_t){.is_discarded = true}, slot->start);
    give_back(handle);
}

// --- by the collector

typedef union written { // a mark that goes to no ring
    gp_span_mark_t mark;
    char bytes[sizeof(gp_span_mark_t) + GP_SPAN_TEXT_MAX];
} written_t;

// Copy what a slot says, unless it is over by then. What is added to it meanwhile may be missing.
static bool copy_open(const slot_t *slot, uint64_t generation, uint64_t now, written_t *written)
{
    uint16_t text_len = atomic_load_explicit(&slot->text_len, memory_order_acquire);
    fill(&written->mark, slot, now);
    memcpy(written->mark.text, slot->text, text_len);
    unsigned texts = 0;
    for (uint16_t i = written->mark.name_len; i < text_len; i++)
        texts += written->mark.text[i] == '\0';
    if (texts % 2 != 0) // a key without its value, yet
        do
            text_len--;
        while (text_len > written->mark.name_len && written->mark.text[text_len - 1] != '\0');
    written->mark.field_count = (uint16_t)(texts / 2);
    written->mark.fields_len = (uint16_t)(text_len - written->mark.name_len);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->generation, memory_order_relaxed) == generation &&
           slot->process == atomic_load_explicit(&process, memory_order_relaxed);
}

void gp_span_each_open(uint64_t now, void (*take)(const gp_span_mark_t *mark))
{
    static written_t written; // the drain lock
    uint32_t slots = atomic_load_explicit(&slot_count, memory_order_relaxed);
    for (uint32_t i = 0; i < slots; i++) {
        if (atomic_load_explicit(&chunks[i >> CHUNK_LOG2], memory_order_acquire) == NULL)
            continue;
        const slot_t *slot = slot_at(i);
        uint64_t generation = atomic_load_explicit(&slot->generation, memory_order_acquire);
        if (!(generation & 1) || !copy_open(slot, generation, now, &written))
            continue;
        written.mark.flags |= GP_SPAN_OPEN;
        take(&written.mark);
    }
}

void gp_span_coro_over(prof_coro_t *coro, uint64_t id, uint64_t ticks, void (*take)(const gp_span_mark_t *mark))
{
    static written_t written; // the drain lock
    uint64_t handle = gp_edge_load(&coro->span);
    slot_t *slot = open_slot(handle);
    if (slot == NULL || slot->coro != coro || slot->coro_id != id || !is_implicit(slot) ||
        !copy_open(slot, generation_of(handle), ticks, &written) || !claim(slot, handle))
        return;
    end_watching(slot, (gp_request_end_t){.is_collector = true}, ticks);
    written.mark.end_coro_id = id;
    take(&written.mark);
    give_back(handle);
}

void gp_spans_after_fork(void)
{
    atomic_fetch_add_explicit(&process, 1, memory_order_relaxed);
    atomic_store_explicit(&id_seed, 0, memory_order_relaxed);
}
