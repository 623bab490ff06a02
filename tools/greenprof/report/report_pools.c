// SPDX-License-Identifier: MIT
// The table of pools of threads, and of the functions that held their workers.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "report/pool_use.h"
#include "report_json.h"
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

typedef struct holder_name {
    const char *function, *file; // file: "" = not known
    uint32_t line;
    char label[NAME_SIZE];
} holder_name_t;

static void report_pools_name_holder(const gp_input_t *source, const gp_pool_holder_t *holder, holder_name_t *name)
{
    gp_namer_t namer = {.facts = &source->dataset->facts, .symbolizer = source->symbolizer};
    gp_name_t found;
    *name = (holder_name_t){.function = "[unknown]", .file = ""};
    if (holder->entry == 0) {
        gp_report_coro_label(source->dataset, holder->coro, source->symbolizer, true, name->label, NAME_SIZE);
        name->function = name->label;
    } else if (gp_facts_name(&namer, holder->entry, &found) == 0) {
        name->function = found.symbol->function;
        name->line = (uint32_t)found.symbol->line;
        name->file = name->line != 0 ? found.symbol->file : "";
    }
}

static void report_pools_print_holder(const gp_input_t *source, const gp_pool_t *pool, const gp_pool_holder_t *holder)
{
    holder_name_t name;
    report_pools_name_holder(source, holder, &name);
    gp_print_ms(holder->busy_ns, 12);
    printf(" %6.1f %8" PRIu64, report_pools_ratio(holder->busy_ns, pool->busy_ns) * 100, holder->calls);
    gp_print_ms(holder->longest_ns, 11);
    printf("  ");
    gp_print_text(pool->name);
    printf(": ");
    gp_print_text(name.function);
    if (name.line != 0) {
        printf(" (");
        gp_print_text(name.file);
        printf(":%" PRIu32 ")", name.line);
    }
    printf("\n");
}

static void report_pools_print(const gp_input_t *source, const gp_pools_t *pools, const uint32_t *rows, size_t count)
{
    if (pools->count == 0) {
        printf("   No call to a pool of threads was seen\n\n");
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

static void report_pools_json_pool(gp_json_t *json, const gp_input_t *source, const gp_pool_t *pool)
{
    gp_json_open(json, '{');
    gp_json_key_text(json, "name", pool->name);
    gp_report_json_known(json, "size", pool->size > 0, pool->size);
    gp_json_key_uint(json, "calls", pool->calls);
    gp_json_key_uint(json, "unfinished", pool->unfinished);
    gp_json_key_uint(json, "start_ns", pool->from_ns);
    gp_json_key_uint(json, "end_ns", pool->to_ns);
    gp_json_key_uint(json, "busy_ns", pool->busy_ns);
    gp_json_key_uint(json, "busy_most", pool->busy_most);
    gp_json_key_uint(json, "queue_ns", pool->queue_ns);
    gp_json_key_uint(json, "queue_most", pool->queue_most);
    gp_report_json_known(json, "full_ns", pool->size > 0, pool->full_ns);
    gp_json_key_uint(json, "waited_ns", pool->waited_ns);
    gp_json_key_uint(json, "p50_ns", pool->p50_ns);
    gp_json_key_uint(json, "p99_ns", pool->p99_ns);
    gp_json_key_uint(json, "max_ns", pool->longest_ns);
    gp_json_key_uint(json, "requests", pool->requests);
    gp_json_key(json, "holders");
    gp_json_open(json, '[');
    for (size_t i = 0; i < pool->holder_count; i++) {
        const gp_pool_holder_t *holder = &pool->holders[i];
        holder_name_t name;
        report_pools_name_holder(source, holder, &name);
        gp_json_open(json, '{');
        gp_json_key_text(json, "function", name.function);
        gp_json_key_text(json, "file", name.file);
        gp_json_key_uint(json, "line", name.line);
        gp_json_key_uint(json, "calls", holder->calls);
        gp_json_key_uint(json, "busy_ns", holder->busy_ns);
        gp_json_key_uint(json, "longest_ns", holder->longest_ns);
        gp_json_close(json, '}');
    }
    gp_json_close(json, ']');
    gp_json_close(json, '}');
    gp_json_line(json);
}

static void report_pools_put(const gp_input_t *source, const gp_table_options_t *options, const gp_pools_t *pools,
                             uint32_t *rows)
{
    size_t count = pools->count;
    if (options->json == NULL) {
        count = gp_restrictions_apply(options->restrictions, rows, count, report_pools_name_of, pools);
        report_pools_print(source, pools, rows, count);
        return;
    }
    count = gp_report_json_restrict(options->restrictions, rows, count, report_pools_name_of, pools);
    for (size_t i = 0; i < count; i++)
        report_pools_json_pool(options->json, source, &pools->items[rows[i]]);
    gp_json_close(options->json, ']');
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
        report_pools_put(source, options, &pools, rows);
    }
    free(rows);
    gp_pools_free(&pools);
    return result;
}
