// SPDX-License-Identifier: MIT
// An answer of a store, as RowBinary, and lists that say both what is asked for and where it goes. Private to
// src/ship/ask/ask*.c.
//
// Model: columns that come back as they are stand in ship/rows/row.h, to be read by GP_ASK_FIELD, GP_ASK_VALUE and
// GP_ASK_LIST. Sums of a question are a list of their own, ASKED(C) with lines C(type, expression, where it goes):
// ASKED(GP_ASK_SELECT) is the text for gp_question_ask(), ASKED(GP_ASK_TAKE) reads a row. In both cases `reader` is the
// gp_ask_reader_t *. A single look at gp_ask_result() at the end of a row is enough.
#pragma once

#include <errno.h>

#include "base/cursor.h"
#include "base/memory.h"

typedef struct gp_ask_bytes { // zero-initialized = empty
    uint8_t *data;
    size_t len;
} gp_ask_bytes_t;

typedef struct gp_ask_text { // part of an answer, without a NUL
    const uint8_t *bytes;
    size_t len;
} gp_ask_text_t;

typedef struct gp_ask_reader {
    gp_cursor_t cursor;
    gp_arena_t *arena; // of texts that are kept; NULL = none are
    bool is_short;     // memory was
} gp_ask_reader_t;

static inline gp_ask_reader_t gp_ask_reader(const gp_ask_bytes_t *answer, gp_arena_t *arena)
{
    return (gp_ask_reader_t){.cursor = gp_cursor_over(answer->data, answer->data + answer->len), .arena = arena};
}

static inline bool gp_ask_more(const gp_ask_reader_t *reader)
{
    return gp_cursor_more(&reader->cursor);
}

static inline int gp_ask_result(const gp_ask_reader_t *reader)
{
    return reader->is_short ? -ENOMEM : reader->cursor.bad ? -EBADMSG : 0;
}

static inline gp_ask_text_t gp_ask_bytes(gp_ask_reader_t *reader, uint64_t len)
{
    static const uint8_t none[16];
    gp_ask_text_t text = {reader->cursor.pos, (size_t)len};
    gp_cursor_skip(&reader->cursor, len);
    return reader->cursor.bad ? (gp_ask_text_t){none, 0} : text;
}

static inline gp_ask_text_t gp_ask_text(gp_ask_reader_t *reader)
{
    return gp_ask_bytes(reader, gp_read_uleb(&reader->cursor));
}

// A copy with a NUL.
static inline const char *gp_ask_kept(gp_ask_reader_t *reader)
{
    gp_ask_text_t text = gp_ask_text(reader);
    const char *kept = gp_arena_text(reader->arena, (const char *)text.bytes, text.len);
    reader->is_short |= kept == NULL;
    return kept != NULL ? kept : "";
}

static inline double gp_ask_double(gp_ask_reader_t *reader)
{
    double value;
    uint64_t bits = gp_read_uint(&reader->cursor, sizeof(bits));
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// How many items an array has, each of a byte at least.
static inline size_t gp_ask_count(gp_ask_reader_t *reader)
{
    uint64_t count = gp_read_uleb(&reader->cursor);
    if (count > gp_cursor_left(&reader->cursor))
        gp_cursor_fail(&reader->cursor);
    return reader->cursor.bad ? 0 : (size_t)count;
}

static inline void *gp_ask_items(gp_ask_reader_t *reader, size_t bytes)
{
    void *items = gp_arena_alloc(reader->arena, bytes + 1);
    reader->is_short |= items == NULL;
    return items;
}

#define GP_ASK_READ_UInt64(to)  to = gp_read_uint(&reader->cursor, 8)
#define GP_ASK_READ_UInt32(to)  to = (uint32_t)gp_read_uint(&reader->cursor, 4)
#define GP_ASK_READ_UInt8(to)   to = (__typeof__(to))gp_read_u8(&reader->cursor)
#define GP_ASK_READ_Float64(to) to = gp_ask_double(reader)
#define GP_ASK_READ_String(to)  to = gp_ask_kept(reader)
#define GP_ASK_READ_Id128(to)   memcpy(to, gp_ask_bytes(reader, 16).bytes, 16)
#define GP_ASK_READ_Text(to)    to = gp_ask_text(reader) // in the answer, as the next two
#define GP_ASK_READ_Text8(to)   to = gp_ask_bytes(reader, 8)
#define GP_ASK_READ_Text16(to)  to = gp_ask_bytes(reader, 16)

#define GP_ASK_SELECT(type, text, to) ", " text
#define GP_ASK_TAKE(type, text, to)   GP_ASK_READ_##type(to);

#define GP_ASK_FIELD(since, type, column, to) GP_ASK_READ_##type(to);
#define GP_ASK_VALUE(since, type, column, value)
#define GP_ASK_LIST(since, type, column, items, count, to)                                                             \
    if ((items) == NULL) {                                                                                             \
        (count) = gp_ask_count(reader);                                                                                \
        (items) = gp_ask_items(reader, (count) * sizeof(*(items)));                                                    \
    } else if (gp_ask_count(reader) != (count)) {                                                                      \
        gp_cursor_fail(&reader->cursor);                                                                               \
    }                                                                                                                  \
    for (size_t n = 0; (items) != NULL && n < (count) && !reader->cursor.bad; n++) {                                   \
        __typeof__(&(items)[0]) item = &(items)[n];                                                                    \
        GP_ASK_READ_##type(to);                                                                                        \
    }
