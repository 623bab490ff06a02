// SPDX-License-Identifier: MIT
// The records of one chunk with a right checksum.
#pragma once

#include "capture/read/reader.h"

// Hand the records of a payload to the takers.
//   payload: on an 8-byte boundary, `len` bytes.
//   known:   set to whether the chunk's type is one this reader knows.
// Returns 0, -EBADMSG when the sizes do not add up (the records before were handled), or a handler's error.
int gp_reader_records(uint16_t type, const uint8_t *payload, size_t len, const gp_taker_t *takers, bool *known);

// The same for a packed payload (GP_CHUNK_PACKED).
int gp_reader_packed_records(uint16_t type, const uint8_t *payload, size_t len, const gp_taker_t *takers, bool *known);

// Whether there is any use in looking into a chunk of this type: whether it has a handler, or is not known.
bool gp_reader_is_wanted(uint16_t type, const gp_taker_t *takers);
