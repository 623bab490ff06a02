// SPDX-License-Identifier: MIT
// Work of coroutines for a trace, outside the lifetime of its requests, is in no trace.
//
// Model: the lifetime of a trace is that of its root spans, together. A trace without root spans, or with one whose end
// is unknown, keeps all. Samples and activities are divided when they are read again; shares once, after all is loaded,
// by such a reading.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "facts/dataset_private.h"

static gp_dataset_window_t dataset_lifetimes_clip(uint64_t from_ns, uint64_t to_ns, const gp_dataset_window_t *window)
{
    gp_dataset_window_t part = {from_ns > window->from_ns ? from_ns : window->from_ns,
                                to_ns < window->to_ns ? to_ns : window->to_ns};
    if (part.to_ns < part.from_ns)
        part.to_ns = part.from_ns;
    return part;
}

static uint64_t dataset_lifetimes_length(uint64_t from_ns, uint64_t to_ns, const gp_dataset_window_t *window)
{
    gp_dataset_window_t part = dataset_lifetimes_clip(from_ns, to_ns, window);
    return part.to_ns - part.from_ns;
}

gp_ledger_t gp_dataset_activity_times(const gp_activity_record_t *activity, uint64_t from_ns, uint64_t to_ns)
{
    const gp_dataset_window_t window = {from_ns, to_ns};
    uint64_t active = activity->left_ns - activity->start_ns, slice = activity->slice_ns;
    bool is_known =
        activity->ready_ns != 0 && activity->ready_ns >= activity->left_ns && activity->ready_ns <= activity->end_ns;
    if (activity->start_ns > activity->left_ns || activity->left_ns > activity->end_ns)
        return (gp_ledger_t){0};
    if (slice > active)
        slice = active;
    uint64_t in = dataset_lifetimes_length(activity->start_ns, activity->left_ns, &window);
    return (gp_ledger_t){
        .slice_ns = active > 0 ? (uint64_t)((unsigned __int128)slice * in / active) : 0,
        .ready_ns = is_known ? dataset_lifetimes_length(activity->ready_ns, activity->end_ns, &window) : 0,
        .parked_ns = is_known ? dataset_lifetimes_length(activity->left_ns, activity->ready_ns, &window) : 0,
        .waiting_ns = is_known ? 0 : dataset_lifetimes_length(activity->left_ns, activity->end_ns, &window),
    };
}

// --- lifetimes

static int dataset_lifetimes_by_start(const void *left, const void *right)
{
    const gp_dataset_window_t *a = left, *b = right;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

// Make those of a trace distinct. Returns how many are left.
static uint32_t dataset_lifetimes_unite(gp_dataset_window_t *lifetimes, uint32_t count)
{
    uint32_t kept = 0;
    if (count > 0)
        qsort(lifetimes, count, sizeof(*lifetimes), dataset_lifetimes_by_start);
    for (uint32_t i = 0; i < count; i++) {
        if (kept > 0 && lifetimes[i].from_ns <= lifetimes[kept - 1].to_ns) {
            if (lifetimes[i].to_ns > lifetimes[kept - 1].to_ns)
                lifetimes[kept - 1].to_ns = lifetimes[i].to_ns;
        } else {
            lifetimes[kept++] = lifetimes[i];
        }
    }
    return kept;
}

static int dataset_lifetimes_find_lifetimes(gp_dataset_t *dataset)
{
    gp_dataset_life_t *lives = calloc(dataset->facts.traces.count + 1, sizeof(*lives));
    dataset->lifetimes = calloc(dataset->spans.count + 1, sizeof(*dataset->lifetimes));
    dataset->lives = lives;
    if (lives == NULL || dataset->lifetimes == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->spans.count; i++)
        if (gp_dataset_is_request(&dataset->spans.items[i]))
            lives[dataset->spans.items[i].trace].count++;
    for (size_t i = 1; i < dataset->facts.traces.count; i++)
        lives[i].first = lives[i - 1].first + lives[i - 1].count;
    for (size_t i = 0; i < dataset->facts.traces.count; i++)
        lives[i].count = 0;
    for (size_t i = 0; i < dataset->spans.count; i++) {
        const gp_dataset_span_t *span = &dataset->spans.items[i];
        gp_dataset_life_t *life = &lives[span->trace];
        if (gp_dataset_is_request(span) && gp_dataset_has_end(span))
            dataset->lifetimes[life->first + life->count++] = (gp_dataset_window_t){span->is.start, span->is.end};
    }
    for (size_t i = 0; i < dataset->facts.traces.count; i++)
        lives[i].count = dataset_lifetimes_unite(dataset->lifetimes + lives[i].first, lives[i].count);
    for (size_t i = 0; i < dataset->spans.count; i++)
        if (!gp_dataset_has_end(&dataset->spans.items[i]))
            lives[dataset->spans.items[i].trace].count = 0;
    lives[0].count = 0; // "no trace" has none
    return 0;
}

// The lifetime of a trace that began last before a moment; NULL = none did.
static const gp_dataset_window_t *dataset_lifetimes_lifetime_before(const gp_dataset_t *dataset, uint32_t trace,
                                                                    uint64_t at_ns)
{
    const gp_dataset_window_t *lifetimes = dataset->lifetimes + dataset->lives[trace].first;
    uint32_t lo = 0, hi = dataset->lives[trace].count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (lifetimes[mid].from_ns <= at_ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? &lifetimes[lo - 1] : NULL;
}

// How much of a sample of a trace is within its lifetime. A sample of running stands for its moment; a wait's part
// after the end is outside. A wait's part before the beginning is inside: short waits stand for others without samples.
static uint64_t dataset_lifetimes_inside(const gp_dataset_t *dataset, uint32_t trace, const gp_sample_record_t *sample)
{
    const gp_dataset_window_t *lifetime = dataset_lifetimes_lifetime_before(dataset, trace, sample->time_ns);
    if (lifetime == NULL)
        return 0;
    if (sample->time_ns <= lifetime->to_ns)
        return sample->weight_ns;
    uint64_t after = sample->time_ns - lifetime->to_ns;
    return sample->kind != GP_KIND_CPU && sample->weight_ns > after ? sample->weight_ns - after : 0;
}

// The number of a trace that has a lifetime; else 0.
static uint32_t dataset_lifetimes_living_trace(const gp_dataset_t *dataset, uint32_t index)
{
    uint32_t trace = index != 0 ? gp_dataset_trace_index_find(dataset, index) : 0;
    return trace != GP_INDEX_NONE && dataset->lives[trace].count > 0 ? trace : 0;
}

// --- reading again

typedef struct reading {
    const gp_dataset_t *dataset;
    const gp_taker_t *takers;
} reading_t;

static int dataset_lifetimes_give_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    enum { MANY = 256 };
    const reading_t *reading = context;
    gp_sample_record_t parts[2 * MANY];
    int result = 0;
    for (size_t at = 0; at < count && result == 0;) {
        size_t filled = 0;
        for (; at < count && filled + 2 <= 2 * MANY; at++) {
            uint32_t trace = dataset_lifetimes_living_trace(reading->dataset, samples[at].trace);
            uint64_t in =
                trace != 0 ? dataset_lifetimes_inside(reading->dataset, trace, &samples[at]) : samples[at].weight_ns;
            gp_sample_record_t out = samples[at];
            out.trace = 0;
            out.weight_ns -= in;
            if (in > 0 || out.weight_ns == 0) {
                parts[filled] = samples[at];
                parts[filled++].weight_ns = in;
            }
            if (out.weight_ns > 0)
                parts[filled++] = out;
        }
        result = gp_takers_give_samples(reading->takers, parts, filled);
    }
    return result;
}

static int dataset_lifetimes_give_activity(void *context, const gp_activity_record_t *activity)
{
    const reading_t *reading = context;
    uint32_t trace = dataset_lifetimes_living_trace(reading->dataset, activity->trace);
    gp_activity_record_t item = *activity;
    if (trace != 0) {
        const gp_dataset_window_t *lifetime =
            dataset_lifetimes_lifetime_before(reading->dataset, trace, activity->start_ns);
        const gp_dataset_window_t *next = dataset_lifetimes_lifetime_before(reading->dataset, trace, activity->end_ns);
        if (next == lifetime && (lifetime == NULL || activity->start_ns >= lifetime->to_ns))
            item.trace = 0;
    }
    return gp_takers_give_activity(reading->takers, &item);
}

int gp_dataset_read_lifetimes(const gp_dataset_t *dataset, const gp_taker_t *takers, char error[GP_READER_ERROR_SIZE])
{
    gp_captures_t *captures = (gp_captures_t *)(uintptr_t)&dataset->captures; // reading changes no kept data
    const gp_reader_handlers_t own = {
        .samples = gp_takers_want_samples(takers) ? dataset_lifetimes_give_samples : NULL,
        .activity = gp_takers_want_activities(takers) ? dataset_lifetimes_give_activity : NULL,
    };
    reading_t reading = {dataset, takers};
    const gp_taker_t taker = {&own, &reading, NULL};
    return gp_captures_read_again(captures, &taker, error);
}

// --- shares

static gp_dataset_share_t *dataset_lifetimes_living_share(const gp_dataset_t *dataset, uint32_t trace, uint64_t coro_id)
{
    uint32_t coro = trace != 0 ? gp_dataset_coro_find(dataset, coro_id) : GP_INDEX_NONE;
    uint32_t share = coro != GP_INDEX_NONE ? gp_dataset_share_find(dataset, coro, trace) : GP_INDEX_NONE;
    return share != GP_INDEX_NONE ? &dataset->shares.items[share] : NULL;
}

// The same coroutine, without a trace. May move the shares.
static gp_dataset_share_t *dataset_lifetimes_traceless_share(gp_dataset_t *dataset, uint32_t coro)
{
    return gp_dataset_share_of(dataset, coro, 0);
}

static int dataset_lifetimes_move_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_dataset_t *dataset = context;
    for (size_t i = 0; i < count; i++) {
        const gp_sample_record_t *sample = &samples[i];
        uint32_t trace = dataset_lifetimes_living_trace(dataset, sample->trace);
        if (trace == 0 || sample->kind >= GP_KIND_COUNT || !gp_dataset_has_sample(dataset, sample))
            continue;
        uint64_t in = dataset_lifetimes_inside(dataset, trace, sample), out = sample->weight_ns - in;
        gp_dataset_share_t *from = out > 0 ? dataset_lifetimes_living_share(dataset, trace, sample->coro_id) : NULL;
        if (from == NULL)
            continue;
        uint32_t number = (uint32_t)(from - dataset->shares.items);
        gp_dataset_share_t *to = dataset_lifetimes_traceless_share(dataset, from->coro);
        if (to == NULL)
            return -ENOMEM;
        from = &dataset->shares.items[number];
        from->sampled[sample->kind].ns -= out;
        from->sampled[sample->kind].samples -= in == 0;
        to->sampled[sample->kind].ns += out;
        to->sampled[sample->kind].samples++;
        if (gp_dataset_is_lasting(sample)) {
            from->lasting_ns[sample->kind] -= out;
            to->lasting_ns[sample->kind] += out;
        }
    }
    return 0;
}

typedef struct moved {         // of a share
    gp_ledger_t told, outside; // the activities' part of it, and of this the part outside of the lifetime
    uint64_t end_ns;           // of the last of them
} moved_t;

typedef struct moving {
    gp_dataset_t *dataset;
    moved_t *shares;
    uint64_t *ends_ns; // by coroutine: of its last activity
} moving_t;

static int dataset_lifetimes_sum_activity(void *context, const gp_activity_record_t *activity)
{
    const moving_t *moving = context;
    uint32_t trace = dataset_lifetimes_living_trace(moving->dataset, activity->trace);
    uint32_t coro = gp_dataset_coro_find(moving->dataset, activity->coro_id);
    gp_dataset_share_t *share = dataset_lifetimes_living_share(moving->dataset, trace, activity->coro_id);
    if (coro != GP_INDEX_NONE && activity->end_ns > moving->ends_ns[coro])
        moving->ends_ns[coro] = activity->end_ns;
    if (share == NULL)
        return 0;
    const gp_dataset_life_t *life = &moving->dataset->lives[trace];
    moved_t *moved = &moving->shares[share - moving->dataset->shares.items];
    gp_ledger_t all = gp_dataset_activity_times(activity, 0, UINT64_MAX), out = all;
    for (uint32_t i = 0; i < life->count; i++) {
        const gp_dataset_window_t *lifetime = &moving->dataset->lifetimes[life->first + i];
        gp_ledger_t in = gp_dataset_activity_times(activity, lifetime->from_ns, lifetime->to_ns);
        gp_ledger_subtract(&out, &in);
    }
    if (moving->dataset->facts.coros.items[share->coro].record.kind == GP_CORO_THREAD) { // they are not in its ledger
        out.ready_ns = out.parked_ns = out.waiting_ns = 0;
        all.ready_ns = all.parked_ns = all.waiting_ns = 0;
    }
    gp_ledger_add(&moved->told, &all);
    gp_ledger_add(&moved->outside, &out);
    moved->end_ns = activity->end_ns > moved->end_ns ? activity->end_ns : moved->end_ns;
    return 0;
}

// At most what is there: a wait without an end may not be in the ledger.
static void dataset_lifetimes_cap(uint64_t *moved, uint64_t there)
{
    if ((int64_t)there < 0)
        there = 0;
    if (*moved > there)
        *moved = there;
}

static uint64_t dataset_lifetimes_part_of(uint64_t whole, uint64_t part, uint64_t of)
{
    return of > 0 && (int64_t)whole > 0 ? (uint64_t)((unsigned __int128)whole * part / of) : 0;
}

static uint64_t dataset_lifetimes_beyond(uint64_t ledger_ns, uint64_t told_ns)
{
    return (int64_t)ledger_ns > 0 && ledger_ns > told_ns ? ledger_ns - told_ns : 0;
}

static uint64_t dataset_lifetimes_all_of(const gp_ledger_t *ledger)
{
    return dataset_lifetimes_beyond(ledger->slice_ns, 0) + dataset_lifetimes_beyond(ledger->ready_ns, 0) +
           dataset_lifetimes_beyond(ledger->parked_ns, 0) + dataset_lifetimes_beyond(ledger->waiting_ns, 0);
}

// The time of an activity that goes on: only the ledger has it, from the last activity up to when the ledger was
// written. Add how much is outside of the lifetime.
static void dataset_lifetimes_add_tail(const moving_t *moving, uint32_t number, moved_t *moved)
{
    const gp_dataset_t *dataset = moving->dataset;
    const gp_dataset_share_t *share = &dataset->shares.items[number];
    const gp_dataset_life_t *life = &dataset->lives[share->trace];
    const gp_ledger_t *ledger = &share->ledger, *told = &moved->told;
    uint64_t tail_ns = dataset_lifetimes_beyond(dataset_lifetimes_all_of(ledger), dataset_lifetimes_all_of(told)),
             in_ns = 0;
    uint64_t from_ns = moved->end_ns != 0 ? moved->end_ns : moving->ends_ns[share->coro];
    from_ns = from_ns != 0 ? from_ns : dataset->facts.coros.items[share->coro].record.birth_ns;
    gp_ledger_t tail = {.slice_ns = dataset_lifetimes_beyond(ledger->slice_ns, told->slice_ns),
                        .ready_ns = dataset_lifetimes_beyond(ledger->ready_ns, told->ready_ns),
                        .parked_ns = dataset_lifetimes_beyond(ledger->parked_ns, told->parked_ns),
                        .waiting_ns = dataset_lifetimes_beyond(ledger->waiting_ns, told->waiting_ns)};
    uint64_t sum_ns = dataset_lifetimes_all_of(&tail);
    for (uint32_t i = 0; i < life->count; i++)
        in_ns += dataset_lifetimes_length(from_ns, from_ns + tail_ns, &dataset->lifetimes[life->first + i]);
    if (life->count == 0 || in_ns >= tail_ns)
        return;
    uint64_t out_ns = tail_ns - in_ns; // of a wait told as one state and known as another `tail` has more than there is
    moved->outside.slice_ns += dataset_lifetimes_part_of(tail.slice_ns, out_ns, sum_ns);
    moved->outside.ready_ns += dataset_lifetimes_part_of(tail.ready_ns, out_ns, sum_ns);
    moved->outside.parked_ns += dataset_lifetimes_part_of(tail.parked_ns, out_ns, sum_ns);
    moved->outside.waiting_ns += dataset_lifetimes_part_of(tail.waiting_ns, out_ns, sum_ns);
}

static int dataset_lifetimes_move_ledger(gp_dataset_t *dataset, uint32_t number, gp_ledger_t out)
{
    gp_dataset_share_t *from = &dataset->shares.items[number];
    uint64_t undivided_ns = out.waiting_ns;
    dataset_lifetimes_cap(&out.slice_ns, from->ledger.slice_ns);
    dataset_lifetimes_cap(&out.ready_ns, from->ledger.ready_ns);
    dataset_lifetimes_cap(&out.waiting_ns, from->ledger.waiting_ns);
    out.parked_ns += undivided_ns - out.waiting_ns; // a wait that goes on: where others are told apart, it is parked
    dataset_lifetimes_cap(&out.parked_ns, from->ledger.parked_ns);
    out.cpu_ns = dataset_lifetimes_part_of(from->ledger.cpu_ns, out.slice_ns, from->ledger.slice_ns);
    out.blocked_ns = dataset_lifetimes_part_of(from->ledger.blocked_ns, out.slice_ns, from->ledger.slice_ns);
    out.gil_ns = dataset_lifetimes_part_of(from->ledger.gil_ns, out.slice_ns, from->ledger.slice_ns);
    out.lock_ns = dataset_lifetimes_part_of(from->ledger.lock_ns, out.slice_ns, from->ledger.slice_ns);
    if (out.slice_ns + out.ready_ns + out.parked_ns + out.waiting_ns == 0)
        return 0;
    gp_ledger_subtract(&from->ledger, &out);
    gp_dataset_share_t *to = dataset_lifetimes_traceless_share(dataset, from->coro);
    if (to == NULL)
        return -ENOMEM;
    gp_ledger_add(&to->ledger, &out);
    return 0;
}

int gp_dataset_apply_lifetimes(gp_dataset_t *dataset, char error[GP_READER_ERROR_SIZE])
{
    if (dataset->spans.count == 0)
        return 0;
    if (dataset_lifetimes_find_lifetimes(dataset) < 0)
        return -ENOMEM;
    const size_t shares = dataset->shares.count; // some are added
    moving_t moving = {dataset, calloc(shares + 1, sizeof(*moving.shares)),
                       calloc(dataset->coros.count + 1, sizeof(*moving.ends_ns))};
    static const gp_reader_handlers_t with_activities = {.activity = dataset_lifetimes_sum_activity},
                                      with_samples = {.samples = dataset_lifetimes_move_samples};
    const gp_taker_t samples = {&with_samples, dataset, NULL}, both = {&with_activities, &moving, &samples};
    int result = moving.shares != NULL && moving.ends_ns != NULL ? 0 : -ENOMEM;
    if (result == 0)
        result = gp_captures_read_again(&dataset->captures, dataset->windowed ? &samples : &both, error);
    for (size_t i = 0; i < shares && result == 0 && !dataset->windowed; i++) {
        dataset_lifetimes_add_tail(&moving, (uint32_t)i, &moving.shares[i]);
        result = dataset_lifetimes_move_ledger(dataset, (uint32_t)i, moving.shares[i].outside);
    }
    free(moving.shares);
    free(moving.ends_ns);
    return result;
}
