// SPDX-License-Identifier: MIT
#include "capture/read/reader_kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "capture/read/reader_records.h"

// Payloads one after the other, each with its length before it.
struct gp_kept_block {
    gp_kept_block_t *next;
    size_t length, room;
    uint8_t bytes[];
};

enum { BLOCK_BYTES = 1 << 20 };

void gp_reader_kept_begin(gp_reader_kept_t *kept, uint64_t words, size_t room)
{
    gp_reader_kept_free(kept);
    kept->words = words;
    kept->room = room;
    kept->to = UINT64_MAX;
}

static gp_packed_column_t reader_kept_column_at(const uint8_t *payload, size_t word)
{
    gp_packed_column_t column;
    memcpy(&column, payload + sizeof(gp_packed_header_t) + word * sizeof(column), sizeof(column));
    return column;
}

static bool reader_kept_is_kept(const gp_reader_kept_t *kept, size_t word)
{
    return kept->words >> word & 1;
}

static size_t reader_kept_len(const gp_reader_kept_t *kept, const uint8_t *payload, const gp_packed_header_t *header)
{
    size_t words = header->record_bytes / 4u, len = sizeof(*header) + words * sizeof(gp_packed_column_t);
    for (size_t word = 0; word < words; word++)
        len += reader_kept_is_kept(kept, word) ? (size_t)reader_kept_column_at(payload, word).width * header->count : 0;
    return len;
}

// Write the payload again without the columns that are not kept: those are empty.
static void reader_kept_copy(const gp_reader_kept_t *kept, const uint8_t *payload, const gp_packed_header_t *header,
                             uint8_t *out)
{
    size_t words = header->record_bytes / 4u;
    const uint8_t *from = payload + sizeof(*header) + words * sizeof(gp_packed_column_t);
    uint8_t *columns = out + sizeof(*header), *to = columns + words * sizeof(gp_packed_column_t);
    memcpy(out, header, sizeof(*header));
    for (size_t word = 0; word < words; word++) {
        size_t at = word * sizeof(gp_packed_column_t),
               len = (size_t)reader_kept_column_at(payload, word).width * header->count;
        memset(columns + at, 0, sizeof(gp_packed_column_t));
        if (reader_kept_is_kept(kept, word)) {
            memcpy(columns + at, payload + sizeof(*header) + at, sizeof(gp_packed_column_t));
            memcpy(to, from, len);
            to += len;
        }
        from += len;
    }
}

// Room for a payload behind the last one. Returns NULL when there is none.
static uint8_t *reader_kept_add(gp_reader_kept_t *kept, size_t len)
{
    size_t whole = sizeof(len) + len;
    gp_kept_block_t *last = kept->last;
    if (last == NULL || last->room - last->length < whole) {
        size_t room = whole > BLOCK_BYTES ? whole : BLOCK_BYTES;
        gp_kept_block_t *block = room <= kept->room ? gp_memory_spare(sizeof(*block) + room) : NULL;
        if (block == NULL)
            return NULL;
        *block = (gp_kept_block_t){.room = room};
        *(last != NULL ? &last->next : &kept->first) = block;
        kept->last = last = block;
        kept->room -= room;
    }
    uint8_t *at = last->bytes + last->length;
    memcpy(at, &len, sizeof(len));
    last->length += whole;
    return at + sizeof(len);
}

void gp_reader_keep(gp_reader_kept_t *kept, const uint8_t *payload, uint64_t at)
{
    gp_packed_header_t header;
    uint8_t *out = NULL;
    if (kept->to != UINT64_MAX)
        return;
    if (payload != NULL) {
        memcpy(&header, payload, sizeof(header));
        out = reader_kept_add(kept, reader_kept_len(kept, payload, &header));
    }
    if (out != NULL)
        reader_kept_copy(kept, payload, &header, out);
    else
        kept->to = at;
}

static int reader_kept_take_block(const gp_kept_block_t *block, const gp_taker_t *takers)
{
    int result = 0;
    size_t len;
    bool known;
    for (size_t at = 0; at < block->length && result == 0; at += sizeof(len) + len) {
        memcpy(&len, block->bytes + at, sizeof(len));
        result = gp_reader_packed_records(GP_CHUNK_SAMPLES, block->bytes + at + sizeof(len), len, takers, &known);
    }
    return result;
}

int gp_reader_kept_take(gp_reader_kept_t *kept, const gp_taker_t *takers)
{
    int result = 0;
    while (kept->first != NULL && result == 0) {
        gp_kept_block_t *block = kept->first;
        result = reader_kept_take_block(block, takers);
        kept->first = block->next;
        free(block);
    }
    return result;
}

void gp_reader_kept_free(gp_reader_kept_t *kept)
{
    for (gp_kept_block_t *block = kept->first, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    *kept = (gp_reader_kept_t){0};
}
