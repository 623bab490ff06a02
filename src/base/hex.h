// SPDX-License-Identifier: MIT
// Bytes as hex digits. Signals: safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The value of a digit of either case; -1: it is none.
static inline int gp_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

// Read `count` bytes. Returns what follows their digits, or NULL.
static inline const char *gp_hex_read(const char *text, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = gp_hex_digit(text[0]), low = high >= 0 ? gp_hex_digit(text[1]) : -1;
        if (low < 0)
            return NULL;
        bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return text;
}

// Decode %XX in a text of `len` bytes in place, and end it. Returns how many '%' stay as they are: without two digits
// behind, or for NUL.
static inline size_t gp_hex_decode_percent(char *text, size_t len)
{
    char *to = text;
    size_t bad = 0;
    for (size_t i = 0; i < len; i++) {
        uint8_t byte = 0;
        bool is_coded = text[i] == '%' && i + 2 < len && gp_hex_read(text + i + 1, &byte, 1) != NULL && byte != 0;
        bad += text[i] == '%' && !is_coded;
        *to++ = is_coded ? (char)byte : text[i];
        i += is_coded ? 2 : 0;
    }
    *to = '\0';
    return bad;
}

// Write `count` bytes as lower-case digits, and NUL. Returns where that is.
static inline char *gp_hex_write(char *text, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
    return text;
}

// A number as its bytes, the most significant first, as ids are written.
static inline void gp_hex_from_u64(uint64_t number, uint8_t bytes[8])
{
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> (56 - 8 * i));
}

static inline uint64_t gp_hex_to_u64(const uint8_t bytes[8])
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | bytes[i];
    return number;
}
