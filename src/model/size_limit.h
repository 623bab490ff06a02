// SPDX-License-Identifier: MIT
// The size that a capture is to have at most, as users write it: a number, and K, M or G for the powers of 1024.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define GP_SIZE_LIMIT_WORDS "a size from 64K on, as 500M or 2G"

// The size of tables and buffers.
#define GP_MEMORY_LIMIT_WORDS "a size from 16M on, as 64M"
enum { GP_MEMORY_LIMIT_LEAST = 16 << 20 };

// Returns whether `text` is one; then bytes: at least 64 KiB.
static inline bool gp_size_limit_parse(const char *text, uint64_t *bytes)
{
    enum { LEAST = 64 << 10 };
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    uint64_t number = strtoull(text, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (end[shift != 0] != '\0' || number > UINT64_MAX >> shift >> 1)
        return false;
    *bytes = number << shift;
    return *bytes >= LEAST;
}
