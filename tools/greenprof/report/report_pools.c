// SPDX-License-Identifier: MIT
// The table of pools of threads, and of the functions that held their workers.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "report/pool_use.h"
#include "tables.h"

enum { HOLDERS_SHOWN = 10, NAME_SIZE = 512 };

static const char *report_pools_name_of(const void *context, uint32_t row)
{
    return ((const gp_pools_t *)context)->items[row].name;
}

static double report_pools_ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void report_pools_print_pool(const gp_pool_t *pool)
{
    uint64_t ns = pool->to_ns - pool->from_ns;
    if (pool->size > 0)
        printf("%6" PRIu32 " %6.1f", pool->size, report_pools_ratio(pool->busy_ns, ns * pool->size) * 100);
    else
        printf("%6s %6s", "-", "-");
    printf(" %6.2f %6" PRIu64 " %8" PRIu64 " %7.2f %7" PRIu64, report_pools_ratio(pool->busy_ns, ns), pool->busy_most,
           pool->calls, report_pools_ratio(pool->queue_ns, ns), pool->queue_most);
    gp_print_ms(pool->p50_ns, 11);
    gp_print_ms(pool->p99_ns, 11);
    gp_print_ms(pool->longest_ns, 11);
    gp_print_ms(pool->waited_ns, 12);
    printf(" %8" PRIu64 " ", pool->requests);
    gp_print_text(pool->name);
    printf("\n");
}

static void report_pools_print_holder(const gp_input_t *source, const gp_pool_t *pool, const gp_pool_holder_t *holder)
{
    gp_namer_t namer = {.facts = &source->dataset->facts, .symbolizer = source->symbolizer};
    gp_name_t name;
    char text[NAME_SIZE];
    gp_print_ms(holder->busy_ns, 12);
    printf(" %6.1f %8" PRIu64, report_pools_ratio(holder->busy_ns, pool->busy_ns) * 100, holder->calls);
    gp_print_ms(holder->longest_ns, 11);
    printf("  ");
    gp_print_text(pool->name);
    printf(": ");
    if (holder->entry == 0)
        gp_report_coro_label(source->dataset, holder->coro, source->symbolizer, true, text, sizeof(text));
    else if (gp_facts_name(&namer, holder->entry, &name) < 0)
        snprintf(text, sizeof(text), "[unknown]");
    else if (name.symbol->line != 0)
        snprintf(text, sizeof(text), "%s (%s:%u)", name.symbol->function, name.symbol->file,
                 (unsigned)name.symbol->line);
    else
        snprintf(text, sizeof(text), "%s", name.symbol->function);
    gp_print_text(text);
    printf("\n");
}

static void report_pools_print(const gp_input_t *source, const gp_pools_t *pools, const uint32_t *rows, size_t count)
{
    if (pools->count == 0) {
        printf(
            "   No call to a pool of threads was seen: pools are followed in programs with requests or profiles\n\n");
        return;
    }
    printf("   %zu pool%s of threads; p50 to waited: milliseconds that calls were in the queue\n", pools->count,
           pools->count == 1 ? "" : "s");
    printf("\n  size  use %%   busy   most    calls   queue    most        p50        p99        max      waited "
           "requests pool\n");
    for (size_t i = 0; i < count; i++)
        report_pools_print_pool(&pools->items[rows[i]]);
    printf("\n   What held their workers, milliseconds\n\n        busy      %%    calls    longest  pool: function\n");
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < pools->items[rows[i]].holder_count && j < HOLDERS_SHOWN; j++)
            report_pools_print_holder(source, &pools->items[rows[i]], &pools->items[rows[i]].holders[j]);
    printf("\n");
}

int gp_report_print_pools(const gp_input_t *source, const gp_table_options_t *options)
{
    gp_pools_t pools;
    int result = gp_pools_sum_up(&pools, source->dataset, 0);
    uint32_t *rows = result == 0 ? calloc(pools.count + 1, sizeof(*rows)) : NULL;
    if (result == 0 && rows == NULL)
        result = -ENOMEM;
    if (result == 0) {
        for (size_t i = 0; i < pools.count; i++)
            rows[i] = (uint32_t)i;
        size_t count = gp_restrictions_apply(options->restrictions, rows, pools.count, report_pools_name_of, &pools);
        report_pools_print(source, &pools, rows, count);
    }
    free(rows);
    gp_pools_free(&pools);
    return result;
}
