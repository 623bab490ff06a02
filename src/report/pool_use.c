// SPDX-License-Identifier: MIT
#include "report/pool_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct call {
    gp_loc_t pool, entry;
    uint32_t coro, trace;
    uint64_t from_ns, began_ns, end_ns; // handed over; taken by a worker; over
    bool has_begun, is_over;
} call_t;

typedef struct moment { // of a pool: a call comes, is taken or is over
    uint64_t at_ns;
    int queued, busy; // what changes
} moment_t;

static int pool_use_order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int pool_use_by_pool(const void *left, const void *right)
{
    const call_t *a = left, *b = right;
    int result = pool_use_order(a->pool, b->pool);
    if (result == 0)
        result = pool_use_order(a->entry, b->entry);
    return result != 0 ? result : pool_use_order(a->coro, b->coro);
}

// Ends come before the beginnings of the same moment.
static int pool_use_by_moment(const void *left, const void *right)
{
    const moment_t *a = left, *b = right;
    return a->at_ns != b->at_ns ? pool_use_order(a->at_ns, b->at_ns) : a->busy - b->busy;
}

static int pool_use_by_wait(const void *left, const void *right)
{
    const call_t *a = left, *b = right;
    return pool_use_order(a->began_ns - a->from_ns, b->began_ns - b->from_ns);
}

static int pool_use_by_trace(const void *left, const void *right)
{
    return pool_use_order(((const call_t *)left)->trace, ((const call_t *)right)->trace);
}

static int pool_use_by_busy(const void *left, const void *right)
{
    return pool_use_order(((const gp_pool_holder_t *)right)->busy_ns, ((const gp_pool_holder_t *)left)->busy_ns);
}

static int pool_use_by_waited(const void *left, const void *right)
{
    const gp_pool_t *a = left, *b = right;
    return a->waited_ns != b->waited_ns ? pool_use_order(b->waited_ns, a->waited_ns) : strcmp(a->name, b->name);
}

static call_t pool_use_call_of(const gp_dataset_t *dataset, uint32_t coro)
{
    const gp_facts_coro_t *fact = &dataset->facts.coros.items[coro];
    const gp_dataset_coro_t *sums = &dataset->coros.items[coro];
    uint64_t queued_ns = gp_dataset_coro_ns(dataset, coro, &sums->ledger, GP_KIND_QUEUED);
    uint64_t busy_ns = sums->ledger.slice_ns + gp_ledger_kind_ns(&sums->ledger, GP_KIND_PARKED) +
                       gp_ledger_kind_ns(&sums->ledger, GP_KIND_WAITING);
    call_t call = {.pool = fact->pool, .entry = fact->record.entry, .coro = coro, .trace = sums->trace};
    call.from_ns = fact->record.birth_ns;
    call.began_ns = call.from_ns + queued_ns;
    call.end_ns = call.began_ns + busy_ns;
    call.has_begun = sums->ledger.switches > 0 || busy_ns > 0;
    return call;
}

// "[pool NAME of SIZE]"
static void pool_use_name(const gp_dataset_t *dataset, gp_pool_t *pool)
{
    static const char before[] = "[pool ", of[] = " of ";
    const gp_function_info_t *function = gp_facts_function(&dataset->facts, pool->loc);
    const char *text = function != NULL ? function->name : "[pool ?]", *last = NULL;
    size_t skip = strncmp(text, before, sizeof(before) - 1) == 0 ? sizeof(before) - 1 : 0, length = strlen(text + skip);
    length -= length > 0;
    for (const char *at = text + skip; (at = strstr(at, of)) != NULL; at++)
        last = at;
    if (last != NULL) {
        pool->size = (uint32_t)strtoul(last + sizeof(of) - 1, NULL, 10);
        length = (size_t)(last - text) - skip;
    }
    length = length < sizeof(pool->name) ? length : sizeof(pool->name) - 1;
    memcpy(pool->name, text + skip, length);
    pool->name[length] = '\0';
}

static uint64_t pool_use_excess(const gp_pool_t *pool, int64_t queued, int64_t busy)
{
    int64_t free_workers = pool->size > 0 && busy < (int64_t)pool->size ? (int64_t)pool->size - busy : 0;
    return queued > free_workers ? (uint64_t)(queued - free_workers) : 0;
}

// Add up what lies between two moments.
static void pool_use_sweep(gp_pool_t *pool, const moment_t *moments, size_t count)
{
    int64_t queued = 0, busy = 0;
    for (size_t i = 0; i < count; i++) {
        queued += moments[i].queued;
        busy += moments[i].busy;
        uint64_t ns = i + 1 < count ? moments[i + 1].at_ns - moments[i].at_ns : 0;
        uint64_t length = pool_use_excess(pool, queued, busy);
        pool->busy_most = busy > (int64_t)pool->busy_most ? (uint64_t)busy : pool->busy_most;
        pool->queue_ns += length * ns;
        if (length > pool->queue_most && ns > 0)
            pool->queue_most = length;
        if (pool->size > 0 && busy >= (int64_t)pool->size)
            pool->full_ns += ns;
    }
}

static int pool_use_follow(gp_pool_t *pool, const call_t *calls, size_t count)
{
    moment_t *moments = calloc(3 * count, sizeof(*moments));
    size_t used = 0;
    if (moments == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        moments[used++] = (moment_t){calls[i].from_ns, 1, 0};
        moments[used++] = (moment_t){calls[i].began_ns, -1, calls[i].has_begun};
        if (calls[i].has_begun)
            moments[used++] = (moment_t){calls[i].end_ns, 0, -1};
    }
    qsort(moments, used, sizeof(*moments), pool_use_by_moment);
    pool_use_sweep(pool, moments, used);
    free(moments);
    return 0;
}

// The calls are by function.
static int pool_use_find_holders(gp_pool_t *pool, const call_t *calls, size_t count)
{
    size_t capacity = 0;
    for (size_t i = 0; i < count; i++) {
        gp_pool_holder_t *holder = pool->holder_count > 0 ? &pool->holders[pool->holder_count - 1] : NULL;
        uint64_t busy_ns = calls[i].end_ns - calls[i].began_ns;
        if (holder == NULL || holder->entry != calls[i].entry) {
            if (gp_grow(&pool->holders, &capacity, pool->holder_count, sizeof(*holder)) < 0)
                return -ENOMEM;
            holder = &pool->holders[pool->holder_count++];
            *holder = (gp_pool_holder_t){.entry = calls[i].entry, .coro = calls[i].coro};
        }
        holder->calls++;
        holder->busy_ns += busy_ns;
        holder->longest_ns = busy_ns > holder->longest_ns ? busy_ns : holder->longest_ns;
    }
    qsort(pool->holders, pool->holder_count, sizeof(*pool->holders), pool_use_by_busy);
    return 0;
}

static void pool_use_add_up(gp_pool_t *pool, call_t *calls, size_t count, uint32_t trace)
{
    size_t chosen = 0;
    pool->from_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const call_t *call = &calls[i];
        pool->unfinished += !call->has_begun;
        pool->busy_ns += call->end_ns - call->began_ns;
        pool->from_ns = call->from_ns < pool->from_ns ? call->from_ns : pool->from_ns;
        pool->to_ns = call->end_ns > pool->to_ns ? call->end_ns : pool->to_ns;
    }
    for (size_t i = 0; i < count; i++) { // those that were asked for come first
        const call_t call = calls[i];
        if (trace != 0 && call.trace != trace)
            continue;
        pool->waited_ns += call.began_ns - call.from_ns;
        calls[i] = calls[chosen];
        calls[chosen++] = call;
    }
    pool->calls = chosen;
    if (chosen == 0)
        return;
    qsort(calls, chosen, sizeof(*calls), pool_use_by_wait);
    pool->p50_ns = calls[(chosen + 1) / 2 - 1].began_ns - calls[(chosen + 1) / 2 - 1].from_ns;
    pool->p99_ns = calls[(chosen * 99 + 99) / 100 - 1].began_ns - calls[(chosen * 99 + 99) / 100 - 1].from_ns;
    pool->longest_ns = calls[chosen - 1].began_ns - calls[chosen - 1].from_ns;
    qsort(calls, chosen, sizeof(*calls), pool_use_by_trace);
    for (size_t i = 0; i < chosen; i++) {
        bool counts = calls[i].trace != 0;
        pool->requests += counts && (i == 0 || calls[i - 1].trace != calls[i].trace);
        pool->requests_ns += counts ? calls[i].began_ns - calls[i].from_ns : 0;
    }
}

static int pool_use_take(gp_pools_t *pools, const gp_dataset_t *dataset, call_t *calls, size_t count, uint32_t trace)
{
    gp_pool_t *pool = &pools->items[pools->count++];
    pool->loc = calls[0].pool;
    pool_use_name(dataset, pool);
    int result = pool_use_find_holders(pool, calls, count);
    if (result == 0)
        result = pool_use_follow(pool, calls, count);
    if (result == 0)
        pool_use_add_up(pool, calls, count, trace);
    return result;
}

static size_t pool_use_gather(const gp_dataset_t *dataset, call_t *calls, size_t *distinct)
{
    size_t count = 0;
    for (size_t i = 0; i < dataset->facts.coros.count; i++)
        if (dataset->facts.coros.items[i].pool != 0)
            calls[count++] = pool_use_call_of(dataset, (uint32_t)i);
    qsort(calls, count, sizeof(*calls), pool_use_by_pool);
    for (size_t i = 0; i < count; i++)
        *distinct += i == 0 || calls[i].pool != calls[i - 1].pool;
    return count;
}

int gp_pools_sum_up(gp_pools_t *pools, const gp_dataset_t *dataset, uint32_t trace)
{
    call_t *calls = calloc(dataset->facts.coros.count + 1, sizeof(*calls));
    size_t distinct = 0, count = calls != NULL ? pool_use_gather(dataset, calls, &distinct) : 0;
    *pools = (gp_pools_t){.items = calloc(distinct + 1, sizeof(*pools->items))};
    int result = calls != NULL && pools->items != NULL ? 0 : -ENOMEM;
    for (size_t i = 0, next; i < count && result == 0; i = next) {
        for (next = i; next < count && calls[next].pool == calls[i].pool;)
            next++;
        result = pool_use_take(pools, dataset, &calls[i], next - i, trace);
    }
    if (pools->count > 0)
        qsort(pools->items, pools->count, sizeof(*pools->items), pool_use_by_waited);
    free(calls);
    return result;
}

void gp_pools_free(gp_pools_t *pools)
{
    for (size_t i = 0; i < pools->count; i++)
        free(pools->items[i].holders);
    free(pools->items);
    *pools = (gp_pools_t){0};
}
