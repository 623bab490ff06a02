// SPDX-License-Identifier: MIT
#include "ship/send/native.h"

#include <errno.h>
#include <stdlib.h>

uint8_t *gp_native_room(gp_native_t *block, size_t len)
{
    if (block->error != 0)
        return NULL;
    if (block->room - block->len < len) {
        size_t room = 2 * (block->len + len) + 4096;
        uint8_t *bytes = realloc(block->bytes, room);
        if (bytes == NULL) {
            block->error = -ENOMEM;
            return NULL;
        }
        block->bytes = bytes;
        block->room = room;
    }
    block->len += len;
    return block->bytes + block->len - len;
}

static void put_varuint(gp_native_t *block, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        gp_native_u8(block, (uint8_t)(value | 0x80));
    gp_native_u8(block, (uint8_t)value);
}

void gp_native_text(gp_native_t *block, const char *text, size_t len)
{
    put_varuint(block, len);
    uint8_t *at = gp_native_room(block, len);
    if (at != NULL)
        memcpy(at, text, len);
}

void gp_native_begin(gp_native_t *block, size_t columns, size_t rows)
{
    block->len = 0;
    block->error = 0;
    put_varuint(block, columns);
    put_varuint(block, rows);
}

void gp_native_column(gp_native_t *block, const char *name, const char *type)
{
    gp_native_text(block, name, strlen(name));
    gp_native_text(block, type, strlen(type));
}

void gp_native_free(gp_native_t *block)
{
    free(block->bytes);
    *block = (gp_native_t){0};
}
