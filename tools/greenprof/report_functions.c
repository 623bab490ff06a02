#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

// qsort() has no context; the command is single-threaded.
static const gp_table_options_t *sorting;

static int by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_standard_name(const gp_frame_t *a, const gp_frame_t *b)
{
    int result = strcmp(a->file, b->file);

    if (result == 0)
        result = by_number(a->first_line, b->first_line);
    return result != 0 ? result : strcmp(a->function, b->function);
}

static int by_name_file_line(const gp_frame_t *a, const gp_frame_t *b)
{
    int result = strcmp(a->function, b->function);

    return result != 0 ? result : by_standard_name(a, b);
}

static int compare_one(gp_sort_t sort, const gp_function_t *a, const gp_function_t *b)
{
    switch (sort) {
    case GP_SORT_CALLS:
        return by_number(b->calls, a->calls);
    case GP_SORT_PRIMITIVE_CALLS:
        return by_number(b->primitive_calls, a->primitive_calls);
    case GP_SORT_CUMULATIVE:
        return by_number(b->total_ns, a->total_ns);
    case GP_SORT_TIME:
        return by_number(b->self_ns, a->self_ns);
    case GP_SORT_FILE:
        return strcmp(a->frame->file, b->frame->file);
    case GP_SORT_LINE:
        return by_number(a->frame->first_line, b->frame->first_line);
    case GP_SORT_NAME:
        return strcmp(a->frame->function, b->frame->function);
    case GP_SORT_NAME_FILE_LINE:
        return by_name_file_line(a->frame, b->frame);
    case GP_SORT_STANDARD_NAME:
        return by_standard_name(a->frame, b->frame);
    case GP_SORT_NONE:
        break;
    }
    return 0;
}

static int compare(const void *left, const void *right)
{
    const gp_function_t *a = left, *b = right;
    int result = 0;

    for (size_t i = 0; i < sorting->sort_count && result == 0; i++)
        result = compare_one(sorting->sorts[i]->sort, a, b);
    if (result == 0)
        result = by_number(b->total_ns, a->total_ns);
    return result != 0 ? result : by_standard_name(a->frame, b->frame);
}

static void print_per_call(uint64_t ns, uint64_t calls)
{
    if (calls == 0)
        printf("%*s", 9, "");
    else
        gp_print_seconds(ns / calls, 9);
}

// One row, as pstats' print_line() lays it out.
static void print_row(const gp_function_t *function)
{
    char calls[64];

    snprintf(calls, sizeof(calls), "%" PRIu64, function->calls);
    if (function->calls != function->primitive_calls)
        snprintf(calls, sizeof(calls), "%" PRIu64 "/%" PRIu64, function->calls,
                 function->primitive_calls);
    printf("%9s", calls);
    gp_print_seconds(function->self_ns, 9);
    print_per_call(function->self_ns, function->calls);
    gp_print_seconds(function->total_ns, 9);
    print_per_call(function->total_ns, function->primitive_calls);
    putchar(' ');
    if (function->frame->pseudo) {
        gp_print_text(function->frame->function);
        printf("\n");
        return;
    }
    gp_print_text(function->frame->file);
    printf(":%" PRIu32 "(", function->frame->first_line);
    gp_print_text(function->frame->function);
    printf(")\n");
}

static void print_title(const gp_report_t *report, const gp_function_table_t *table,
                        const gp_table_options_t *options, uint64_t shown)
{
    printf("         %" PRIu64 " samples in ", report->samples);
    gp_print_seconds(report->total_ns, 0);
    printf(" seconds\n\n   Ordered by: ");
    for (size_t i = 0; i < options->sort_count; i++)
        printf("%s%s", i > 0 ? ", " : "", options->sorts[i]->what);
    if (shown < table->function_count)
        printf("\n   List reduced from %" PRIu32 " to %" PRIu64 " (-n)", table->function_count,
               shown);
    printf("\n\n   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n");
}

int gp_report_print_functions(const gp_report_t *report, const gp_table_options_t *options)
{
    gp_function_table_t *table = gp_function_table_create(report);

    if (table == NULL)
        return -ENOMEM;
    uint64_t shown = options->rows != 0 && options->rows < table->function_count
                         ? options->rows
                         : table->function_count;
    sorting = options;
    // Sorting moves functions, which the pairs refer to by number: they are not used from here on.
    if (table->function_count > 0)
        qsort(table->functions, table->function_count, sizeof(*table->functions), compare);
    print_title(report, table, options, shown);
    for (uint64_t i = 0; i < shown; i++)
        print_row(&table->functions[i]);
    printf("\n");
    gp_function_table_free(table);
    return 0;
}
