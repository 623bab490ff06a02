// SPDX-License-Identifier: MIT
// Source: Ruby 3.1, symbol.c (rb_id_to_serial, get_id_serial_entry).
#include "ruby_read.h"

#include <stdio.h>
#include <string.h>

#include "base/peek.h"
#include "collect/functions.h"

enum {
    OPERATOR_MAX = 1024, // names of operators are numbers below; of others, with a scope in the lowest bits
    SCOPE_BITS = 4,
    UNIT = 512, // names in an array of them, each with a symbol
    WORD = 8,
    ARRAY_EMBEDDED = 16,
    ARRAY_POINTER = 32,
    IS_EMBEDDED = 1 << 13,
    CACHE_SLOTS = 4096,
};

uintptr_t gp_ruby_symbols;

static bool ruby_read_word(uintptr_t at, uintptr_t *word)
{
    return at % WORD == 0 && gp_peek(at, word, sizeof(*word));
}

static size_t ruby_read_text(uintptr_t string, char *text, size_t size)
{
    uintptr_t words[GP_RUBY_OBJECT_WORDS];
    gp_ruby_text_t in;
    if (string % WORD != 0 || !gp_peek(string, words, sizeof(words)) || !gp_ruby_string_text(words, string, &in))
        return 0;
    size_t len = in.len < size ? in.len : size - 1;
    if (!gp_peek(in.at, text, len))
        return 0;
    text[len] = '\0';
    return len;
}

static bool ruby_read_item(uintptr_t array, uintptr_t at, uintptr_t *item)
{
    uintptr_t flags, first = array + ARRAY_EMBEDDED;
    return ruby_read_word(array, &flags) && (flags & GP_RUBY_TYPE_MASK) == GP_RUBY_ARRAY &&
           (flags & IS_EMBEDDED || ruby_read_word(array + ARRAY_POINTER, &first)) &&
           ruby_read_word(first + at * WORD, item);
}

size_t gp_ruby_symbol(uint64_t id, char *text, size_t size)
{
    uint64_t serial = id < OPERATOR_MAX ? id : id >> SCOPE_BITS;
    uintptr_t all, unit, string;
    bool is_there = gp_ruby_symbols != 0 && ruby_read_word(gp_ruby_symbols, &all) &&
                    ruby_read_item(all, serial / UNIT, &unit) && ruby_read_item(unit, serial % UNIT * 2, &string);
    return is_there ? ruby_read_text(string, text, size) : 0;
}

// Is the instruction sequence still there that the function was read from? Another one in its place, with the same
// texts and lines, is of the same source.
static bool ruby_read_is_same(const gp_ruby_function_t *function)
{
    const gp_ruby_layout_t *layout = gp_ruby_runtime.layout;
    char label[GP_RUBY_LABEL_SIZE + 1], path[GP_RUBY_PATH_SIZE + 1];
    uintptr_t flags, body, words[5]; // of the location: path, base label, label, line
    enum { PATH, LABEL = 2, LINE };
    if (!ruby_read_word(function->key.object, &flags) || (flags & GP_RUBY_TYPE_MASK) != GP_RUBY_IMEMO ||
        !ruby_read_word(function->key.object + layout->iseq_body, &body) || body != function->key.body ||
        !gp_peek(body + layout->body_path, words, sizeof(words)) || words[LINE] != function->key.first_line)
        return false;
    uintptr_t of_path = words[PATH];
    if (ruby_read_word(of_path, &flags) && (flags & GP_RUBY_TYPE_MASK) == GP_RUBY_ARRAY &&
        !ruby_read_item(of_path, 0, &of_path))
        return false;
    size_t label_len = ruby_read_text(words[LABEL], label, sizeof(label));
    return label_len == function->label_len && memcmp(label, function->label, label_len) == 0 &&
           ruby_read_text(of_path, path, sizeof(path)) == function->path_len &&
           memcmp(path, function->path, function->path_len) == 0;
}

// Source: Ruby 3.1, iseq.c (calc_pos, succ_index_lookup, struct succ_dict_block, struct iseq_insn_info_entry).
uint32_t gp_ruby_line(const gp_ruby_function_t *function, uint32_t place)
{
    enum { SMALL = 54, PER_WORD = 9, RANK_BITS = 7, BLOCK = 512, BLOCK_BYTES = 80, BLOCK_RANKS = 8, BLOCK_WORDS = 16 };
    enum { SMALL_RANK_BITS = 9, INDEX_AT = 24, COUNT_AT = 16, ENTRY_BYTES = 12, WORD_BITS = 64 };
    uintptr_t info[4], at = function->key.body + gp_ruby_runtime.layout->body_lines; // entries, positions, count, index
    uint32_t position = place > 0 ? place - 1 : 0, rank; // a frame's place is behind what it does
    uint64_t ranks, bits;
    if (place == GP_RUBY_PLACE_UNKNOWN || !gp_peek(at, info, sizeof(info)))
        return 0;
    if (position < SMALL) {
        if (!gp_peek(info[3] + position / PER_WORD * WORD, &ranks, sizeof(ranks)))
            return 0;
        rank = ranks >> (position % PER_WORD * RANK_BITS) & ((1 << RANK_BITS) - 1);
    } else {
        uint32_t behind = position - SMALL, bit = behind % BLOCK, word = bit / WORD_BITS;
        uintptr_t block = info[3] + SMALL / PER_WORD * WORD + (uintptr_t)behind / BLOCK * BLOCK_BYTES;
        if (!gp_peek(block, &rank, sizeof(rank)) || !gp_peek(block + BLOCK_RANKS, &ranks, sizeof(ranks)) ||
            !gp_peek(block + BLOCK_WORDS + word * WORD, &bits, sizeof(bits)))
            return 0;
        rank += word == 0 ? 0 : (uint32_t)(ranks >> ((word - 1) * SMALL_RANK_BITS)) & ((1 << SMALL_RANK_BITS) - 1);
        rank += (uint32_t)__builtin_popcountll(bits << (WORD_BITS - 1 - bit % WORD_BITS));
    }
    int32_t line;
    bool is_there = rank > 0 && rank <= (uint32_t)info[2] &&
                    gp_peek(info[0] + (uintptr_t)(rank - 1) * ENTRY_BYTES, &line, sizeof(line));
    return is_there && line > 0 && ruby_read_is_same(function) ? (uint32_t)line : 0;
}

// Where a label has the method's name: "block in NAME", "rescue in NAME".
static size_t ruby_read_name_at(const char *label)
{
    static const char *const heads[] = {"block ", "rescue in ", "ensure in "};
    const char *in = NULL;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]) && in == NULL; i++)
        if (strncmp(label, heads[i], strlen(heads[i])) == 0)
            in = strstr(label, " in ");
    return in != NULL ? (size_t)(in - label) + 4 : 0;
}

// A text that was cut to `size` may end amid a character.
static size_t ruby_read_whole(const char *text, size_t len, size_t size)
{
    size_t at = len;
    while (at > 0 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
        at--;
    return len == size && at > 0 && (unsigned char)text[at - 1] >= 0xc0 ? at - 1 : len;
}

static uint32_t ruby_read_number(const gp_ruby_function_t *function)
{
    char label[GP_RUBY_LABEL_SIZE + 1], name[GP_RUBY_LABEL_SIZE + GP_RUBY_CLASS_SIZE + 2];
    bool is_code = function->kind == GP_RUBY_CODE, is_c = function->kind == GP_RUBY_C;
    size_t len = ruby_read_whole(function->label, function->label_len, sizeof(function->label));
    int class_len = (int)ruby_read_whole(function->class, function->class_len, sizeof(function->class));
    memcpy(label, function->label, len);
    label[len] = '\0';
    if (!is_code && gp_ruby_symbol(function->id, name, sizeof(label)) > 0)
        memcpy(label, name, strlen(name) + 1);
    if (label[0] == '\0')
        memcpy(label, "[C function]", sizeof("[C function]"));
    size_t at = is_code ? ruby_read_name_at(label) : 0;
    int name_len = snprintf(name, sizeof(name), "%.*s%.*s%s%s", (int)at, label, class_len, function->class,
                            class_len == 0           ? ""
                            : function->is_singleton ? "."
                                                     : "#",
                            label + at);
    uint32_t line = is_c ? 0 : (uint32_t)(function->key.first_line >> 1); // it is a Fixnum
    return gp_functions_number(name, (size_t)name_len, is_c ? "[C]" : function->path, is_c ? 3 : function->path_len,
                               line);
}

static gp_loc_t ruby_read_locate(uintptr_t frame)
{
    static uint32_t numbers[GP_MET_FUNCTIONS];
    uint32_t index = gp_met_word_number(frame);
    const gp_ruby_function_t *function = &gp_ruby_runtime.table->functions[index];
    if (numbers[index] == 0)
        numbers[index] = ruby_read_number(function);
    if (numbers[index] == 0)
        return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    bool has_lines = function->kind != GP_RUBY_C && !gp_functions_is_other(numbers[index]);
    uint32_t line = has_lines ? gp_ruby_line(function, gp_ruby_word_place(frame)) : 0;
    return GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(numbers[index], line));
}

gp_loc_t gp_ruby_locate(uintptr_t frame, uint64_t ticks)
{
    (void)ticks; // a word never means something else
    static struct {
        uintptr_t frame;
        gp_loc_t loc;
    } cache[CACHE_SLOTS];
    frame &= ~(uintptr_t)(GP_LANGUAGE_ENTRY | GP_LANGUAGE_WORD_OF(GP_LANGUAGE_NUMBERS_MAX - 1));
    if (gp_met_word_number(frame) == 0)
        return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    size_t slot = (frame * 0x9e3779b97f4a7c15ull) >> 52;
    if (cache[slot].frame != frame) {
        cache[slot].loc = ruby_read_locate(frame);
        cache[slot].frame = frame;
    }
    return cache[slot].loc;
}
