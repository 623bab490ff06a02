// SPDX-License-Identifier: MIT
// Tables of functions, laid out as pstats lays them out.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "stats.h"

#define LEAST_REST_S 5e-7 // less is what rounding leaves

static const char *stats_print_name_of(const void *context, uint32_t row)
{
    return ((const gp_stats_t *)context)->items[row].text;
}

typedef struct print_list { // functions that are left
    uint32_t *rows;
    size_t count;
    size_t width; // of the column of names
} print_list_t;

static void stats_print_order(const gp_stats_t *stats)
{
    printf("   Ordered by: ");
    for (size_t i = 0; i < stats->sorts.count; i++)
        printf("%s%s", i > 0 ? ", " : "", stats->sorts.keys[i]->what);
    printf("\n");
}

// pstats' get_print_list(): where nothing is left nothing is said.
static int stats_print_make_list(const gp_stats_t *stats, gp_row_limits_t restrictions, print_list_t *list)
{
    size_t *counts = calloc(restrictions.count + 1, sizeof(*counts));
    *list = (print_list_t){
        .rows = calloc(stats->count + 1, sizeof(uint32_t)), .count = stats->count, .width = stats->width};
    if (list->rows == NULL || counts == NULL) {
        free(counts);
        free(list->rows);
        return -ENOMEM;
    }
    for (size_t i = 0; i < stats->count; i++)
        list->rows[i] = stats->order[i];
    for (size_t i = 0; i < restrictions.count; i++) {
        counts[i] = list->count;
        list->count = gp_row_limit_apply(&restrictions.items[i], list->rows, list->count, stats_print_name_of, stats);
    }
    counts[restrictions.count] = list->count;
    if (list->count > 0) {
        stats_print_order(stats);
        for (size_t i = 0; i < restrictions.count; i++)
            gp_row_limit_print(&restrictions.items[i], counts[i], counts[i + 1]);
        printf("\n");
    }
    if (list->count < stats->count) {
        list->width = 0;
        for (size_t i = 0; i < list->count; i++)
            if (stats->items[list->rows[i]].width > list->width)
                list->width = stats->items[list->rows[i]].width;
    }
    list->width += 2;
    free(counts);
    return 0;
}

static const char *stats_print_calls_text(uint64_t calls, uint64_t primitive_calls, char *text, size_t size)
{
    if (calls == primitive_calls)
        snprintf(text, size, "%" PRIu64, calls);
    else
        snprintf(text, size, "%" PRIu64 "/%" PRIu64, calls, primitive_calls);
    return text;
}

static void stats_print_per_call(double seconds, uint64_t calls)
{
    if (calls == 0)
        printf("%8s ", "");
    else
        printf("%8.3f ", seconds / (double)calls);
}

static void stats_print_row(const gp_stat_t *stat, double cores_s)
{
    char calls[64];
    if (cores_s > 0)
        printf("%8.3f %8.3f ", stat->own_s / cores_s, stat->total_s / cores_s);
    printf("%9s ", stats_print_calls_text(stat->calls, stat->primitive_calls, calls, sizeof(calls)));
    printf("%8.3f ", stat->own_s);
    stats_print_per_call(stat->own_s, stat->calls);
    printf("%8.3f ", stat->total_s);
    stats_print_per_call(stat->total_s, stat->primitive_calls);
    gp_print_name(stat->text, cores_s > 0 ? 64 : 46);
    printf("\n");
}

int gp_stats_print(const gp_stats_t *stats, gp_row_limits_t restrictions)
{
    print_list_t list;
    if (stats_print_make_list(stats, restrictions, &list) < 0)
        return -ENOMEM;
    if (list.count > 0)
        printf("%s   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n",
               stats->cores_s > 0 ? "   cores cumcores " : "");
    for (size_t i = 0; i < list.count; i++)
        stats_print_row(&stats->items[list.rows[i]], stats->cores_s);
    if (list.count > 0)
        printf("\n\n");
    free(list.rows);
    return 0;
}

typedef struct relative { // a caller or a callee of a function
    const gp_stat_t *stat;
    const gp_stat_caller_t *call;
} relative_t;

static int stats_print_compare_relatives(const void *left, const void *right)
{
    const gp_stat_t *a = ((const relative_t *)left)->stat, *b = ((const relative_t *)right)->stat;
    int result = strcmp(a->file, b->file);
    if (result == 0)
        result = a->line < b->line ? -1 : a->line > b->line;
    return result != 0 ? result : strcmp(a->function, b->function);
}

static void stats_print_name(const gp_stat_t *stat, size_t width)
{
    gp_print_text(stat->text);
    printf("%*s", (int)(width > stat->width ? width - stat->width : 0), "");
}

// pstats' print_call_line(): a line for each, the first one beside the function's name.
static void stats_print_relatives(size_t width, const gp_stat_t *stat, relative_t *relatives, size_t count,
                                  const char *arrow)
{
    char calls[64];
    stats_print_name(stat, width);
    printf("%s ", arrow);
    if (count == 0)
        printf("\n");
    else
        qsort(relatives, count, sizeof(*relatives), stats_print_compare_relatives);
    for (size_t i = 0; i < count; i++) {
        const gp_stat_caller_t *call = relatives[i].call;
        stats_print_calls_text(call->calls, call->primitive_calls, calls, sizeof(calls));
        printf("%*s%*s %8.3f %8.3f  ", i > 0 ? (int)width + 1 : 0, "", i > 0 ? 9 : 7, calls, call->own_s,
               call->total_s);
        gp_print_text(relatives[i].stat->text);
        printf("\n");
    }
}

// Samples with this function on top and no caller: with them the sum of a function's callers is its own time. pstats
// has no such line, since in its profiles every call but the first has a caller.
static void stats_print_rest(size_t width, const gp_stat_t *stat)
{
    double own_s = stat->own_s, total_s = stat->total_s;
    uint64_t calls = stat->calls;
    for (size_t i = 0; i < stat->caller_count; i++) {
        own_s -= stat->callers[i].own_s;
        total_s -= stat->callers[i].total_s;
        calls -= stat->callers[i].calls < calls ? stat->callers[i].calls : calls;
    }
    if (stat->caller_count > 0 && own_s > LEAST_REST_S)
        printf("%*s%9" PRIu64 " %8.3f %8.3f  [no caller]\n", (int)width + 1, "", calls, own_s,
               total_s > own_s ? total_s : own_s);
}

static void stats_print_heading(const gp_stats_t *stats, size_t width, const char *title)
{
    bool any = false;
    for (size_t i = 0; i < stats->count && !any; i++)
        any = stats->items[i].caller_count > 0;
    printf("%-*s%s\n", (int)width, "Function ", title);
    if (any)
        printf("%*s    ncalls  tottime  cumtime\n", (int)width, "");
}

static size_t stats_print_find_callers(const gp_stats_t *stats, uint32_t number, relative_t *relatives)
{
    const gp_stat_t *stat = &stats->items[number];
    for (size_t i = 0; i < stat->caller_count; i++)
        relatives[i] = (relative_t){&stats->items[stat->callers[i].function], &stat->callers[i]};
    return stat->caller_count;
}

static size_t stats_print_find_callees(const gp_stats_t *stats, uint32_t number, relative_t *relatives)
{
    size_t count = 0;
    for (size_t i = 0; i < stats->count; i++)
        for (size_t j = 0; j < stats->items[i].caller_count; j++)
            if (stats->items[i].callers[j].function == number)
                relatives[count++] = (relative_t){&stats->items[i], &stats->items[i].callers[j]};
    return count;
}

static int stats_print_calls(const gp_stats_t *stats, gp_row_limits_t restrictions, const char *title,
                             const char *arrow, size_t (*find)(const gp_stats_t *, uint32_t, relative_t *))
{
    print_list_t list;
    // No function has more callers or callees than there are functions.
    relative_t *relatives = calloc(stats->count + 1, sizeof(*relatives));
    if (relatives == NULL || stats_print_make_list(stats, restrictions, &list) < 0) {
        free(relatives);
        return -ENOMEM;
    }
    if (list.count > 0)
        stats_print_heading(stats, list.width, title);
    for (size_t i = 0; i < list.count; i++) {
        size_t count = find(stats, list.rows[i], relatives);
        stats_print_relatives(list.width, &stats->items[list.rows[i]], relatives, count, arrow);
        if (find == stats_print_find_callers)
            stats_print_rest(list.width, &stats->items[list.rows[i]]);
    }
    if (list.count > 0)
        printf("\n\n");
    free(relatives);
    free(list.rows);
    return 0;
}

int gp_stats_print_callers(const gp_stats_t *stats, gp_row_limits_t restrictions)
{
    return stats_print_calls(stats, restrictions, "was called by...", "<-", stats_print_find_callers);
}

int gp_stats_print_callees(const gp_stats_t *stats, gp_row_limits_t restrictions)
{
    return stats_print_calls(stats, restrictions, "called...", "->", stats_print_find_callees);
}
