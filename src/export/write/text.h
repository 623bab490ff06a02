// SPDX-License-Identifier: MIT
// Text for outputs: UTF-8 repair, and numbers that do not depend on the host's locale.
//
// Names come from symbol tables, debug information and the host: they may hold any byte.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Length of the well-formed UTF-8 sequence at `text`, which ends with NUL; 0 when there is none
// (also at the NUL). Source: Unicode 15, table 3-7.
size_t gp_text_utf8_len(const char *text);

enum { GP_TEXT_GROWTH = 3 }; // a repaired text is at most this many times as long

// Copy `text`, every byte that is not part of well-formed UTF-8 replaced by U+FFFD.
//   out: room for GP_TEXT_GROWTH * strlen(text) + 1 bytes.
// Returns the length.
size_t gp_text_repair(char *out, const char *text);

// Write a text as a part of a line: repaired, control characters replaced by spaces.
void gp_text_put_line(FILE *out, const char *text);

enum { GP_TEXT_UINT_MAX = 20 };

// Write a number in decimal digits, without a NUL. Cost: ~5 ns; printf() takes 50.
//   out: room for GP_TEXT_UINT_MAX bytes.
// Returns the length.
size_t gp_text_uint(char *out, uint64_t value);

// Write nanoseconds as a decimal fraction of `unit_ns` (a power of ten) with `digits` decimals, rounded half up.
//   out: room for 32 bytes.
// Returns the length.
size_t gp_text_decimal(char *out, uint64_t ns, uint64_t unit_ns, unsigned digits);

// A text that grows. After a failed allocation `failed` is set and nothing more is added.
typedef struct gp_text { // zero-initialized = empty
    char *data;          // NUL-terminated once something was added
    size_t len, size;
    int failed;
} gp_text_t;

void gp_text_add(gp_text_t *text, const char *bytes, size_t len);

// Make the text longer by `len` bytes, which are the caller's to write. Returns where, or NULL.
char *gp_text_extend(gp_text_t *text, size_t len);
void gp_text_clear(gp_text_t *text);
void gp_text_free(gp_text_t *text);
