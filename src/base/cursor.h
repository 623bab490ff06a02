// SPDX-License-Identifier: MIT
// A bounded cursor over DWARF bytes, the unwinder's and the symbolizer's. Reading past the end
// yields 0 and sets `bad`, so a decoder may check once at its end instead of at every byte.
// Signals: safe. Source: DWARF 5 sections 7.6 and 7.8, LSB Core "Exception Frames" for the pointer encodings.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct gp_cursor {
    const uint8_t *pos, *end;
    bool bad;
} gp_cursor_t;

enum gp_encoding {
    GP_ENC_OMIT = 0xff,
    GP_ENC_ABSPTR = 0x00,
    GP_ENC_ULEB128 = 0x01,
    GP_ENC_UDATA2 = 0x02,
    GP_ENC_UDATA4 = 0x03,
    GP_ENC_UDATA8 = 0x04,
    GP_ENC_SLEB128 = 0x09,
    GP_ENC_SDATA2 = 0x0a,
    GP_ENC_SDATA4 = 0x0b,
    GP_ENC_SDATA8 = 0x0c,
    GP_ENC_PCREL = 0x10,
    GP_ENC_DATAREL = 0x30,
    GP_ENC_INDIRECT = 0x80,
};

static inline gp_cursor_t gp_cursor_over(const uint8_t *pos, const uint8_t *end)
{
    return (gp_cursor_t){.pos = pos, .end = end, .bad = pos > end};
}

static inline bool gp_cursor_more(const gp_cursor_t *r)
{
    return !r->bad && r->pos < r->end;
}

// Read an unsigned little-endian number of `len` (1 to 8) bytes at any alignment.
static inline uint64_t gp_read_uint(gp_cursor_t *r, size_t len)
{
    uint64_t value = 0;
    if (r->bad || (size_t)(r->end - r->pos) < len) {
        r->bad = true;
        return 0;
    }
    switch (len) { // a copy of a known size is an instruction, else a call
    case 1:
        value = *r->pos;
        break;
    case 2:
        __builtin_memcpy(&value, r->pos, 2);
        break;
    case 4:
        __builtin_memcpy(&value, r->pos, 4);
        break;
    case 8:
        __builtin_memcpy(&value, r->pos, 8);
        break;
    default:
        __builtin_memcpy(&value, r->pos, len);
    }
    r->pos += len;
    return value;
}

static inline uint8_t gp_read_u8(gp_cursor_t *r)
{
    if (r->bad || r->pos >= r->end) {
        r->bad = true;
        return 0;
    }
    return *r->pos++;
}

static inline uint64_t gp_read_uleb(gp_cursor_t *r)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    if (!r->bad && r->pos < r->end && *r->pos < 0x80)
        return *r->pos++; // most of them
    do {
        byte = gp_read_u8(r);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static inline int64_t gp_read_sleb(gp_cursor_t *r)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = gp_read_u8(r);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40))
        value |= ~(uint64_t)0 << shift;
    return (int64_t)value;
}

static inline void gp_cursor_skip(gp_cursor_t *r, uint64_t len)
{
    if (r->bad || (uint64_t)(r->end - r->pos) < len) {
        r->bad = true;
        return;
    }
    r->pos += len;
}

// Read a number in the format half of a pointer encoding, before any base is added.
static inline uint64_t gp_read_format(gp_cursor_t *r, uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case GP_ENC_ABSPTR:
    case GP_ENC_UDATA8:
    case GP_ENC_SDATA8:
        return gp_read_uint(r, 8);
    case GP_ENC_ULEB128:
        return gp_read_uleb(r);
    case GP_ENC_UDATA2:
        return gp_read_uint(r, 2);
    case GP_ENC_UDATA4:
        return gp_read_uint(r, 4);
    case GP_ENC_SLEB128:
        return (uint64_t)gp_read_sleb(r);
    case GP_ENC_SDATA2:
        return (uint64_t)(int16_t)gp_read_uint(r, 2);
    case GP_ENC_SDATA4:
        return (uint64_t)(int32_t)gp_read_uint(r, 4);
    default:
        r->bad = true;
        return 0;
    }
}

// Read an encoded pointer. `data_base` is the address of .eh_frame_hdr, `bias` is added to absolute pointers (a
// .debug_frame read from a file). Indirect pointers are refused: nothing here needs one.
static inline uint64_t gp_read_encoded(gp_cursor_t *r, uint8_t encoding, uintptr_t data_base, uintptr_t bias)
{
    uintptr_t at = (uintptr_t)r->pos;
    uint64_t value = gp_read_format(r, encoding);
    if (encoding & GP_ENC_INDIRECT)
        r->bad = true;
    switch (encoding & 0x70) {
    case GP_ENC_PCREL:
        return value + at;
    case GP_ENC_DATAREL:
        return value + data_base;
    case 0:
        return value + bias;
    default:
        r->bad = true;
        return 0;
    }
}

typedef struct gp_bytes {
    const uint8_t *data;
    size_t len;
} gp_bytes_t;

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
    return (size_t)(cursor->end - cursor->pos);
}

static inline void gp_cursor_fail(gp_cursor_t *cursor)
{
    cursor->pos = cursor->end;
    cursor->bad = true;
}

static inline uint16_t gp_cursor_u16(gp_cursor_t *cursor)
{
    return (uint16_t)gp_read_uint(cursor, 2);
}

static inline uint32_t gp_cursor_u32(gp_cursor_t *cursor)
{
    return (uint32_t)gp_read_uint(cursor, 4);
}

// A text that ends with NUL before the cursor's end; NULL (and bad) when there is none.
static inline const char *gp_cursor_text(gp_cursor_t *cursor)
{
    const char *text = (const char *)cursor->pos;
    const uint8_t *nul = cursor->bad ? NULL : memchr(cursor->pos, 0, gp_cursor_left(cursor));
    if (nul == NULL) {
        gp_cursor_fail(cursor);
        return NULL;
    }
    cursor->pos = nul + 1;
    return text;
}
