// SPDX-License-Identifier: MIT
// ClickHouse's format Native: one block of rows, column by column.
//
// Model: begin, then for each column its head and its values, one a row. A block is taken by the store as a whole.
// Source: dbms/src/DataStreams/NativeBlockOutputStream.cpp of ClickHouse 18.16.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct gp_native { // zero-initialized = empty
    uint8_t *bytes;
    size_t len, room;
    int error; // -ENOMEM, sticky
} gp_native_t;

void gp_native_begin(gp_native_t *block, size_t columns, size_t rows);
void gp_native_column(gp_native_t *block, const char *name, const char *type);

// Make room for `len` more bytes. Returns where they go, or NULL.
uint8_t *gp_native_room(gp_native_t *block, size_t len);

void gp_native_text(gp_native_t *block, const char *text, size_t len);

static inline void gp_native_u64(gp_native_t *block, uint64_t value)
{
    uint8_t *at = gp_native_room(block, sizeof(value));
    if (at != NULL)
        memcpy(at, &value, sizeof(value));
}

static inline void gp_native_u32(gp_native_t *block, uint32_t value)
{
    uint8_t *at = gp_native_room(block, sizeof(value));
    if (at != NULL)
        memcpy(at, &value, sizeof(value));
}

static inline void gp_native_f32(gp_native_t *block, float value)
{
    uint8_t *at = gp_native_room(block, sizeof(value));
    if (at != NULL)
        memcpy(at, &value, sizeof(value));
}

static inline void gp_native_u16(gp_native_t *block, uint16_t value)
{
    uint8_t *at = gp_native_room(block, sizeof(value));
    if (at != NULL)
        memcpy(at, &value, sizeof(value));
}

static inline void gp_native_u8(gp_native_t *block, uint8_t value)
{
    uint8_t *at = gp_native_room(block, 1);
    if (at != NULL)
        *at = value;
}

void gp_native_free(gp_native_t *block);
