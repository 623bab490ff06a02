// SPDX-License-Identifier: MIT
#include "ship/send/clickhouse/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const void *block_rows_of(enum gp_schema_table table, const gp_batch_t *batch)
{
    switch (table) {
#define ROWS(NAME, lower, type, rows, ...)                                                                             \
    case GP_TABLE_##NAME:                                                                                              \
        return rows;
        GP_ROW_TABLES(ROWS)
    default:
        return NULL;
    }
}

size_t gp_rows_count(enum gp_schema_table table, const gp_batch_t *batch)
{
    switch (table) {
#define COUNT(NAME, lower, type, rows, count, ...)                                                                     \
    case GP_TABLE_##NAME:                                                                                              \
        return count;
        GP_ROW_TABLES(COUNT)
    default:
        return 0;
    }
}

uint32_t gp_rows_day(enum gp_schema_table table, const gp_batch_t *batch, size_t number)
{
    switch (table) {
#define DAY(NAME, lower, type, rows, count, day, ...)                                                                  \
    case GP_TABLE_##NAME: {                                                                                            \
        const type *row = (const type *)block_rows_of(table, batch) + number;                                          \
        (void)row;                                                                                                     \
        return (uint32_t)(day);                                                                                        \
    }
        GP_ROW_TABLES(DAY)
    default:
        return 0;
    }
}

static void block_grow(gp_block_t *block, size_t len)
{
    size_t room = 2 * (block->len + len) + 4096;
    uint8_t *grown = realloc(block->bytes, room);
    if (grown == NULL) {
        block->error = -ENOMEM;
        return;
    }
    block->bytes = grown;
    block->room = room;
}

static void block_put(gp_block_t *block, const void *bytes, size_t len)
{
    if (block->error == 0 && block->room - block->len < len)
        block_grow(block, len);
    if (block->error != 0)
        return;
    memcpy(block->bytes + block->len, bytes, len);
    block->len += len;
}

static void block_put_varuint(gp_block_t *block, uint64_t value)
{
    uint8_t bytes[10];
    size_t len = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[len++] = (uint8_t)(value | 0x80);
    bytes[len++] = (uint8_t)value;
    block_put(block, bytes, len);
}

static void block_put_text(gp_block_t *block, const char *text)
{
    size_t len = strlen(text);
    block_put_varuint(block, len);
    block_put(block, text, len);
}

static void block_put_head(gp_block_t *block, const char *name, const char *type)
{
    block_put_text(block, name);
    block_put_text(block, type);
}

// The first bytes of a number: little-endian, as the store is.
static void block_put_number(gp_block_t *block, uint64_t value, size_t len)
{
    block_put(block, &value, len);
}

static void block_put_float(gp_block_t *block, float value)
{
    block_put(block, &value, sizeof(value));
}

#define PUT_String(value)   block_put_text(block, value)
#define PUT_UInt64(value)   block_put_number(block, value, 8)
#define PUT_UInt32(value)   block_put_number(block, value, 4)
#define PUT_UInt8(value)    block_put_number(block, value, 1)
#define PUT_Float32(value)  block_put_float(block, (float)(value))
#define PUT_Date(value)     block_put_number(block, value, 2)
#define PUT_DateTime(value) block_put_number(block, value, 4)
#define PUT_Id128(value)    block_put(block, value, 16)

#define EACH_ROW(write)                                                                                                \
    for (size_t b = 0; b < rows->count; b++) {                                                                         \
        const gp_batch_t *batch = &rows->batches[b];                                                                   \
        const gp_row_process_t *process = batch->process;                                                              \
        (void)process;                                                                                                 \
        for (size_t i = 0; i < rows->rows[b]; i++) {                                                                   \
            const row_t *row = (const row_t *)block_rows_of(table, batch) + rows->first[b] + i;                        \
            (void)row;                                                                                                 \
            write;                                                                                                     \
        }                                                                                                              \
    }

#define PUT_VALUE(since, type, column, value)                                                                          \
    block_put_head(block, column, GP_TYPE_##type);                                                                     \
    EACH_ROW(PUT_##type(value))

// Where each row's part ends, then all of it.
#define PUT_LIST(since, type, column, items, count, value)                                                             \
    block_put_head(block, column, "Array(" GP_TYPE_##type ")");                                                        \
    for (uint64_t last = 0, once = 1; once > 0; once--)                                                                \
        EACH_ROW(PUT_UInt64(last += (count)));                                                                         \
    EACH_ROW(for (size_t n = 0; n < (count); n++) {                                                                    \
        __typeof__(&(items)[0]) item = &(items)[n];                                                                    \
        PUT_##type(value);                                                                                             \
    })

#define WRITER(NAME, lower, type, ...)                                                                                 \
    static void block_write_##lower(gp_block_t *block, const gp_rows_t *rows)                                          \
    {                                                                                                                  \
        typedef type row_t;                                                                                            \
        const enum gp_schema_table table = GP_TABLE_##NAME;                                                            \
        const uint64_t now_s = rows->now_s;                                                                            \
        (void)now_s;                                                                                                   \
        GP_##NAME##_COLUMNS(PUT_VALUE, PUT_VALUE, PUT_LIST)                                                            \
    }
GP_ROW_TABLES(WRITER)

void gp_block_write(gp_block_t *block, enum gp_schema_table table, const gp_rows_t *rows)
{
    static void (*const writers[GP_TABLES])(gp_block_t *, const gp_rows_t *) = {
#define WRITERS(NAME, lower, ...) [GP_TABLE_##NAME] = block_write_##lower,
        GP_ROW_TABLES(WRITERS)};
    size_t columns = 0, count = 0;
    while (gp_schema_tables[table].columns[columns].name != NULL)
        columns++;
    for (size_t b = 0; b < rows->count; b++)
        count += rows->rows[b];
    block->len = 0;
    block->error = 0;
    block_put_varuint(block, columns);
    block_put_varuint(block, count);
    writers[table](block, rows);
}

void gp_block_free(gp_block_t *block)
{
    free(block->bytes);
    *block = (gp_block_t){0};
}
