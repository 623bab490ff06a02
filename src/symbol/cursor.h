// Reading little-endian values out of bytes that may be anything.
//
// Model: a cursor never goes past its end. What is not all there reads as 0, moves the cursor to
// the end and marks it bad; so a reader may check once, after a group of values.
//
// Threads: one at a time. Signals: safe.
#ifndef GP_SYMBOL_CURSOR_H
#define GP_SYMBOL_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct gp_bytes {
    const uint8_t *data;
    size_t len;
} gp_bytes_t;

typedef struct gp_cursor {
    const uint8_t *at, *end;
    bool bad;
} gp_cursor_t;

// A cursor over [offset, bytes.len); an offset outside makes a bad one.
static inline gp_cursor_t gp_cursor(gp_bytes_t bytes, uint64_t offset)
{
    static const uint8_t nothing[1];

    if (bytes.data == NULL || offset > bytes.len)
        return (gp_cursor_t){nothing, nothing, true};
    return (gp_cursor_t){bytes.data + offset, bytes.data + bytes.len, false};
}

static inline size_t gp_cursor_left(const gp_cursor_t *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static inline void gp_cursor_fail(gp_cursor_t *cursor)
{
    cursor->at = cursor->end;
    cursor->bad = true;
}

static inline void gp_cursor_skip(gp_cursor_t *cursor, uint64_t len)
{
    if (len > gp_cursor_left(cursor))
        gp_cursor_fail(cursor);
    else
        cursor->at += len;
}

// Read an unsigned value of 1 to 8 bytes.
static inline uint64_t gp_cursor_uint(gp_cursor_t *cursor, size_t len)
{
    uint64_t value = 0;

    if (len > gp_cursor_left(cursor)) {
        gp_cursor_fail(cursor);
        return 0;
    }
    memcpy(&value, cursor->at, len);
    cursor->at += len;
    return value;
}

static inline uint8_t gp_cursor_u8(gp_cursor_t *cursor)
{
    if (cursor->at == cursor->end) {
        cursor->bad = true;
        return 0;
    }
    return *cursor->at++;
}

static inline uint16_t gp_cursor_u16(gp_cursor_t *cursor)
{
    return (uint16_t)gp_cursor_uint(cursor, 2);
}

static inline uint32_t gp_cursor_u32(gp_cursor_t *cursor)
{
    return (uint32_t)gp_cursor_uint(cursor, 4);
}

// Bits beyond the 64th are dropped.
static inline uint64_t gp_cursor_uleb(gp_cursor_t *cursor)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    if (cursor->at < cursor->end && *cursor->at < 0x80)
        return *cursor->at++; // most of them
    do {
        byte = gp_cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static inline int64_t gp_cursor_sleb(gp_cursor_t *cursor)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = gp_cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40) != 0)
        value |= ~0ull << shift;
    return (int64_t)value;
}

// A text that ends with NUL before the cursor's end; NULL (and bad) when there is none.
static inline const char *gp_cursor_text(gp_cursor_t *cursor)
{
    const char *text = (const char *)cursor->at;
    const uint8_t *nul = cursor->at ? memchr(cursor->at, 0, gp_cursor_left(cursor)) : NULL;

    if (nul == NULL) {
        gp_cursor_fail(cursor);
        return NULL;
    }
    cursor->at = nul + 1;
    return text;
}

#endif
