// SPDX-License-Identifier: MIT
#include "export/huffman.h"

#include <stdlib.h>
#include <string.h>

enum { LENGTH_LIMIT = 32 }; // more than what sums of 32 bits lead to, with what is cut off below

// Symbols that occur, in 64 bits each: how often, then which, so that comparing numbers compares both.
static int compare_keys(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static unsigned collect(uint64_t *keys, const uint32_t *frequencies, unsigned count)
{
    unsigned used = 0;
    for (unsigned i = 0; i < count; i++)
        if (frequencies[i] > 0)
            keys[used++] = (uint64_t)frequencies[i] << 32 | i;
    for (unsigned i = 0; used < 2; i++)
        if (frequencies[i] == 0)
            keys[used++] = (uint64_t)1 << 32 | i;
    qsort(keys, used, sizeof(*keys), compare_keys);
    return used;
}

// In: frequencies, ascending, two at least. Out: the depth of each in the tree, descending. First the tree is built
// from the leaves, each inner node in the place of a leaf that it has taken; then parents give way to depths; then
// depths of inner nodes to those of leaves.
static void find_depths(uint32_t *at, unsigned count)
{
    unsigned root = 0, leaf = 2, next;
    at[0] += at[1];
    for (next = 1; next < count - 1; next++) {
        if (leaf >= count || at[root] < at[leaf]) {
            at[next] = at[root];
            at[root++] = next;
        } else {
            at[next] = at[leaf++];
        }
        if (leaf >= count || (root < next && at[root] < at[leaf])) {
            at[next] += at[root];
            at[root++] = next;
        } else {
            at[next] += at[leaf++];
        }
    }
    at[count - 2] = 0;
    for (unsigned i = count - 2; i > 0; i--)
        at[i - 1] = at[at[i - 1]] + 1;
    unsigned available = 1, taken = 0, depth = 0, inner = count - 1, out = count;
    while (available > 0) {
        for (; inner > 0 && at[inner - 1] == depth; inner--)
            taken++;
        for (; available > taken; available--)
            at[--out] = depth;
        available = 2 * taken;
        depth++;
        taken = 0;
    }
}

// Make no code longer than `longest`: of a code that is too full, one of the longest is moved beside a shorter one.
static void limit(unsigned *of_length, unsigned longest)
{
    uint32_t full = 0;
    for (unsigned length = longest + 1; length < LENGTH_LIMIT; length++)
        of_length[longest] += of_length[length];
    for (unsigned length = 1; length <= longest; length++)
        full += (uint32_t)of_length[length] << (longest - length);
    for (; full > (uint32_t)1 << longest; full--) {
        unsigned length = longest - 1;
        while (of_length[length] == 0)
            length--;
        of_length[longest]--;
        of_length[length]--;
        of_length[length + 1] += 2;
    }
}

static uint16_t reversed(unsigned code, unsigned length)
{
    unsigned out = 0;
    for (unsigned i = 0; i < length; i++)
        out |= (code >> i & 1) << (length - 1 - i);
    return (uint16_t)out;
}

static void assign_codes(gp_huffman_t *huffman, unsigned count, const unsigned *of_length, unsigned longest)
{
    unsigned next[LENGTH_LIMIT] = {0}, code = 0;
    for (unsigned length = 1; length <= longest; length++) {
        code = (code + (length > 1 ? of_length[length - 1] : 0)) << 1;
        next[length] = code;
    }
    for (unsigned i = 0; i < count; i++)
        if (huffman->lengths[i] > 0)
            huffman->codes[i] = reversed(next[huffman->lengths[i]]++, huffman->lengths[i]);
}

void gp_huffman_make(gp_huffman_t *huffman, const uint32_t *frequencies, unsigned count, unsigned longest)
{
    uint64_t keys[GP_HUFFMAN_SYMBOLS_MAX];
    uint32_t depths[GP_HUFFMAN_SYMBOLS_MAX] = {0};
    unsigned of_length[LENGTH_LIMIT] = {0}, used = collect(keys, frequencies, count);
    for (unsigned i = 0; i < used; i++)
        depths[i] = (uint32_t)(keys[i] >> 32);
    find_depths(depths, used);
    for (unsigned i = 0; i < used; i++)
        of_length[depths[i] < LENGTH_LIMIT ? depths[i] : LENGTH_LIMIT - 1]++;
    limit(of_length, longest);
    memset(huffman, 0, sizeof(*huffman));
    for (unsigned length = longest, i = 0; length > 0; length--)
        for (unsigned left = of_length[length]; left > 0; left--)
            huffman->lengths[(uint32_t)keys[i++]] = (uint8_t)length;
    assign_codes(huffman, count, of_length, longest);
}
