// SPDX-License-Identifier: MIT
// Huffman codes as deflate has them: canonical, of a bounded length, written from the lowest bit.
// Threads: any. Signals: not safe.
#pragma once

#include <stdint.h>

enum { GP_HUFFMAN_SYMBOLS_MAX = 288 };

typedef struct gp_huffman {
    uint16_t codes[GP_HUFFMAN_SYMBOLS_MAX];  // as they are written, lowest bit first
    uint8_t lengths[GP_HUFFMAN_SYMBOLS_MAX]; // in bits; 0 = the symbol has no code
} gp_huffman_t;

// Make codes for symbols that occur `frequencies[i]` times each. There are always two codes at least, as some readers
// refuse fewer.
//   count:  of symbols, up to GP_HUFFMAN_SYMBOLS_MAX.
//   longest: length that no code exceeds; 1 << longest >= count.
// Source: RFC 1951, 3.2.2; A. Moffat, J. Katajainen: In-place calculation of minimum-redundancy codes (1995).
void gp_huffman_make(gp_huffman_t *huffman, const uint32_t *frequencies, unsigned count, unsigned longest);
