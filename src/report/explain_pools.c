// SPDX-License-Identifier: MIT
// Pools of threads that are full: calls wait until a worker is free.
#include <inttypes.h>
#include <stdio.h>

#include "report/explain_parts.h"
#include "report/pool_use.h"

enum {
    LEAST_NS = 50000000, // of waits behind a full pool: less is noise of the machine
    SHARE = 100,         // or this part of the time
    FULL_PERCENT = 20,   // of the time in which it had calls
};

// Was there too little of it, and not a machine that was slow to start its threads?
static bool explain_pools_is_full(const gp_explaining_t *explaining, const gp_pool_t *pool)
{
    uint64_t least_ns = explaining->dataset->facts.end_ns / SHARE, ns = pool->to_ns - pool->from_ns;
    least_ns = least_ns > LEAST_NS ? least_ns : LEAST_NS;
    return pool->size > 0 && pool->queue_ns >= least_ns && pool->waited_ns >= least_ns &&
           pool->full_ns * 100 >= ns * FULL_PERCENT;
}

static void explain_pools_say(gp_explaining_t *explaining, const gp_pool_t *pool)
{
    char busy[32], waited[32], longest[32], code[384], text[32];
    const gp_pool_holder_t *holder = &pool->holders[0];
    gp_finding_t *finding = gp_explain_add(explaining, "full-pool", pool->waited_ns);
    if (finding == NULL)
        return;
    if (holder->entry != 0)
        gp_explain_place(explaining, &holder->entry, 1, finding);
    if (pool->requests == 0)
        finding->rank = GP_FINDING_NOTE; // a program that hands over all of its work at once waits for no call
    finding->times = pool->calls;
    uint64_t percent = pool->busy_ns > 0 ? holder->busy_ns * 100 / pool->busy_ns : 0;
    snprintf(finding->sentence, sizeof(finding->sentence),
             "the pool %s is full: %s held its %" PRIu32 " worker%s for %s, %" PRIu64 " %% of their work, and %" PRIu64
             " calls waited %s in its queue, up to %s each and %" PRIu64 " at a time",
             pool->name, gp_explain_code(finding, code, sizeof(code)), pool->size, pool->size == 1 ? "" : "s",
             gp_explain_time(holder->busy_ns, busy), percent, pool->calls, gp_explain_time(pool->waited_ns, waited),
             gp_explain_time(pool->longest_ns, longest), pool->queue_most);
    if (pool->requests > 0)
        snprintf(finding->hurt, sizeof(finding->hurt), "%" PRIu64 " request%s, for %s together", pool->requests,
                 pool->requests == 1 ? "" : "s", gp_explain_time(pool->requests_ns, text));
    snprintf(finding->sure, sizeof(finding->sure), "all times are exact; the pool was full for %s",
             gp_explain_time(pool->full_ns, text));
    snprintf(finding->show, sizeof(finding->show), "report --by pool");
}

int gp_explain_pools(gp_explaining_t *explaining)
{
    gp_pools_t pools;
    if (explaining->dataset->windowed)
        return 0; // no ledger is known
    int result = gp_pools_sum_up(&pools, explaining->dataset, explaining->trace);
    for (size_t i = 0; i < pools.count && result == 0; i++)
        if (explain_pools_is_full(explaining, &pools.items[i]))
            explain_pools_say(explaining, &pools.items[i]);
    gp_pools_free(&pools);
    return result;
}
