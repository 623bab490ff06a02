// SPDX-License-Identifier: MIT
// From the bytes of a chunk to its records: decompression, and packed columns back into records.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/format.h"

typedef struct gp_reader_payload { // zero-initialized = ready
    void *context;                 // zstd's
    uint8_t *bytes;                // decompressed last
    size_t room;
} gp_reader_payload_t;

// Decompress a chunk's bytes, if it is compressed.
//   data, len: in: as in the file; out: the payload, valid until the next call.
// Returns 0, -EBADMSG when it is no frame of at most GP_CHUNK_MAX bytes, -ENOMEM.
int gp_reader_decompress(gp_reader_payload_t *payload, uint16_t flags, const uint8_t **data, size_t *len);

// The same in parts, for several chunks at once: how long the content of compressed bytes is (SIZE_MAX: of no frame as
// above), room for all of them with 8 bytes each, and the content of one at a place there.
//   at: a multiple of 8.
size_t gp_reader_content_len(const uint8_t *data, size_t len);
int gp_reader_payload_room(gp_reader_payload_t *payload, size_t len);
int gp_reader_decompress_at(gp_reader_payload_t *payload, size_t at, const uint8_t **data, size_t *len);

void gp_reader_payload_free(gp_reader_payload_t *payload);

// Packed records.
typedef struct gp_unpacker {
    const uint8_t *columns; // gp_packed_column_t[words]
    const uint8_t *planes;
    uint32_t count, done;  // records
    size_t words;          // of a record in the file
    uint32_t previous[64]; // words of the record before, [words]
} gp_unpacker_t;

enum { GP_UNPACK_BLOCK = 256, GP_UNPACK_WORDS_MAX = 64 };
#define GP_UNPACK_ALL UINT64_MAX // words

// Check a packed payload as a whole. Returns 0 or -EBADMSG.
int gp_unpack_begin(gp_unpacker_t *unpacker, const uint8_t *data, size_t len);

// Unpack the next records, at most GP_UNPACK_BLOCK.
//   out:   uint32_t[GP_UNPACK_BLOCK][words], the same and unchanged until the end: words that all records share are put
//          there once.
//   words: of a record as the caller knows it: what the file has not is zero, what the file has beyond is left out.
//   wanted: bit n: word n is; others may be anything.
// Returns how many, 0 at the end.
size_t gp_unpack_next(gp_unpacker_t *unpacker, uint32_t *out, size_t words, uint64_t wanted);
