// SPDX-License-Identifier: MIT
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Characters of a text, as len() of Python counts them.
static size_t stats_width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

// pstats' func_std_string().
static const char *stats_standard_text(gp_arena_t *arena, const gp_stat_t *stat)
{
    size_t len = strlen(stat->function);
    char *text = NULL;
    if (strcmp(stat->file, "~") == 0 && stat->line == 0) {
        text = gp_arena_text(arena, stat->function, len);
        if (text != NULL && len >= 2 && text[0] == '<' && text[len - 1] == '>') {
            text[0] = '{';
            text[len - 1] = '}';
        }
        return text;
    }
    size_t size = strlen(stat->file) + len + 32;
    text = gp_arena_alloc(arena, size);
    if (text != NULL)
        snprintf(text, size, "%s:%" PRIu64 "(%s)", stat->file, stat->line, stat->function);
    return text;
}

static bool stats_same_stat(const void *owner, uint32_t number, const void *key)
{
    const gp_stat_t *a = &((const gp_stats_t *)owner)->items[number], *b = key;
    return a->line == b->line && strcmp(a->function, b->function) == 0 && strcmp(a->file, b->file) == 0;
}

// Find or add a function, without calls and times. Its number or GP_INDEX_NONE.
static uint32_t stats_stat_number(gp_stats_t *stats, const char *file, uint64_t line, const char *function)
{
    gp_stat_t stat = {.file = file, .line = line, .function = function};
    uint64_t hash = gp_hash_more(gp_hash_bytes(file, strlen(file)), line);
    hash = gp_hash_more(hash, gp_hash_bytes(function, strlen(function)));
    uint32_t number = gp_index_find(&stats->index, hash, stats_same_stat, stats, &stat);
    if (number != GP_INDEX_NONE)
        return number;
    stat.file = gp_arena_text(&stats->arena, file, strlen(file));
    stat.function = gp_arena_text(&stats->arena, function, strlen(function));
    if (stat.file == NULL || stat.function == NULL)
        return GP_INDEX_NONE;
    stat.text = stats_standard_text(&stats->arena, &stat);
    if (stat.text == NULL || gp_grow(&stats->items, &stats->capacity, stats->count, sizeof(*stats->items)) < 0 ||
        gp_index_add(&stats->index, hash, (uint32_t)stats->count) < 0)
        return GP_INDEX_NONE;
    stat.width = stats_width_of(stat.text);
    if (stat.width > stats->width)
        stats->width = stat.width;
    stats->items[stats->count] = stat;
    return (uint32_t)stats->count++;
}

static gp_stat_caller_t *stats_find_caller(gp_stat_t *stat, uint32_t caller)
{
    for (size_t i = 0; i < stat->caller_count; i++)
        if (stat->callers[i].function == caller)
            return &stat->callers[i];
    return NULL;
}

static int stats_add_caller(gp_stat_t *stat, const gp_stat_caller_t *caller)
{
    gp_stat_caller_t *found = stats_find_caller(stat, caller->function);
    if (found != NULL) {
        found->calls += caller->calls;
        found->primitive_calls += caller->primitive_calls;
        found->own_s += caller->own_s;
        found->total_s += caller->total_s;
        return 0;
    }
    if (gp_grow(&stat->callers, &stat->caller_capacity, stat->caller_count, sizeof(*stat->callers)) < 0)
        return -ENOMEM;
    stat->callers[stat->caller_count++] = *caller;
    return 0;
}

static double stats_seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static int stats_add_function(gp_stats_t *stats, const gp_function_table_t *table, const gp_function_t *function,
                              const uint32_t *numbers)
{
    uint32_t number = numbers[function - table->functions];
    gp_stat_t *stat = &stats->items[number];
    stat->calls += function->calls;
    stat->primitive_calls += function->primitive_calls;
    stat->own_s += stats_seconds(function->self_ns);
    stat->total_s += stats_seconds(function->total_ns);
    stats->calls += function->calls;
    stats->primitive_calls += function->primitive_calls;
    stats->total_s += stats_seconds(function->self_ns);
    for (uint32_t i = 0; i < function->caller_count; i++) {
        const gp_function_pair_t *pair = &table->pairs[function->first_caller + i];
        const gp_stat_caller_t caller = {
            .function = numbers[pair->caller],
            .calls = pair->calls,
            .primitive_calls = pair->primitive_calls,
            .own_s = stats_seconds(pair->self_ns),
            .total_s = stats_seconds(pair->total_ns),
        };
        if (stats_add_caller(stat, &caller) < 0)
            return -ENOMEM;
    }
    return 0;
}

int gp_stats_add_report(gp_stats_t *stats, const gp_report_t *report)
{
    gp_function_table_t *table = gp_function_table_create(report);
    uint32_t *numbers = table ? calloc((size_t)table->function_count + 1, sizeof(*numbers)) : NULL;
    int result = numbers != NULL ? 0 : -ENOMEM;
    for (uint32_t i = 0; result == 0 && i < table->function_count; i++) {
        const gp_function_t *function = &table->functions[i];
        if (function->calls == 0 && function->total_ns == 0)
            continue;
        numbers[i] =
            stats_stat_number(stats, function->frame->file, function->frame->first_line, function->frame->function);
        result = numbers[i] != GP_INDEX_NONE ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; result == 0 && i < table->function_count; i++)
        if (table->functions[i].calls > 0 || table->functions[i].total_ns > 0)
            result = stats_add_function(stats, table, &table->functions[i], numbers);
    free(numbers);
    gp_function_table_free(table);
    return result;
}

// qsort() has no context; the command is single-threaded.
static const gp_stats_t *sorting;

static int stats_by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int stats_by_seconds(double a, double b)
{
    return a < b ? -1 : a > b;
}

static int stats_compare_one(gp_sort_t sort, const gp_stat_t *a, const gp_stat_t *b)
{
    int result;
    switch (sort) {
    case GP_SORT_CALLS:
        return stats_by_number(b->calls, a->calls);
    case GP_SORT_PRIMITIVE_CALLS:
        return stats_by_number(b->primitive_calls, a->primitive_calls);
    case GP_SORT_CUMULATIVE:
        return stats_by_seconds(b->total_s, a->total_s);
    case GP_SORT_TIME:
        return stats_by_seconds(b->own_s, a->own_s);
    case GP_SORT_FILE:
        return strcmp(a->file, b->file);
    case GP_SORT_LINE:
        return stats_by_number(a->line, b->line);
    case GP_SORT_NAME:
        return strcmp(a->function, b->function);
    case GP_SORT_NAME_FILE_LINE:
        result = strcmp(a->function, b->function);
        if (result == 0)
            result = strcmp(a->file, b->file);
        return result != 0 ? result : stats_by_number(a->line, b->line);
    case GP_SORT_STANDARD_NAME:
        return strcmp(a->text, b->text);
    case GP_SORT_NONE:
    default: // a column of other tables
        break;
    }
    return 0;
}

static int stats_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const gp_stat_t *first = &sorting->items[a], *second = &sorting->items[b];
    int result = 0;
    for (size_t i = 0; i < sorting->sorts.count && result == 0; i++)
        result = stats_compare_one(sorting->sorts.keys[i]->sort, first, second);
    if (result == 0)
        result = stats_compare_one(GP_SORT_CUMULATIVE, first, second);
    if (result == 0)
        result = stats_compare_one(GP_SORT_STANDARD_NAME, first, second);
    return result != 0 ? result : stats_by_number(a, b);
}

int gp_stats_sort(gp_stats_t *stats, const gp_sorts_t *sorts)
{
    uint32_t *order = calloc(stats->count + 1, sizeof(*order));
    if (order == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < stats->count; i++)
        order[i] = (uint32_t)i;
    stats->order = order;
    stats->sorts = *sorts;
    sorting = stats;
    if (stats->count > 0)
        qsort(order, stats->count, sizeof(*order), stats_compare);
    return 0;
}

void gp_stats_free(gp_stats_t *stats)
{
    for (size_t i = 0; i < stats->count; i++)
        free(stats->items[i].callers);
    free(stats->items);
    free(stats->order);
    gp_index_free(&stats->index);
    gp_arena_free(&stats->arena);
    memset(stats, 0, sizeof(*stats));
}
