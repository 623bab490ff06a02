// SPDX-License-Identifier: MIT
// The table by lock.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "print.h"
#include "report/lock_waits.h"
#include "report_json.h"
#include "tables.h"

static const char *report_locks_name_of(const void *sums, uint32_t row)
{
    return ((const gp_lock_sum_t *)sums)[row].name;
}

static void report_locks_print(const gp_lock_sum_t *sum)
{
    printf("%8" PRIu64, sum->waits);
    gp_print_ms(sum->total_ns, 11);
    gp_print_ms(sum->median_ns, 10);
    gp_print_ms(sum->p99_ns, 10);
    gp_print_ms(sum->longest_ns, 10);
    printf(" %8" PRIu32 "  ", sum->victims);
    gp_print_text(sum->name);
    if (sum->code[0] != '\0' || sum->holder[0] != '\0') {
        printf("  ");
        gp_print_text(sum->code[0] != '\0' ? sum->code : "?");
        printf(", ");
        gp_print_ms(sum->held_ns, 0);
        printf(" ms");
    }
    if (sum->holder[0] != '\0') {
        printf(", on ");
        gp_print_text(sum->holder);
    }
    printf("\n");
}

static void report_locks_json_lock(gp_json_t *json, const gp_lock_sum_t *sum)
{
    gp_json_open(json, '{');
    gp_json_key_text(json, "name", sum->name);
    gp_json_key_uint(json, "waits", sum->waits);
    gp_json_key_uint(json, "total_ns", sum->total_ns);
    gp_json_key_uint(json, "p50_ns", sum->median_ns);
    gp_json_key_uint(json, "p99_ns", sum->p99_ns);
    gp_json_key_uint(json, "max_ns", sum->longest_ns);
    gp_json_key_uint(json, "victims", sum->victims);
    gp_json_key_text(json, "function", sum->function);
    gp_json_key_text(json, "file", sum->file);
    gp_json_key_uint(json, "line", sum->line);
    gp_json_key_text(json, "holder", sum->holder);
    gp_report_json_known(json, "held_ns", sum->code[0] != '\0' || sum->holder[0] != '\0', sum->held_ns);
    gp_json_close(json, '}');
    gp_json_line(json);
}

static void report_locks_put(const gp_lock_waits_t *waits, uint32_t *rows, const gp_table_options_t *options)
{
    size_t count = waits->count;
    if (options->json != NULL) {
        count = gp_report_json_restrict(options->restrictions, rows, count, report_locks_name_of, waits->items);
        for (size_t i = 0; i < count; i++)
            report_locks_json_lock(options->json, &waits->items[rows[i]]);
        gp_json_close(options->json, ']');
        return;
    }
    printf("   %zu lock%s waited for, milliseconds\n", count, count == 1 ? "" : "s");
    count = gp_restrictions_apply(options->restrictions, rows, count, report_locks_name_of, waits->items);
    if (count > 0)
        printf("\n   waits      total    median       p99   longest  victims  lock  held for longest by\n");
    for (size_t i = 0; i < count; i++)
        report_locks_print(&waits->items[rows[i]]);
    printf("\n");
}

int gp_report_print_locks(const gp_input_t *source, const gp_table_options_t *options)
{
    gp_lock_waits_t waits;
    int result = gp_lock_waits_make(&waits, source->dataset, source->symbolizer, GP_KIND_LOCK, 0);
    uint32_t *rows = result == 0 ? calloc(waits.count + 1, sizeof(*rows)) : NULL;
    if (result == 0 && rows == NULL)
        result = -ENOMEM;
    for (size_t i = 0; i < waits.count && rows != NULL; i++)
        rows[i] = (uint32_t)i;
    if (result == 0)
        report_locks_put(&waits, rows, options);
    free(rows);
    gp_lock_waits_free(&waits);
    return result;
}
