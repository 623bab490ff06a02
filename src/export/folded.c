// SPDX-License-Identifier: MIT
// Folded stacks: "root;...;leaf MICROSECONDS", one line a distinct stack of function names, sorted (each part by
// itself, where a report comes in parts). Readers split at the last space and at every semicolon, and want whole
// numbers; flamegraph.pl takes a second number at the end for another column. Names are made safe for these, and
// weights are rounded so that the file's sum is the report's total to the microsecond.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/memory.h"
#include "export/output.h"
#include "export/write/text.h"

enum { NS_PER_US = 1000 };

typedef struct line {           // of all rows with the same function names
    const gp_report_row_t *row; // any row of the line
    uint64_t weight_ns;
    uint64_t weight_us;
} line_t;

typedef struct name {
    const char *text;
    size_t len;
    uint32_t number; // frames of the same name have the same
} name_t;

typedef struct lines {
    name_t *names; // name_t[frame_count]
    line_t *items;
    size_t count, capacity;
    gp_index_t index, name_index;
    gp_arena_t arena; // of the names' texts
    gp_text_t text;   // the name that is being made
    FILE *out;
    uint64_t total_ns, given_us; // of all parts so far
    uint64_t by_rest[NS_PER_US]; // of a weight, below a microsecond
} lines_t;

// U+0085, U+2028 and U+2029, at which some readers end a line.
static bool folded_is_line_end(const char *name, size_t len)
{
    return (len == 2 && memcmp(name, "\xc2\x85", len) == 0) ||
           (len == 3 && (memcmp(name, "\xe2\x80\xa8", len) == 0 || memcmp(name, "\xe2\x80\xa9", len) == 0));
}

// "ends in 12" becomes "ends in_12".
static void folded_join_number(gp_text_t *text)
{
    size_t at = text->len;
    while (at > 0 && strchr("0123456789.", text->data[at - 1]) != NULL)
        at--;
    if (at > 0 && at < text->len && text->data[at - 1] == ' ')
        text->data[at - 1] = '_';
}

// A name as it may stand in a line.
static void folded_add_name(gp_text_t *text, const char *name)
{
    while (*name != '\0') {
        size_t len = gp_text_utf8_len(name);
        unsigned char c = (unsigned char)*name;
        if (len == 0)
            gp_text_add(text, "\xef\xbf\xbd", 3);
        else if (c == ';')
            gp_text_add(text, ":", 1);
        else if (c < ' ' || c == 0x7f || folded_is_line_end(name, len))
            gp_text_add(text, " ", 1);
        else
            gp_text_add(text, name, len);
        name += len ? len : 1;
    }
}

static bool folded_same_name(const void *owner, uint32_t number, const void *key)
{
    const name_t *a = &((const lines_t *)owner)->names[number], *b = key;
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static int folded_make_name(lines_t *lines, uint32_t frame, const char *function)
{
    gp_text_clear(&lines->text);
    folded_add_name(&lines->text, function);
    if (lines->text.failed)
        return -ENOMEM;
    folded_join_number(&lines->text);
    name_t name = {lines->text.len > 0 ? lines->text.data : "", lines->text.len, frame};
    uint64_t hash = gp_hash_bytes(name.text, name.len);
    uint32_t known = gp_index_find(&lines->name_index, hash, folded_same_name, lines, &name);
    if (known != GP_INDEX_NONE) {
        lines->names[frame] = lines->names[known];
        return 0;
    }
    name.text = gp_arena_text(&lines->arena, name.text, name.len);
    lines->names[frame] = name;
    return name.text != NULL ? gp_index_add(&lines->name_index, hash, frame) : -ENOMEM;
}

// Names of all frames: each is on many stacks.
static int folded_make_names(lines_t *lines, const gp_report_t *report)
{
    int result = 0;
    lines->names = gp_arena_alloc(&lines->arena, (report->frame_count + 1) * sizeof(*lines->names));
    if (lines->names == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < report->frame_count && result == 0; i++)
        result = folded_make_name(lines, i, report->frames[i].function);
    return result;
}

// A line that is looked for.
typedef struct wanted {
    const lines_t *lines;
    const gp_report_row_t *row;
} wanted_t;

static bool folded_same_line(const void *owner, uint32_t number, const void *key)
{
    const wanted_t *wanted = key;
    const gp_report_row_t *a = ((const lines_t *)owner)->items[number].row, *b = wanted->row;
    const name_t *names = wanted->lines->names;
    if (a->depth != b->depth)
        return false;
    for (uint32_t i = 0; i < a->depth; i++)
        if (names[a->frames[i]].number != names[b->frames[i]].number)
            return false;
    return true;
}

static int folded_add_row(lines_t *lines, const gp_report_row_t *row)
{
    const wanted_t wanted = {lines, row};
    uint64_t hash = row->depth;
    for (uint32_t i = 0; i < row->depth; i++)
        hash = (hash ^ lines->names[row->frames[i]].number) * 0x9e3779b97f4a7c15ull;
    hash = gp_hash_u64(hash);
    uint32_t number = gp_index_find(&lines->index, hash, folded_same_line, lines, &wanted);
    if (number == GP_INDEX_NONE) {
        number = (uint32_t)lines->count;
        if (gp_grow(&lines->items, &lines->capacity, lines->count, sizeof(*lines->items)) < 0 ||
            gp_index_add(&lines->index, hash, number) < 0)
            return -ENOMEM;
        lines->items[lines->count++] = (line_t){.row = row};
    }
    lines->items[number].weight_ns += row->weight_ns;
    return 0;
}

// The character after a name of a row, where another row's name goes on.
static unsigned char folded_next_char(const gp_report_row_t *row, uint32_t at)
{
    return at + 1 < row->depth ? ';' : '\0';
}

// As the lines' texts compare. No name has a semicolon.
static int folded_compare_rows(const gp_report_row_t *a, const gp_report_row_t *b, const name_t *names)
{
    uint32_t depth = a->depth < b->depth ? a->depth : b->depth;
    for (uint32_t i = 0; i < depth; i++) {
        const name_t *left = &names[a->frames[i]], *right = &names[b->frames[i]];
        if (a->frames[i] == b->frames[i] || left->number == right->number)
            continue;
        size_t len = left->len < right->len ? left->len : right->len;
        int order = memcmp(left->text, right->text, len);
        if (order != 0)
            return order;
        unsigned char c = len < left->len ? (unsigned char)left->text[len] : folded_next_char(a, i);
        unsigned char d = len < right->len ? (unsigned char)right->text[len] : folded_next_char(b, i);
        return c < d ? -1 : 1;
    }
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

static int folded_compare_lines(const void *left, const void *right, void *lines)
{
    return folded_compare_rows(((const line_t *)left)->row, ((const line_t *)right)->row,
                               ((const lines_t *)lines)->names);
}

// Whole microseconds by the largest remainder: the lines with the largest fractions, of equal ones the first, get what
// rounding down left over, here and in the parts before.
static void folded_round_weights(lines_t *lines)
{
    uint64_t *by_rest = lines->by_rest; // number of lines, then of those of them that get one more
    memset(by_rest, 0, sizeof(lines->by_rest));
    for (size_t i = 0; i < lines->count; i++) {
        by_rest[lines->items[i].weight_ns % NS_PER_US]++;
        lines->items[i].weight_us = lines->items[i].weight_ns / NS_PER_US;
        lines->total_ns += lines->items[i].weight_ns;
        lines->given_us += lines->items[i].weight_us;
    }
    uint64_t due_us = (lines->total_ns + NS_PER_US / 2) / NS_PER_US;
    uint64_t left_us = due_us > lines->given_us ? due_us - lines->given_us : 0;
    if (left_us > lines->count)
        left_us = lines->count;
    lines->given_us += left_us;
    for (size_t rest = NS_PER_US; rest > 0; rest--) {
        uint64_t *given = &by_rest[rest - 1];
        *given = *given < left_us ? *given : left_us;
        left_us -= *given;
    }
    for (size_t i = 0; i < lines->count; i++) {
        uint64_t *given = &by_rest[lines->items[i].weight_ns % NS_PER_US];
        lines->items[i].weight_us += *given > 0;
        *given -= *given > 0;
    }
}

static void folded_write_line(const lines_t *lines, const line_t *line)
{
    const gp_report_row_t *row = line->row;
    for (uint32_t i = 0; i < row->depth; i++) {
        const name_t *name = &lines->names[row->frames[i]];
        if (i > 0)
            putc_unlocked(';', lines->out);
        fwrite_unlocked(name->text, 1, name->len, lines->out);
    }
    fprintf(lines->out, " %" PRIu64 "\n", line->weight_us);
}

// Rows with the same root are in one part: no line comes twice.
static int folded_write_part(void *context, const gp_report_row_t *rows, size_t count)
{
    lines_t *lines = context;
    int result = 0;
    lines->count = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = folded_add_row(lines, &rows[i]);
    gp_index_free(&lines->index);
    if (result == 0 && lines->count > 0) {
        qsort_r(lines->items, lines->count, sizeof(*lines->items), folded_compare_lines, lines);
        folded_round_weights(lines);
    }
    for (size_t i = 0; i < lines->count && result == 0; i++)
        if (lines->items[i].weight_us > 0)
            folded_write_line(lines, &lines->items[i]);
    return result == 0 ? gp_output_state(lines->out) : result;
}

int gp_folded_write(const gp_report_t *report, FILE *out)
{
    lines_t lines = {.out = out};
    int result = folded_make_names(&lines, report);
    if (result == 0)
        result = gp_report_each_part(report, folded_write_part, &lines);
    free(lines.items);
    gp_index_free(&lines.name_index);
    gp_arena_free(&lines.arena);
    gp_text_free(&lines.text);
    return result;
}
