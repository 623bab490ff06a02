// SPDX-License-Identifier: MIT
// Samples and the ledger, summed up in a dataset.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "facts/dataset_private.h"

// Find or add the sums for (coro, trace); a new one also counts as one more coroutine of the trace.
static gp_dataset_share_t *dataset_samples_share_find(gp_dataset_t *dataset, uint32_t coro, uint32_t trace)
{
    uint32_t number = gp_dataset_share_find(dataset, coro, trace);
    if (number != GP_INDEX_NONE)
        return &dataset->shares.items[number];
    number = gp_table_add(&dataset->shares.table, gp_table_pair(coro, trace));
    if (number == GP_INDEX_NONE)
        return NULL;
    dataset->facts.traces.items[trace].coros++;
    if (dataset->facts.traces.items[trace].index != 0) {
        dataset->coros.items[coro].traces++;
        dataset->coros.items[coro].trace = trace;
    }
    return &dataset->shares.items[number];
}

// A coroutine mostly goes on working for the same trace.
gp_dataset_share_t *gp_dataset_share_of(gp_dataset_t *dataset, uint32_t coro, uint32_t trace)
{
    uint32_t last = dataset->coros.items[coro].share;
    if (last != 0 && dataset->shares.items[last - 1].trace == trace)
        return &dataset->shares.items[last - 1];
    gp_dataset_share_t *share = dataset_samples_share_find(dataset, coro, trace);
    if (share != NULL)
        dataset->coros.items[coro].share = (uint32_t)(share - dataset->shares.items) + 1;
    return share;
}

static gp_dataset_thread_sum_t *dataset_samples_thread_sum_of(gp_dataset_t *dataset, uint32_t index)
{
    uint32_t number = gp_table_need(&dataset->thread_sums.table, index);
    return number != GP_INDEX_NONE ? &dataset->thread_sums.items[number] : NULL;
}

static gp_sum_record_t dataset_samples_sum_key(const gp_sample_record_t *sample)
{
    return (gp_sum_record_t){.time_ns = sample->time_ns,
                             .coro_id = sample->coro_id,
                             .stack_id = sample->stack_id,
                             .trace = sample->trace,
                             .kind = sample->kind};
}

static bool dataset_samples_same_sum(const void *owner, uint32_t number, const void *key)
{
    const gp_sum_record_t *a = &((const gp_dataset_t *)owner)->sums.items[number], *b = key;
    return a->time_ns == b->time_ns && a->coro_id == b->coro_id && a->stack_id == b->stack_id && a->trace == b->trace &&
           a->kind == b->kind;
}

static uint64_t dataset_samples_hash_sum(const gp_sum_record_t *sum)
{
    uint64_t hash = gp_hash_more(gp_hash_u64(sum->time_ns), sum->coro_id);
    return gp_hash_more(gp_hash_more(hash, (uint64_t)sum->stack_id << 32 | sum->trace), sum->kind);
}

int gp_dataset_on_sum(void *context, const gp_sum_record_t *sum)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_table_append(&dataset->sums.table);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->sums.items[number] = *sum;
    return gp_index_add(&dataset->sum_index, dataset_samples_hash_sum(sum), number);
}

const gp_sum_record_t *gp_dataset_find_sum(const gp_dataset_t *dataset, const gp_sample_record_t *sample)
{
    const gp_sum_record_t key = dataset_samples_sum_key(sample);
    uint32_t number =
        gp_index_find(&dataset->sum_index, dataset_samples_hash_sum(&key), dataset_samples_same_sum, dataset, &key);
    return number != GP_INDEX_NONE ? &dataset->sums.items[number] : NULL;
}

static int dataset_samples_add_lasting(gp_dataset_t *dataset, uint64_t coro_id, uint64_t ns)
{
    uint32_t coro = gp_dataset_coro_need(dataset, coro_id);
    if (coro == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->coros.items[coro].lasting_ns += ns;
    return 0;
}

// Whose the samples before were: the next ones mostly are, too, as samples come by thread.
typedef struct latest {
    gp_dataset_thread_sum_t *thread; // NULL = none yet
    uint64_t coro_id;
    uint32_t trace;
    bool has_share;
    size_t share;
} latest_t;

static gp_dataset_share_t *dataset_samples_share_of_sample(gp_dataset_t *dataset, const gp_sample_record_t *sample,
                                                           latest_t *latest)
{
    if (latest->has_share && latest->coro_id == sample->coro_id && latest->trace == sample->trace)
        return &dataset->shares.items[latest->share];
    uint32_t coro = gp_dataset_coro_need(dataset, sample->coro_id);
    uint32_t trace = gp_dataset_trace_need(dataset, sample->trace);
    if (coro == GP_INDEX_NONE || trace == GP_INDEX_NONE)
        return NULL;
    uint32_t stack = gp_dataset_stack_need(dataset, sample->stack_id);
    if (stack != GP_INDEX_NONE &&
        dataset->facts.stacks.items[stack].depth > dataset->facts.stacks.items[dataset->coros.items[coro].stack].depth)
        dataset->coros.items[coro].stack = stack;
    gp_dataset_share_t *share = gp_dataset_share_of(dataset, coro, trace);
    latest->has_share = share != NULL;
    latest->share = share != NULL ? (size_t)(share - dataset->shares.items) : 0;
    latest->coro_id = sample->coro_id;
    latest->trace = sample->trace;
    return share;
}

static void dataset_samples_add_sampled(gp_sampled_t *sampled, const gp_sampled_t *more)
{
    sampled->ns += more->ns;
    sampled->samples += more->samples;
}

// Add samples that differ in moment, weight and stack only.
//   sample: one of them.
static int dataset_samples_add_run(gp_dataset_t *dataset, const gp_sample_record_t *sample, const gp_sampled_t *run,
                                   latest_t *latest)
{
    bool is_lasting = gp_dataset_is_lasting(sample);
    if (is_lasting && dataset_samples_add_lasting(dataset, sample->coro_id, run->ns) < 0)
        return -ENOMEM;
    if (sample->kind >= GP_KIND_COUNT || !gp_dataset_has_sample(dataset, sample))
        return 0; // a later version has added kinds
    gp_dataset_share_t *share = dataset_samples_share_of_sample(dataset, sample, latest);
    if (share == NULL)
        return -ENOMEM;
    dataset_samples_add_sampled(&share->sampled[sample->kind], run);
    share->lasting_ns[sample->kind] += is_lasting ? run->ns : 0;
    if (sample->kind != GP_KIND_CPU)
        return 0;
    if (latest->thread == NULL || latest->thread->index != sample->thread)
        latest->thread = dataset_samples_thread_sum_of(dataset, sample->thread);
    if (latest->thread == NULL)
        return -ENOMEM;
    dataset_samples_add_sampled(&latest->thread->sampled, run);
    return 0;
}

static bool dataset_samples_is_same_run(const gp_dataset_t *dataset, const gp_sample_record_t *a,
                                        const gp_sample_record_t *b)
{
    return a->coro_id == b->coro_id && a->kind == b->kind && a->thread == b->thread && a->trace == b->trace &&
           gp_dataset_has_sample(dataset, a) == gp_dataset_has_sample(dataset, b);
}

// Readiness of a coroutine that has not run yet is told by its birth, by no report.
static bool dataset_samples_is_ready_by_report(const gp_dataset_t *dataset, uint32_t kind, uint32_t stack)
{
    const gp_facts_stack_t *at = &dataset->facts.stacks.items[stack];
    return kind == GP_KIND_PARKED || (kind == GP_KIND_READY && !(at->depth > 0 && gp_kind_is_told(at->frames[0])));
}

// Add as many of the samples as there are in one run, at least one. Returns how many, or -ENOMEM.
static ssize_t dataset_samples_take_run(gp_dataset_t *dataset, const gp_sample_record_t *samples, size_t count,
                                        latest_t *latest)
{
    const gp_sample_record_t *sample = samples, *end = samples + count;
    bool is_counted = samples->kind < GP_KIND_COUNT && gp_dataset_has_sample(dataset, samples);
    gp_sampled_t run = {0};
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    do {
        const gp_sum_record_t *sum = gp_dataset_sum_of(dataset, sample);
        uint32_t stack = is_counted ? gp_dataset_stack_need(dataset, sample->stack_id) : 0;
        if (stack == GP_INDEX_NONE)
            return -ENOMEM;
        dataset->tells_ready = dataset->tells_ready || dataset_samples_is_ready_by_report(dataset, sample->kind, stack);
        first_ns = sample->time_ns < first_ns ? sample->time_ns : first_ns;
        last_ns = sample->time_ns > last_ns ? sample->time_ns : last_ns;
        run.ns += sample->weight_ns;
        run.samples += sum != NULL ? sum->samples : 1;
    } while (++sample < end && dataset_samples_is_same_run(dataset, samples, sample));
    gp_facts_seen_at(&dataset->facts, last_ns);
    if (samples->kind == GP_KIND_CPU &&
        gp_dataset_extend(dataset, samples->trace, samples->coro_id, first_ns, last_ns) < 0)
        return -ENOMEM;
    return dataset_samples_add_run(dataset, samples, &run, latest) == 0 ? sample - samples : -ENOMEM;
}

// Have the stacks ready that are looked at where another coroutine begins: they are not all in the nearest cache.
static void dataset_samples_expect_stacks(const gp_dataset_t *dataset, const gp_sample_record_t *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t stack = i == 0 || samples[i].coro_id != samples[i - 1].coro_id
                             ? gp_id_map_find(&dataset->facts.stacks.table.map, samples[i].stack_id)
                             : GP_INDEX_NONE;
        if (stack != GP_INDEX_NONE)
            gp_prefetch(&dataset->facts.stacks.items[stack]);
    }
}

int gp_dataset_on_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_dataset_t *dataset = context;
    latest_t latest = {0};
    dataset->samples_read += count;
    dataset_samples_expect_stacks(dataset, samples, count);
    while (count > 0) {
        ssize_t taken = dataset_samples_take_run(dataset, samples, count, &latest);
        if (taken < 0)
            return (int)taken;
        samples += taken;
        count -= (size_t)taken;
    }
    return 0;
}

bool gp_dataset_has_sleeps(const gp_dataset_t *dataset)
{
    return dataset->facts.header.clock == 1 || dataset->has_sleeps;
}

uint64_t gp_dataset_coro_ns(const gp_dataset_t *dataset, uint32_t coro, const gp_ledger_t *ledger,
                            enum gp_sample_kind kind)
{
    bool is_pooled = dataset->facts.coros.items[coro].pool != 0;
    if (is_pooled && kind == GP_KIND_READY)
        return 0;
    return gp_ledger_kind_ns(ledger, is_pooled && kind == GP_KIND_QUEUED ? GP_KIND_READY : kind);
}

uint64_t gp_dataset_share_ns(const gp_dataset_t *dataset, const gp_dataset_share_t *share, enum gp_sample_kind kind)
{
    if (gp_dataset_is_ordinary(dataset, share->coro))
        return kind != GP_KIND_BLOCKED || gp_dataset_has_sleeps(dataset) ? gp_ledger_kind_ns(&share->ledger, kind) : 0;
    bool is_thread = dataset->facts.coros.items[share->coro].record.kind == GP_CORO_THREAD;
    bool has_times = dataset->facts.totals.time_ns > 0; // else no exact time is known of anything
    if (is_thread && kind == GP_KIND_BLOCKED)
        return has_times ? share->sampled[kind].ns : 0;
    return is_thread && kind == GP_KIND_PREEMPTED ? 0 : gp_dataset_coro_ns(dataset, share->coro, &share->ledger, kind);
}

int gp_dataset_on_ledger(void *context, const gp_ledger_record_t *ledger)
{
    gp_dataset_t *dataset = context;
    gp_facts_seen_at(&dataset->facts, ledger->time_ns);
    uint32_t coro = gp_dataset_coro_need(dataset, ledger->coro_id);
    if (coro == GP_INDEX_NONE)
        return -ENOMEM;
    int64_t waited_ns = (int64_t)(ledger->ready_ns + ledger->parked_ns + ledger->waiting_ns);
    dataset->coros.items[coro].is_whole |= ledger->flags & GP_LEDGER_WHOLE;
    dataset->coros.items[coro].is_switched |= ledger->switches > 0;
    if (waited_ns < 0)
        dataset->coros.items[coro].taken_back_ns -= (uint64_t)waited_ns;
    if (dataset->windowed)
        return 0;
    uint32_t trace = gp_dataset_trace_need(dataset, ledger->trace);
    if (trace == GP_INDEX_NONE)
        return -ENOMEM;
    gp_dataset_share_t *share = gp_dataset_share_of(dataset, coro, trace);
    if (share == NULL)
        return -ENOMEM;
    const gp_ledger_t more = {
        .cpu_ns = ledger->cpu_ns,
        .blocked_ns = ledger->blocked_ns,
        .slice_ns = ledger->slice_ns,
        .ready_ns = ledger->ready_ns,
        .parked_ns = ledger->parked_ns,
        .waiting_ns = ledger->waiting_ns,
        .switches = ledger->switches,
        .spawned = ledger->spawned,
        .longest_ns = ledger->longest_ns,
        .gil_ns = ledger->gil_ns,
        .lock_ns = ledger->lock_ns,
    };
    gp_ledger_add(&share->ledger, &more);
    return 0;
}

// The part of samples of waits without an end that was taken back later.
static void dataset_samples_take_back(gp_dataset_t *dataset)
{
    for (size_t i = 0; i < dataset->coros.count; i++) {
        gp_dataset_coro_t *coro = &dataset->coros.items[i];
        uint64_t kept = coro->lasting_ns > coro->taken_back_ns ? coro->lasting_ns - coro->taken_back_ns : 0;
        coro->lasting_kept = coro->taken_back_ns > 0 ? (double)kept / ((double)coro->lasting_ns + 1) : 1;
    }
    for (size_t i = 0; i < dataset->shares.count; i++) {
        gp_dataset_share_t *share = &dataset->shares.items[i];
        for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++) {
            double lost = 1 - dataset->coros.items[share->coro].lasting_kept;
            share->sampled[kind].ns -= (uint64_t)(lost * (double)share->lasting_ns[kind]);
        }
    }
}

void gp_dataset_sum_up(gp_dataset_t *dataset)
{
    dataset_samples_take_back(dataset);
    for (size_t i = 0; i < dataset->shares.count; i++) {
        gp_dataset_share_t *share = &dataset->shares.items[i];
        share->ledger.cpu_ns = gp_ledger_kind_ns(&share->ledger, GP_KIND_CPU); // not below zero
        gp_ledger_add(&dataset->coros.items[share->coro].ledger, &share->ledger);
        dataset->has_sleeps |= dataset->facts.coros.items[share->coro].record.kind == GP_CORO_THREAD &&
                               share->sampled[GP_KIND_BLOCKED].ns > 0;
        dataset->has_gil |= (int64_t)share->ledger.gil_ns > 0;
        dataset->has_lock |= (int64_t)share->ledger.lock_ns > 0;
        dataset->has_queued |= gp_dataset_coro_ns(dataset, share->coro, &share->ledger, GP_KIND_QUEUED) > 0;
        dataset->sampled_ns += share->sampled[GP_KIND_CPU].ns;
        dataset->samples += share->sampled[GP_KIND_CPU].samples;
    }
}

uint64_t gp_dataset_exact_ns(const gp_dataset_t *dataset)
{
    uint64_t all = dataset->facts.totals.process_cpu_ns;
    uint64_t unsampled =
        dataset->facts.counters[GP_COUNTER_UNSAMPLED_NS] + dataset->facts.counters[GP_COUNTER_REST_CPU_NS];
    return !dataset->windowed && all > unsampled ? all - unsampled : 0;
}

int gp_dataset_read(const gp_dataset_t *dataset, gp_reading_t *reading)
{
    char error[GP_READER_ERROR_SIZE];
    if (reading->count > GP_READING_MOST)
        return -E2BIG;
    for (size_t i = 1; i < reading->count; i++)
        reading->takers[i - 1].next = &reading->takers[i];
    if (reading->count == 0)
        return 0;
    if (dataset->lives != NULL)
        return gp_dataset_read_lifetimes(dataset, reading->takers, error);
    gp_captures_t *captures = (gp_captures_t *)(uintptr_t)&dataset->captures; // reading changes no kept data
    return gp_captures_read_again(captures, reading->takers, error);
}

int gp_dataset_read_for(const gp_dataset_t *dataset, const gp_reader_handlers_t *handlers, void *context)
{
    gp_reading_t reading = {0};
    gp_reading_add(&reading, handlers, context);
    return gp_dataset_read(dataset, &reading);
}
