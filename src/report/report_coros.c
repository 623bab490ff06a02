// SPDX-License-Identifier: MIT
#include "report/report_coros.h"

#include <inttypes.h>
#include <stdlib.h>

static int report_coros_compare_ids(const void *left, const void *right)
{
    uint64_t a = ((const gp_report_coro_t *)left)->label->coroutine_id;
    uint64_t b = ((const gp_report_coro_t *)right)->label->coroutine_id;
    return a < b ? -1 : a > b;
}

static int report_coros_compare_weights(const void *left, const void *right)
{
    const gp_report_coro_t *a = left, *b = right;
    if (a->weight_ns != b->weight_ns)
        return a->weight_ns > b->weight_ns ? -1 : 1;
    return report_coros_compare_ids(left, right);
}

// Merge the entries of a coroutine's labels into one. Returns how many are left.
static size_t report_coros_merge(gp_report_coro_t *all, size_t count)
{
    size_t merged = 0;
    for (size_t i = 0; i < count; i++)
        if (merged > 0 && report_coros_compare_ids(&all[merged - 1], &all[i]) == 0)
            all[merged - 1].weight_ns += all[i].weight_ns;
        else
            all[merged++] = all[i];
    return merged;
}

static int report_coros_weigh_part(void *context, const gp_report_row_t *rows, size_t count)
{
    gp_report_coro_t *all = context; // by label
    for (size_t i = 0; i < count; i++)
        if (rows[i].label != 0)
            all[rows[i].label - 1].weight_ns += rows[i].weight_ns;
    return 0;
}

gp_report_coro_t *gp_report_coros_create(const gp_report_t *report, size_t *count)
{
    gp_report_coro_t *all = calloc((size_t)report->label_count + 1, sizeof(*all));
    *count = 0;
    if (all == NULL || report->label_count == 0)
        return all;
    for (uint32_t i = 0; i < report->label_count; i++)
        all[i].label = &report->labels[i];
    if (gp_report_each_part(report, report_coros_weigh_part, all) < 0) {
        free(all);
        return NULL;
    }
    qsort(all, report->label_count, sizeof(*all), report_coros_compare_ids);
    *count = report_coros_merge(all, report->label_count);
    qsort(all, *count, sizeof(*all), report_coros_compare_weights);
    return all;
}

bool gp_report_coro_has(const gp_report_coro_t *coro, const gp_report_t *report, const gp_report_row_t *row)
{
    return coro == NULL ||
           (row->label != 0 && report->labels[row->label - 1].coroutine_id == coro->label->coroutine_id);
}

const char *gp_report_coro_name(const gp_report_coro_t *coro, char *text, size_t size)
{
    const char *label = coro->label->coroutine ? coro->label->coroutine : "";
    if (label[0] == '[') // "[thread main]"
        snprintf(text, size, "%s", label);
    else
        snprintf(text, size, "coroutine %" PRIu64 "%s%s", coro->label->coroutine_id, label[0] != '\0' ? " " : "",
                 label);
    return text;
}
