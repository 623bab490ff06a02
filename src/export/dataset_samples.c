// What a dataset makes of samples and of the ledger.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/dataset_private.h"
#include "export/strata.h"

static bool same_weight(const void *owner, uint32_t number, const void *key)
{
    const gp_dataset_weight_t *a = &((const gp_dataset_t *)owner)->weights[number], *b = key;

    return a->stack == b->stack && a->coro == b->coro && a->trace == b->trace &&
           a->thread == b->thread && a->kind == b->kind;
}

static bool same_share(const void *owner, uint32_t number, const void *key)
{
    const gp_dataset_share_t *a = &((const gp_dataset_t *)owner)->shares[number], *b = key;

    return a->coro == b->coro && a->trace == b->trace;
}

// Find or add the sum for (stack, coro, trace, thread).
static gp_dataset_weight_t *weight_of(gp_dataset_t *dataset, gp_dataset_weight_t key)
{
    uint64_t hash = gp_hash_more(gp_hash_u64((uint64_t)key.stack << 32 | key.coro),
                                 ((uint64_t)key.thread << 32 | key.trace) ^ (uint64_t)key.kind << 60);
    uint32_t number = gp_index_find(&dataset->weight_index, hash, same_weight, dataset, &key);

    if (number != GP_INDEX_NONE)
        return &dataset->weights[number];
    if (gp_grow(&dataset->weights, &dataset->weight_capacity, dataset->weight_count,
                sizeof(*dataset->weights)) < 0 ||
        gp_index_add(&dataset->weight_index, hash, (uint32_t)dataset->weight_count) < 0)
        return NULL;
    dataset->weights[dataset->weight_count] = key;
    return &dataset->weights[dataset->weight_count++];
}

// Find or add the sums for (coro, trace); a new one also counts who worked for whom.
static gp_dataset_share_t *share_find(gp_dataset_t *dataset, uint32_t coro, uint32_t trace)
{
    gp_dataset_share_t key = {.coro = coro, .trace = trace};
    uint64_t hash = gp_hash_u64((uint64_t)coro << 32 | trace);
    uint32_t number = gp_index_find(&dataset->share_index, hash, same_share, dataset, &key);

    if (number != GP_INDEX_NONE)
        return &dataset->shares[number];
    if (gp_grow(&dataset->shares, &dataset->share_capacity, dataset->share_count,
                sizeof(*dataset->shares)) < 0 ||
        gp_index_add(&dataset->share_index, hash, (uint32_t)dataset->share_count) < 0)
        return NULL;
    dataset->traces[trace].coros++;
    if (dataset->traces[trace].index != 0) {
        dataset->coros[coro].traces++;
        dataset->coros[coro].trace = trace;
    }
    dataset->shares[dataset->share_count] = key;
    return &dataset->shares[dataset->share_count++];
}

// A coroutine mostly goes on working for the same trace.
static gp_dataset_share_t *share_of(gp_dataset_t *dataset, uint32_t coro, uint32_t trace)
{
    uint32_t last = dataset->coros[coro].share;

    if (last != 0 && dataset->shares[last - 1].trace == trace)
        return &dataset->shares[last - 1];
    gp_dataset_share_t *share = share_find(dataset, coro, trace);
    if (share != NULL)
        dataset->coros[coro].share = (uint32_t)(share - dataset->shares) + 1;
    return share;
}

void gp_dataset_seen_at(gp_dataset_t *dataset, uint64_t time_ns)
{
    if (time_ns > dataset->end_ns)
        dataset->end_ns = time_ns;
}

// Of a kind that is not kept, or that a later version has added.
static bool is_other(const gp_dataset_t *dataset, const gp_sample_record_t *sample)
{
    return sample->kind >= GP_KIND_COUNT ||
           (sample->kind != GP_KIND_CPU && !(dataset->keep & GP_KEEP_WAITS));
}

static bool is_outside(const gp_dataset_t *dataset, const gp_sample_record_t *sample)
{
    return dataset->windowed &&
           (sample->time_ns < dataset->window.from_ns || sample->time_ns >= dataset->window.to_ns);
}

static int add_moment(gp_dataset_t *dataset, const gp_sample_record_t *sample,
                      const gp_dataset_weight_t *weight)
{
    if (gp_grow(&dataset->moments, &dataset->moment_capacity, dataset->moment_count,
                sizeof(*dataset->moments)) < 0)
        return -ENOMEM;
    dataset->moments[dataset->moment_count++] = (gp_dataset_moment_t){
        .time_ns = sample->time_ns,
        .weight_ns = sample->weight_ns,
        .weight = (uint32_t)(weight - dataset->weights),
    };
    return 0;
}

static int add_weight(gp_dataset_t *dataset, const gp_sample_record_t *sample, uint32_t coro,
                      uint32_t trace)
{
    const gp_dataset_weight_t key = {
        .stack = gp_dataset_stack_quick(dataset, sample->stack_id),
        .coro = dataset->keep & GP_KEEP_COROS ? coro : 0,
        .trace = dataset->keep & GP_KEEP_TRACES ? trace : 0,
        .thread = dataset->keep & GP_KEEP_THREADS ? sample->thread : 0,
        .kind = sample->kind,
    };
    gp_dataset_weight_t *weight = key.stack != GP_INDEX_NONE ? weight_of(dataset, key) : NULL;

    if (weight == NULL)
        return -ENOMEM;
    weight->weight_ns += sample->weight_ns;
    weight->squares += (double)sample->weight_ns * (double)sample->weight_ns;
    weight->samples++;
    return dataset->keep & GP_KEEP_TIMELINE ? add_moment(dataset, sample, weight) : 0;
}

static int add_sample(gp_dataset_t *dataset, const gp_sample_record_t *sample)
{
    gp_dataset_seen_at(dataset, sample->time_ns);
    if (is_outside(dataset, sample) || is_other(dataset, sample))
        return 0;
    uint32_t coro = gp_dataset_coro_quick(dataset, sample->coro_id);
    uint32_t trace = gp_dataset_trace_quick(dataset, sample->trace);
    if (coro == GP_INDEX_NONE || trace == GP_INDEX_NONE)
        return -ENOMEM;
    gp_dataset_share_t *share = share_of(dataset, coro, trace);
    if (share == NULL)
        return -ENOMEM;
    if (sample->kind == GP_KIND_CPU) {
        share->sampled_ns += sample->weight_ns;
        share->samples++;
    }
    if (dataset->keep & GP_KEEP_SCALED)
        return gp_dataset_stack_quick(dataset, sample->stack_id) != GP_INDEX_NONE ? 0 : -ENOMEM;
    return add_weight(dataset, sample, coro, trace);
}

int gp_dataset_on_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_dataset_t *dataset = context;
    int result = 0;

    dataset->samples_read += count;
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_sample(dataset, &samples[i]);
    return result;
}

static void add_waits(gp_waits_t *sum, const gp_waits_t *more)
{
    sum->slice_ns += more->slice_ns;
    sum->blocked_ns += more->blocked_ns;
    sum->ready_ns += more->ready_ns;
    sum->parked_ns += more->parked_ns;
    sum->waiting_ns += more->waiting_ns;
    sum->spawned += more->spawned;
    if (more->longest_ns > sum->longest_ns)
        sum->longest_ns = more->longest_ns;
}

static uint64_t at_least_zero(uint64_t difference)
{
    return (int64_t)difference > 0 ? difference : 0;
}

uint64_t gp_dataset_share_ns(const gp_dataset_t *dataset, const gp_dataset_share_t *share,
                             enum gp_sample_kind kind)
{
    const gp_waits_t *waits = &share->waits;
    bool is_thread = dataset->coros[share->coro].record.kind == GP_CORO_THREAD;

    switch (kind) {
    case GP_KIND_CPU:
        return share->cpu_ns;
    case GP_KIND_PREEMPTED:
        return is_thread ? 0 : at_least_zero(waits->slice_ns - share->cpu_ns - waits->blocked_ns);
    case GP_KIND_BLOCKED:
        return is_thread ? 0 : at_least_zero(waits->blocked_ns);
    case GP_KIND_PARKED:
        return at_least_zero(waits->parked_ns);
    case GP_KIND_READY:
        return at_least_zero(waits->ready_ns);
    default:
        return at_least_zero(waits->waiting_ns);
    }
}

int gp_dataset_on_ledger(void *context, const gp_ledger_record_t *ledger)
{
    gp_dataset_t *dataset = context;

    gp_dataset_seen_at(dataset, ledger->time_ns);
    if (dataset->windowed)
        return 0;
    uint32_t coro = gp_dataset_coro_quick(dataset, ledger->coro_id);
    uint32_t trace = gp_dataset_trace_quick(dataset, ledger->trace);

    if (coro == GP_INDEX_NONE || trace == GP_INDEX_NONE)
        return -ENOMEM;
    gp_dataset_share_t *share = share_of(dataset, coro, trace);
    if (share == NULL)
        return -ENOMEM;
    share->cpu_ns += ledger->cpu_ns;
    share->switches += ledger->switches;
    const gp_waits_t waits = {
        .slice_ns = ledger->slice_ns,
        .blocked_ns = ledger->blocked_ns,
        .ready_ns = ledger->ready_ns,
        .parked_ns = ledger->parked_ns,
        .waiting_ns = ledger->waiting_ns,
        .spawned = ledger->spawned,
        .longest_ns = ledger->longest_ns,
    };
    add_waits(&share->waits, &waits);
    return 0;
}

void gp_dataset_sum_up(gp_dataset_t *dataset)
{
    for (size_t i = 0; i < dataset->share_count; i++) {
        const gp_dataset_share_t *share = &dataset->shares[i];
        gp_dataset_coro_t *coro = &dataset->coros[share->coro];
        gp_dataset_trace_t *trace = &dataset->traces[share->trace];
        coro->cpu_ns += share->cpu_ns;
        coro->switches += share->switches;
        add_waits(&coro->waits, &share->waits);
        add_waits(&trace->waits, &share->waits);
        coro->sampled_ns += share->sampled_ns;
        coro->samples += share->samples;
        trace->cpu_ns += share->cpu_ns;
        trace->switches += share->switches;
        trace->sampled_ns += share->sampled_ns;
        trace->samples += share->samples;
        dataset->sampled_ns += share->sampled_ns;
        dataset->samples += share->samples;
    }
}

uint64_t gp_dataset_exact_ns(const gp_dataset_t *dataset)
{
    uint64_t all = dataset->totals.process_cpu_ns;
    uint64_t unsampled = dataset->counters[GP_COUNTER_UNSAMPLED_NS];

    return !dataset->windowed && all > unsampled ? all - unsampled : 0;
}

typedef struct second_pass {
    gp_dataset_t *dataset;
    const double *factors; // double[coro_count]
    uint64_t read;
} second_pass_t;

enum { SEEN_ENOUGH = -ECANCELED };

static int weigh_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    second_pass_t *pass = context;
    gp_dataset_t *dataset = pass->dataset;

    for (size_t i = 0; i < count; i++) {
        // The capture of a process that still runs may have grown.
        if (pass->read++ == dataset->samples_read)
            return SEEN_ENOUGH;
        if (is_outside(dataset, &samples[i]) || is_other(dataset, &samples[i]))
            continue;
        uint32_t coro = gp_dataset_coro_quick(dataset, samples[i].coro_id);
        uint32_t stack = gp_dataset_stack_quick(dataset, samples[i].stack_id);
        if (coro >= dataset->coro_count || stack >= dataset->weight_count)
            return SEEN_ENOUGH; // the file is another one by now
        double scaled = (double)samples[i].weight_ns * pass->factors[coro];
        gp_dataset_weight_t *weight = &dataset->weights[stack];
        weight->weight_ns += samples[i].weight_ns;
        weight->scaled_ns += scaled;
        weight->squares += scaled * scaled;
        weight->samples++;
    }
    return 0;
}

// Only those that have samples.
static void drop_empty_weights(gp_dataset_t *dataset)
{
    size_t kept = 0;

    for (size_t i = 0; i < dataset->weight_count; i++)
        if (dataset->weights[i].samples > 0)
            dataset->weights[kept++] = dataset->weights[i];
    dataset->weight_count = kept;
}

int gp_dataset_weigh(gp_dataset_t *dataset, int fd, char error[GP_READER_ERROR_SIZE])
{
    const gp_reader_handlers_t handlers = {.samples = weigh_samples};
    gp_reader_summary_t summary;
    double *factors = gp_strata_factors(dataset);
    second_pass_t pass = {.dataset = dataset, .factors = factors};
    int result = -ENOMEM;

    strcpy(error, "not enough memory");
    dataset->weights = calloc(dataset->stack_count, sizeof(*dataset->weights));
    if (factors == NULL || dataset->weights == NULL)
        goto out;
    dataset->weight_count = dataset->weight_capacity = dataset->stack_count;
    for (size_t i = 0; i < dataset->stack_count; i++)
        dataset->weights[i].stack = (uint32_t)i;
    result = gp_reader_read(fd, &handlers, &pass, &summary, error);
    drop_empty_weights(dataset);
out:
    free(factors);
    return result == SEEN_ENOUGH ? 0 : result;
}
