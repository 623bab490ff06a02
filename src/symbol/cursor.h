// Reading DWARF out of sections that may be anything: the unwinder's bounded reader, over bytes at
// an offset, and with what only files have: lengths of their own, texts.
//
// Threads: one at a time. Signals: safe.
#ifndef GP_SYMBOL_CURSOR_H
#define GP_SYMBOL_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "unwind/reader.h"

typedef struct gp_bytes {
    const uint8_t *data;
    size_t len;
} gp_bytes_t;

// A reader over [offset, bytes.len); an offset outside makes a bad one.
static inline gp_reader_t gp_cursor(gp_bytes_t bytes, uint64_t offset)
{
    static const uint8_t nothing[1];
    if (bytes.data == NULL || offset > bytes.len)
        return (gp_reader_t){nothing, nothing, true};
    return (gp_reader_t){bytes.data + offset, bytes.data + bytes.len, false};
}

static inline size_t gp_cursor_left(const gp_reader_t *cursor)
{
    return (size_t)(cursor->end - cursor->pos);
}

static inline void gp_cursor_fail(gp_reader_t *cursor)
{
    cursor->pos = cursor->end;
    cursor->bad = true;
}

static inline uint16_t gp_cursor_u16(gp_reader_t *cursor)
{
    return (uint16_t)gp_read_uint(cursor, 2);
}

static inline uint32_t gp_cursor_u32(gp_reader_t *cursor)
{
    return (uint32_t)gp_read_uint(cursor, 4);
}

// A text that ends with NUL before the cursor's end; NULL (and bad) when there is none.
static inline const char *gp_cursor_text(gp_reader_t *cursor)
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

#endif
