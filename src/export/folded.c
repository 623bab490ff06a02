// Folded stacks: "root;...;leaf MICROSECONDS", one line a distinct stack of function names, sorted.
// Readers split at the last space and at every semicolon, and want whole numbers: names are made
// safe for that, and the weights are rounded so that the file's sum is the report's total to the
// microsecond.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/text.h"
#include "symbol/index.h"
#include "symbol/memory.h"

enum { NS_PER_US = 1000 };

typedef struct line {
    const char *text;
    uint64_t weight_ns;
    uint64_t weight_us;
} line_t;

typedef struct name {
    const char *text;
    size_t len;
} name_t;

typedef struct lines {
    name_t *names; // name_t[frame_count]
    line_t *items;
    size_t count, capacity;
    gp_index_t index;
    gp_arena_t arena;
    gp_text_t stack; // the line that is being put together
} lines_t;

// A name as it may stand in a line.
static void add_name(gp_text_t *text, const char *name)
{
    while (*name != '\0') {
        size_t len = gp_text_utf8_len(name);
        unsigned char c = (unsigned char)*name;
        if (len == 0)
            gp_text_add(text, "\xef\xbf\xbd", 3);
        else if (c == ';')
            gp_text_add(text, ":", 1);
        else if (c < ' ' || c == 0x7f)
            gp_text_add(text, " ", 1);
        else
            gp_text_add(text, name, len);
        name += len ? len : 1;
    }
}

// Names of all frames: each is on many stacks.
static int make_names(lines_t *lines, const gp_report_t *report)
{
    lines->names = gp_arena_alloc(&lines->arena, (report->frame_count + 1) * sizeof(*lines->names));
    for (uint32_t i = 0; i < report->frame_count && lines->names != NULL; i++) {
        gp_text_clear(&lines->stack);
        add_name(&lines->stack, report->frames[i].function);
        name_t name = {gp_arena_text(&lines->arena, lines->stack.len ? lines->stack.data : "",
                                     lines->stack.len),
                       lines->stack.len};
        if (lines->stack.failed || name.text == NULL)
            return -ENOMEM;
        lines->names[i] = name;
    }
    return lines->names != NULL ? 0 : -ENOMEM;
}

static bool same_line(const void *owner, uint32_t number, const void *key)
{
    return strcmp(((const lines_t *)owner)->items[number].text, key) == 0;
}

static int add_row(lines_t *lines, const gp_row_t *row)
{
    gp_text_clear(&lines->stack);
    for (uint32_t i = 0; i < row->depth; i++) {
        if (i > 0)
            gp_text_add(&lines->stack, ";", 1);
        const name_t *name = &lines->names[row->frames[i]];
        gp_text_add(&lines->stack, name->text, name->len);
    }
    if (lines->stack.failed)
        return -ENOMEM;
    uint64_t hash = gp_hash_bytes(lines->stack.data, lines->stack.len);
    uint32_t number = gp_index_find(&lines->index, hash, same_line, lines, lines->stack.data);
    if (number == GP_INDEX_NONE) {
        const char *copy = gp_arena_text(&lines->arena, lines->stack.data, lines->stack.len);
        number = (uint32_t)lines->count;
        if (copy == NULL ||
            gp_grow(&lines->items, &lines->capacity, lines->count, sizeof(*lines->items)) < 0 ||
            gp_index_add(&lines->index, hash, number) < 0)
            return -ENOMEM;
        lines->items[lines->count++] = (line_t){.text = copy};
    }
    lines->items[number].weight_ns += row->weight_ns;
    return 0;
}

static int compare_remainders(const void *left, const void *right)
{
    const line_t *a = left, *b = right;
    uint64_t rest_a = a->weight_ns % NS_PER_US, rest_b = b->weight_ns % NS_PER_US;

    if (rest_a != rest_b)
        return rest_a > rest_b ? -1 : 1;
    return strcmp(a->text, b->text);
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(((const line_t *)left)->text, ((const line_t *)right)->text);
}

// Whole microseconds by the largest remainder: the lines with the largest fractions get what
// rounding down left over.
static void round_weights(lines_t *lines)
{
    uint64_t total_ns = 0, given_us = 0;

    for (size_t i = 0; i < lines->count; i++) {
        lines->items[i].weight_us = lines->items[i].weight_ns / NS_PER_US;
        total_ns += lines->items[i].weight_ns;
        given_us += lines->items[i].weight_us;
    }
    uint64_t left_us = (total_ns + NS_PER_US / 2) / NS_PER_US - given_us;
    qsort(lines->items, lines->count, sizeof(*lines->items), compare_remainders);
    for (size_t i = 0; i < left_us && i < lines->count; i++)
        lines->items[i].weight_us++;
    qsort(lines->items, lines->count, sizeof(*lines->items), compare_texts);
}

int gp_folded_write(const gp_report_t *report, FILE *out)
{
    lines_t lines = {0};
    int result = make_names(&lines, report);

    for (uint32_t i = 0; i < report->row_count && result == 0; i++)
        result = add_row(&lines, &report->rows[i]);
    if (result == 0 && lines.count > 0)
        round_weights(&lines);
    for (size_t i = 0; i < lines.count && result == 0; i++)
        if (lines.items[i].weight_us > 0)
            fprintf(out, "%s %" PRIu64 "\n", lines.items[i].text, lines.items[i].weight_us);
    free(lines.items);
    gp_index_free(&lines.index);
    gp_arena_free(&lines.arena);
    gp_text_free(&lines.stack);
    return result;
}
