// SPDX-License-Identifier: MIT
// greenprof diff --by stack: the same comparison, of whole stacks.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "print.h"
#include "report_json.h"

enum { NAME_SIZE = 4096, FRAMES_SHOWN = 8 };

typedef struct stack {
    const uint32_t *functions; // [depth], root first
    uint32_t depth;
    gp_weights_t weights[GP_SIDES];
    gp_change_t change;
    char *name; // "inner < caller < its caller"
} stack_t;

typedef struct stacks {
    const gp_diff_t *diff;
    stack_t *items;
    size_t count, capacity;
    gp_index_t index;
    gp_arena_t arena;
} stacks_t;

static bool diff_stacks_same_stack(const void *owner, uint32_t number, const void *key)
{
    const stack_t *a = &((const stacks_t *)owner)->items[number], *b = key;
    return a->depth == b->depth && memcmp(a->functions, b->functions, a->depth * sizeof(*a->functions)) == 0;
}

// Rows that differ in lines only are one stack. Returns NULL when memory is short.
static stack_t *diff_stacks_find_stack(stacks_t *stacks, const gp_diff_side_t *side, const gp_report_row_t *row)
{
    uint32_t *functions = gp_arena_alloc(&stacks->arena, (row->depth + 1) * sizeof(*functions));
    const stack_t key = {.functions = functions, .depth = row->depth};
    for (uint32_t i = 0; i < row->depth && functions != NULL; i++)
        functions[i] = side->functions[row->frames[i]];
    if (functions == NULL)
        return NULL;
    uint64_t hash = gp_hash_bytes(functions, row->depth * sizeof(*functions));
    uint32_t number = gp_index_find(&stacks->index, hash, diff_stacks_same_stack, stacks, &key);
    if (number != GP_INDEX_NONE)
        return &stacks->items[number];
    if (gp_grow(&stacks->items, &stacks->capacity, stacks->count, sizeof(*stacks->items)) < 0 ||
        gp_index_add(&stacks->index, hash, (uint32_t)stacks->count) < 0)
        return NULL;
    stacks->items[stacks->count] = key;
    return &stacks->items[stacks->count++];
}

static int diff_stacks_name_stack(stacks_t *stacks, stack_t *stack)
{
    char text[NAME_SIZE];
    size_t len = 0;
    for (uint32_t i = 0; i < stack->depth && i < FRAMES_SHOWN && len < sizeof(text); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " < " : "",
                                stacks->diff->functions[stack->functions[stack->depth - 1 - i]].name);
    if (stack->depth > FRAMES_SHOWN && len < sizeof(text))
        snprintf(text + len, sizeof(text) - len, " < ... %u more", stack->depth - FRAMES_SHOWN);
    stack->name = gp_arena_copy(&stacks->arena, text, strlen(text) + 1);
    return stack->name != NULL ? 0 : -ENOMEM;
}

static int diff_stacks_fill(stacks_t *stacks, gp_diff_t *diff)
{
    int result = 0;
    for (size_t which = 0; which < GP_SIDES; which++)
        for (uint32_t i = 0; i < diff->sides[which].report->row_count; i++) {
            const gp_report_row_t *row = &diff->sides[which].report->rows[i];
            stack_t *stack = diff_stacks_find_stack(stacks, &diff->sides[which], row);
            if (stack == NULL)
                return -ENOMEM;
            gp_diff_charge(&stack->weights[which], row);
        }
    gp_diff_compare_all(diff, stacks->count);
    for (size_t i = 0; i < stacks->count && result == 0; i++) {
        stacks->items[i].change = gp_diff_change(diff, stacks->items[i].weights);
        result = diff_stacks_name_stack(stacks, &stacks->items[i]);
    }
    return result;
}

static bool by_change, by_name; // qsort() has no context; the command is single-threaded

static int diff_stacks_compare(const void *left, const void *right)
{
    const stack_t *a = left, *b = right;
    double first = fabs(by_change ? a->change.difference : a->change.z);
    double second = fabs(by_change ? b->change.difference : b->change.z);
    if (!by_name && first != second)
        return first > second ? -1 : 1;
    return strcmp(a->name, b->name);
}

static const char *diff_stacks_name_of(const void *context, uint32_t row)
{
    return ((const stack_t *)context)[row].name;
}

static void diff_stacks_json(gp_json_t *json, const stack_t *stack)
{
    gp_json_open(json, '{');
    gp_json_key_text(json, "stack", stack->name);
    gp_diff_json_change(json, "own", &stack->change);
    gp_json_close(json, '}');
    gp_json_line(json);
}

static int diff_stacks_print(const stacks_t *stacks, const char *order, gp_row_limits_t restrictions)
{
    uint32_t *rows = calloc(stacks->count + 1, sizeof(*rows));
    if (rows == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < stacks->count; i++)
        rows[i] = i;
    gp_json_t *json = stacks->diff->json;
    if (json != NULL) {
        size_t shown = gp_report_json_restrict(restrictions, rows, stacks->count, diff_stacks_name_of, stacks->items);
        gp_diff_json_begin(stacks->diff, "stack", order);
        for (size_t i = 0; i < shown; i++)
            diff_stacks_json(json, &stacks->items[rows[i]]);
        gp_diff_json_end(json);
        free(rows);
        return 0;
    }
    gp_diff_print_header(stacks->diff);
    printf("   Ordered by: %s\n", order);
    size_t count = gp_restrictions_apply(restrictions, rows, stacks->count, diff_stacks_name_of, stacks->items);
    printf("\n%-36s stack, innermost first\n", "    base     file   change    error");
    for (size_t i = 0; i < count; i++) {
        gp_diff_print_change(&stacks->items[rows[i]].change);
        printf("  ");
        gp_print_text(stacks->items[rows[i]].name);
        printf("\n");
    }
    printf("\n");
    free(rows);
    return 0;
}

int gp_diff_print_stacks(gp_diff_t *diff, const char *order, gp_row_limits_t restrictions)
{
    stacks_t stacks = {.diff = diff};
    by_name = strcmp(order, "name") == 0;
    by_change = strcmp(order, "significance") != 0;
    int result = diff_stacks_fill(&stacks, diff);
    if (result == 0 && stacks.count > 0)
        qsort(stacks.items, stacks.count, sizeof(*stacks.items), diff_stacks_compare);
    if (result == 0)
        result = diff_stacks_print(&stacks, order, restrictions);
    free(stacks.items);
    gp_index_free(&stacks.index);
    gp_arena_free(&stacks.arena);
    return result;
}
