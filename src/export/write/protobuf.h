// SPDX-License-Identifier: MIT
// Writing protobuf messages: a message is put together in a gp_text_t, then added to the one around it, or written.
// Fields with the value 0 are left out, as proto3 does. Source: the protobuf encoding guide.
//
// After a failed allocation the text's `failed` is set; check it once a message is complete.
// Threads: a text belongs to one thread at a time. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "export/write/text.h"

// A number without a field: an element of a packed array.
void gp_pb_varint(gp_text_t *message, uint64_t value);

// uint32, uint64, bool, enum, and int32 and int64 that are not negative.
void gp_pb_uint(gp_text_t *message, unsigned field, uint64_t value);

void gp_pb_fixed64(gp_text_t *message, unsigned field, uint64_t value);

// Bytes, also where there are none: an element of a repeated field may be empty.
void gp_pb_bytes(gp_text_t *message, unsigned field, const void *bytes, size_t len);

// A string; bytes that are not UTF-8 are replaced.
void gp_pb_text(gp_text_t *message, unsigned field, const char *text);

// The beginning of a field; its `len` bytes are written behind it by other means.
void gp_pb_begin(gp_text_t *message, unsigned field, uint64_t len);

// A message or a packed array that was put together in `inner`.
void gp_pb_message(gp_text_t *message, unsigned field, const gp_text_t *inner);
