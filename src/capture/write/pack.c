// SPDX-License-Identifier: MIT
#include "capture/write/pack.h"

#include <string.h>

#include "capture/format.h"

enum { BLOCK = 256 };

size_t gp_pack_bound(size_t count, size_t record_bytes)
{
    return sizeof(gp_packed_header_t) + record_bytes / 4 * sizeof(gp_packed_column_t) + count * record_bytes;
}

static unsigned pack_bits(uint32_t value)
{
    return value == 0 ? 0 : 32u - (unsigned)__builtin_clz(value);
}

// Choose how a column is kept: distances from the smallest word, or differences from record to record, whichever are
// smaller numbers on the whole.
static gp_packed_column_t pack_choose(const uint32_t *words, uint32_t count, size_t stride)
{
    uint32_t lowest = words[0], highest = words[0], previous = words[0], largest_delta = 0;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t word = words[i * stride];
        lowest = word < lowest ? word : lowest;
        highest = word > highest ? word : highest;
    }
    if (lowest == highest)
        return (gp_packed_column_t){.base = lowest};
    uint64_t distance_bits = 0, delta_bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = words[i * stride], delta = GP_ZIGZAG(word - previous);
        largest_delta = delta > largest_delta ? delta : largest_delta;
        distance_bits += pack_bits(word - lowest);
        delta_bits += pack_bits(delta);
        previous = word;
    }
    if (delta_bits < distance_bits)
        return (gp_packed_column_t){
            .base = words[0], .width = (uint8_t)((pack_bits(largest_delta) + 7) / 8), .is_delta = 1};
    return (gp_packed_column_t){.base = lowest, .width = (uint8_t)((pack_bits(highest - lowest) + 7) / 8)};
}

// In blocks, so that each loop can be vectorized.
static uint8_t *pack_put(const gp_packed_column_t *column, const uint32_t *words, uint32_t count, size_t stride,
                         uint8_t *out)
{
    uint32_t previous = column->base, kept[BLOCK];
    for (uint32_t first = 0; first < count; first += BLOCK) {
        uint32_t block = count - first < BLOCK ? count - first : BLOCK;
        for (uint32_t i = 0; i < block; i++) {
            uint32_t word = words[(first + i) * stride];
            kept[i] = column->is_delta ? GP_ZIGZAG(word - previous) : word - column->base;
            previous = word;
        }
        for (unsigned plane = 0; plane < column->width; plane++) {
            uint8_t *restrict to = out + (size_t)plane * count + first;
            for (uint32_t i = 0; i < block; i++)
                to[i] = (uint8_t)(kept[i] >> 8 * plane);
        }
    }
    return out + (size_t)column->width * count;
}

size_t gp_pack(const void *records, uint32_t count, uint16_t record_bytes, uint8_t *out)
{
    size_t words = record_bytes / 4u;
    gp_packed_header_t header = {.count = count, .record_bytes = record_bytes};
    uint8_t *columns = out + sizeof(header), *at = columns + words * sizeof(gp_packed_column_t);
    memcpy(out, &header, sizeof(header));
    for (size_t word = 0; word < words; word++) {
        const uint32_t *first = (const uint32_t *)records + word;
        gp_packed_column_t column = count > 0 ? pack_choose(first, count, words) : (gp_packed_column_t){0};
        memcpy(columns + word * sizeof(column), &column, sizeof(column));
        if (column.width > 0)
            at = pack_put(&column, first, count, words, at);
    }
    return (size_t)(at - out);
}
