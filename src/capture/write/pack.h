// SPDX-License-Identifier: MIT
// Fixed-size records into columns (GP_CHUNK_PACKED in format.h says how): smaller by themselves, and far better to
// compress.
//
// Threads: any. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The most that gp_pack() writes.
size_t gp_pack_bound(size_t count, size_t record_bytes);

// Pack records.
//   records: uint8_t[count][record_bytes], on a 4-byte boundary; record_bytes is a multiple of 4.
//   out:     room for gp_pack_bound() bytes, on a 4-byte boundary.
// Returns how many bytes were written.
// Cost: 2 to 3 ns a word that changes.
size_t gp_pack(const void *records, uint32_t count, uint16_t record_bytes, uint8_t *out);
