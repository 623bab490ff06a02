// SPDX-License-Identifier: MIT
// An answer of a store, as RowBinary. Private to src/ship/ask/ask*.c.
#pragma once

#include "base/cursor.h"
#include "base/memory.h"

typedef struct gp_ask_bytes { // zero-initialized = empty
    uint8_t *data;
    size_t len, room;
} gp_ask_bytes_t;

typedef struct gp_ask_text { // part of an answer, without a NUL
    const uint8_t *bytes;
    size_t len;
} gp_ask_text_t;

static inline gp_ask_text_t gp_ask_read_bytes(gp_cursor_t *cursor, uint64_t len)
{
    static const uint8_t none[16];
    if (cursor->bad || len > (uint64_t)(cursor->end - cursor->pos)) {
        cursor->bad = true;
        return (gp_ask_text_t){none, 0};
    }
    gp_ask_text_t text = {cursor->pos, (size_t)len};
    cursor->pos += len;
    return text;
}

static inline gp_ask_text_t gp_ask_read_text(gp_cursor_t *cursor)
{
    return gp_ask_read_bytes(cursor, gp_read_uleb(cursor));
}

// A copy with a NUL; NULL when memory is short.
static inline const char *gp_ask_keep(gp_arena_t *arena, gp_ask_text_t text)
{
    return gp_arena_text(arena, (const char *)text.bytes, text.len);
}
