// SPDX-License-Identifier: MIT
// Writing Python's marshal format: the subset that every Python 3 reads (no references, no short
// strings). Source: CPython, Python/marshal.c; facts checked with CPython 3.6-3.13 and PyPy.
#pragma once

#include <stdint.h>

#include "export/write/text.h"

// A dict is gp_marshal_dict_begin(), key, value, key, value, ..., gp_marshal_dict_end(). Where memory is short,
// out->failed is set.
void gp_marshal_dict_begin(gp_text_t *out);
void gp_marshal_dict_end(gp_text_t *out);

// A tuple of `count` items, which follow.
void gp_marshal_tuple(gp_text_t *out, uint8_t count);

void gp_marshal_int(gp_text_t *out, uint64_t value);
void gp_marshal_float(gp_text_t *out, double value);

// A str; bytes that are not UTF-8 are replaced, a text beyond 64 KiB is cut.
void gp_marshal_text(gp_text_t *out, const char *text);
