// SPDX-License-Identifier: MIT
// The table by lock.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "print.h"
#include "report/lock_waits.h"
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

int gp_report_print_locks(const gp_input_t *source, const gp_table_options_t *options)
{
    gp_lock_waits_t waits;
    int result = gp_lock_waits_make(&waits, source->dataset, source->symbolizer, GP_KIND_LOCK, 0);
    uint32_t *rows = result == 0 ? calloc(waits.count + 1, sizeof(*rows)) : NULL;
    if (result == 0 && rows == NULL)
        result = -ENOMEM;
    for (size_t i = 0; i < waits.count && rows != NULL; i++)
        rows[i] = (uint32_t)i;
    if (result == 0) {
        printf("   %zu lock%s waited for, milliseconds\n", waits.count, waits.count == 1 ? "" : "s");
        size_t count =
            gp_restrictions_apply(options->restrictions, rows, waits.count, report_locks_name_of, waits.items);
        if (count > 0)
            printf("\n   waits      total    median       p99   longest  victims  lock  held for longest by\n");
        for (size_t i = 0; i < count; i++)
            report_locks_print(&waits.items[rows[i]]);
        printf("\n");
    }
    free(rows);
    gp_lock_waits_free(&waits);
    return result;
}
