// SPDX-License-Identifier: MIT
#include "export/deflate.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "export/huffman.h"

enum {
    WINDOW = 1 << 15, // how far back a match may be
    BLOCK = 1 << 16,  // of input
    HASH_BITS = 15,
    MATCH_MIN = 4, // the format's is 3: what a hash of four bytes finds pays more often
    MATCH_BASE = 3,
    MATCH_MAX = 258,
    END = 256, // symbols of literals and lengths
    LENGTH_SYMBOL = 257,
    LITERALS = 286,
    DISTANCES = 30,
    LENGTH_CODES = 19,
    CODE_MAX = 15,
    LENGTH_CODE_MAX = 7,
    // A symbol has 15 bits at most, what describes the codes less than 14 + 19 * 3 + 316 * 14 bits.
    OUT_BYTES = 2 * BLOCK + 1024,
};

// A token is a literal, or a match: its length minus MATCH_BASE, its distance minus 1.
#define MATCH(length, distance) (1u << 31 | (uint32_t)((length)-MATCH_BASE) << 16 | (uint32_t)((distance)-1))
#define IS_MATCH(token)         ((token) >> 31)
#define MATCH_LENGTH(token)     ((token) >> 16 & 0xff) // minus MATCH_BASE
#define MATCH_DISTANCE(token)   ((token)&0x7fff)       // minus 1

struct gp_deflate {
    gp_deflate_take_t *take;
    void *context;
    size_t history, len;           // bytes of earlier blocks, then of this one, in `bytes`
    uint32_t before;               // where `bytes` begin in the stream
    uint32_t last[1 << HASH_BITS]; // where four bytes with this hash were last, in the stream
    size_t token_count;
    uint32_t literals[LITERALS], distances[DISTANCES]; // how often each symbol is in the tokens
    uint64_t bits;                                     // not yet put out
    unsigned bit_count;                                // less than 8 between calls
    size_t out_len;
    uint32_t tokens[BLOCK];
    uint8_t bytes[WINDOW + BLOCK + 8]; // 8: read, not used
    uint8_t out[OUT_BYTES + 8];        // 8: written, not used
};

typedef struct range { // of what one symbol says
    uint16_t base;
    uint8_t extra_bits;
} range_t;

// Minus MATCH_BASE, and minus 1. Source: RFC 1951, 3.2.5.
static const range_t length_ranges[] = {
    {0, 0},  {1, 0},  {2, 0},  {3, 0},   {4, 0},   {5, 0},   {6, 0},   {7, 0},   {8, 1},   {10, 1},
    {12, 1}, {14, 1}, {16, 2}, {20, 2},  {24, 2},  {28, 2},  {32, 3},  {40, 3},  {48, 3},  {56, 3},
    {64, 4}, {80, 4}, {96, 4}, {112, 4}, {128, 5}, {160, 5}, {192, 5}, {224, 5}, {255, 0},
};
static const range_t distance_ranges[] = {
    {0, 0},     {1, 0},     {2, 0},     {3, 0},      {4, 1},      {6, 1},      {8, 2},     {12, 2},
    {16, 3},    {24, 3},    {32, 4},    {48, 4},     {64, 5},     {96, 5},     {128, 6},   {192, 6},
    {256, 7},   {384, 7},   {512, 8},   {768, 8},    {1024, 9},   {1536, 9},   {2048, 10}, {3072, 10},
    {4096, 11}, {6144, 11}, {8192, 12}, {12288, 12}, {16384, 13}, {24576, 13},
};

static unsigned highest_bit(uint32_t value)
{
    return 31 - (unsigned)__builtin_clz(value);
}

// Each power of two has four ranges of lengths, from 8 on, and two of distances, from 4 on.
static unsigned length_symbol(uint32_t length)
{
    if (length < 8 || length == MATCH_MAX - MATCH_BASE)
        return length < 8 ? length : 28;
    unsigned bit = highest_bit(length);
    return 4 * (bit - 1) + (length >> (bit - 2) & 3);
}

static unsigned distance_symbol(uint32_t distance)
{
    if (distance < 4)
        return distance;
    unsigned bit = highest_bit(distance);
    return 2 * bit + (distance >> (bit - 1) & 1);
}

gp_deflate_t *gp_deflate_open(gp_deflate_take_t *take, void *context)
{
    gp_deflate_t *deflate = gp_memory_had(calloc(1, sizeof(*deflate)));
    if (deflate == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    deflate->take = take;
    deflate->context = context;
    return deflate;
}

static inline uint32_t four_bytes(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static inline size_t hash_of(uint32_t value)
{
    return le32toh(value) * 0x9e3779b1u >> (32 - HASH_BITS);
}

// How many bytes at `a` are equal to those at `b`, up to `most`; the first four are.
static inline size_t match_length(const uint8_t *a, const uint8_t *b, size_t most)
{
    size_t length = MATCH_MIN;
    for (; length + 8 <= most; length += 8) {
        uint64_t left, right;
        memcpy(&left, a + length, 8);
        memcpy(&right, b + length, 8);
        if (left != right)
            return length + (size_t)__builtin_ctzll(le64toh(left) ^ le64toh(right)) / 8;
    }
    while (length < most && a[length] == b[length])
        length++;
    return length;
}

static inline void add_literal(gp_deflate_t *deflate, uint8_t byte)
{
    deflate->tokens[deflate->token_count++] = byte;
    deflate->literals[byte]++;
}

static inline void add_match(gp_deflate_t *deflate, size_t length, size_t distance)
{
    deflate->tokens[deflate->token_count++] = MATCH(length, distance);
    deflate->literals[LENGTH_SYMBOL + length_symbol((uint32_t)length - MATCH_BASE)]++;
    deflate->distances[distance_symbol((uint32_t)distance - 1)]++;
}

// Note where the bytes at `at` are. Returns how far back the same hash was, or something that is no distance.
static inline uint32_t look_up(gp_deflate_t *deflate, size_t at)
{
    uint32_t place = deflate->before + (uint32_t)at;
    uint32_t *last = &deflate->last[hash_of(four_bytes(deflate->bytes + at))];
    uint32_t distance = place - *last;
    *last = place;
    return distance;
}

// Bytes of the block to tokens. What was noted may be from anywhere: the bytes themselves decide.
static void find_tokens(gp_deflate_t *deflate)
{
    const uint8_t *bytes = deflate->bytes;
    size_t at = deflate->history, end = at + deflate->len;
    while (at + MATCH_MIN <= end) {
        uint32_t distance = look_up(deflate, at);
        if (distance - 1 >= WINDOW || distance > at || four_bytes(bytes + at) != four_bytes(bytes + at - distance)) {
            add_literal(deflate, bytes[at++]);
            continue;
        }
        size_t most = end - at < MATCH_MAX ? end - at : MATCH_MAX;
        size_t length = match_length(bytes + at, bytes + at - distance, most);
        add_match(deflate, length, distance);
        at += length;
        if (at + MATCH_MIN <= end) // what follows a match begins there more often than elsewhere
            look_up(deflate, at - 2);
    }
    while (at < end)
        add_literal(deflate, bytes[at++]);
    deflate->literals[END]++;
}

static inline void put_bits(gp_deflate_t *deflate, uint64_t bits, unsigned count)
{
    deflate->bits |= bits << deflate->bit_count;
    deflate->bit_count += count;
}

// Put out whole bytes: before and after at most 56 more bits.
static inline void put_bytes(gp_deflate_t *deflate)
{
    uint64_t bits = htole64(deflate->bits);
    memcpy(deflate->out + deflate->out_len, &bits, sizeof(bits));
    deflate->out_len += deflate->bit_count / 8;
    deflate->bits >>= deflate->bit_count & ~7u;
    deflate->bit_count &= 7;
}

typedef struct run { // of code lengths: a symbol, and the bits that follow it
    uint8_t symbol, extra, extra_bits;
} run_t;

// Say the lengths by runs: 16 repeats the last one, 17 and 18 are zeros. Returns how many there are.
static unsigned make_runs(const uint8_t *lengths, unsigned count, run_t *runs, uint32_t *frequencies)
{
    unsigned run_count = 0;
    for (unsigned i = 0; i < count;) {
        unsigned same = 1, most = lengths[i] == 0 ? 138 : 6;
        bool repeats = lengths[i] != 0 && i > 0 && lengths[i - 1] == lengths[i];
        while (same < most && i + same < count && lengths[i + same] == lengths[i])
            same++;
        run_t run = {lengths[i], 0, 0};
        if (lengths[i] == 0 && same >= 11)
            run = (run_t){18, (uint8_t)(same - 11), 7};
        else if (lengths[i] == 0 && same >= 3)
            run = (run_t){17, (uint8_t)(same - 3), 3};
        else if (repeats && same >= 3)
            run = (run_t){16, (uint8_t)(same - 3), 2};
        else
            same = 1;
        frequencies[run.symbol]++;
        runs[run_count++] = run;
        i += same;
    }
    return run_count;
}

static unsigned upto_last(const uint8_t *lengths, unsigned count, unsigned least)
{
    while (count > least && lengths[count - 1] == 0)
        count--;
    return count;
}

// The block's head: what its codes are. Source: RFC 1951, 3.2.7.
static void put_head(gp_deflate_t *deflate, const gp_huffman_t *literals, const gp_huffman_t *distances, bool is_last)
{
    static const uint8_t order[LENGTH_CODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    unsigned literal_count = upto_last(literals->lengths, LITERALS, LENGTH_SYMBOL), count = LENGTH_CODES;
    unsigned distance_count = upto_last(distances->lengths, DISTANCES, 1);
    uint8_t lengths[LITERALS + DISTANCES];
    uint32_t frequencies[LENGTH_CODES] = {0};
    run_t runs[LITERALS + DISTANCES];
    gp_huffman_t codes;
    memcpy(lengths, literals->lengths, literal_count);
    memcpy(lengths + literal_count, distances->lengths, distance_count);
    unsigned run_count = make_runs(lengths, literal_count + distance_count, runs, frequencies);
    gp_huffman_make(&codes, frequencies, LENGTH_CODES, LENGTH_CODE_MAX);
    while (count > 4 && codes.lengths[order[count - 1]] == 0)
        count--;
    put_bits(deflate, (is_last ? 1u : 0u) | 2u << 1, 3);
    put_bits(deflate, (literal_count - 257) | (distance_count - 1) << 5 | (count - 4) << 10, 14);
    put_bytes(deflate);
    for (unsigned i = 0; i < count; i++) {
        put_bits(deflate, codes.lengths[order[i]], 3);
        put_bytes(deflate);
    }
    for (unsigned i = 0; i < run_count; i++) {
        put_bits(deflate, codes.codes[runs[i].symbol], codes.lengths[runs[i].symbol]);
        put_bits(deflate, runs[i].extra, runs[i].extra_bits);
        put_bytes(deflate);
    }
}

static inline void put_symbol(gp_deflate_t *deflate, const gp_huffman_t *codes, unsigned symbol)
{
    put_bits(deflate, codes->codes[symbol], codes->lengths[symbol]);
}

// A match takes 48 bits at most.
static void put_tokens(gp_deflate_t *deflate, const gp_huffman_t *literals, const gp_huffman_t *distances)
{
    for (size_t i = 0; i < deflate->token_count; i++) {
        uint32_t token = deflate->tokens[i];
        if (!IS_MATCH(token)) {
            put_symbol(deflate, literals, token);
        } else {
            unsigned length = length_symbol(MATCH_LENGTH(token)), distance = distance_symbol(MATCH_DISTANCE(token));
            put_symbol(deflate, literals, LENGTH_SYMBOL + length);
            put_bits(deflate, MATCH_LENGTH(token) - length_ranges[length].base, length_ranges[length].extra_bits);
            put_symbol(deflate, distances, distance);
            put_bits(deflate, MATCH_DISTANCE(token) - distance_ranges[distance].base,
                     distance_ranges[distance].extra_bits);
        }
        put_bytes(deflate);
    }
    put_symbol(deflate, literals, END);
    put_bytes(deflate);
}

// What the next block may match stays.
static void slide(gp_deflate_t *deflate)
{
    size_t all = deflate->history + deflate->len, kept = all < WINDOW ? all : WINDOW;
    memmove(deflate->bytes, deflate->bytes + all - kept, kept);
    deflate->before += (uint32_t)(all - kept);
    deflate->history = kept;
    deflate->len = 0;
}

static void put_block(gp_deflate_t *deflate, bool is_last)
{
    gp_huffman_t literals, distances;
    find_tokens(deflate);
    gp_huffman_make(&literals, deflate->literals, LITERALS, CODE_MAX);
    gp_huffman_make(&distances, deflate->distances, DISTANCES, CODE_MAX);
    put_head(deflate, &literals, &distances, is_last);
    put_tokens(deflate, &literals, &distances);
    if (is_last && deflate->bit_count > 0) {
        put_bits(deflate, 0, 8 - deflate->bit_count);
        put_bytes(deflate);
    }
    deflate->take(deflate->context, deflate->out, deflate->out_len);
    deflate->out_len = deflate->token_count = 0;
    memset(deflate->literals, 0, sizeof(deflate->literals));
    memset(deflate->distances, 0, sizeof(deflate->distances));
    slide(deflate);
}

void gp_deflate_write(gp_deflate_t *deflate, const void *bytes, size_t len)
{
    for (const uint8_t *at = bytes; len > 0;) {
        size_t room = BLOCK - deflate->len, part = len < room ? len : room;
        memcpy(deflate->bytes + deflate->history + deflate->len, at, part);
        deflate->len += part;
        if (deflate->len == BLOCK)
            put_block(deflate, false);
        at += part;
        len -= part;
    }
}

void gp_deflate_close(gp_deflate_t *deflate)
{
    if (deflate == NULL)
        return;
    put_block(deflate, true);
    free(deflate);
}
