// SPDX-License-Identifier: MIT
#include "export/write/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT_MAX = 10 }; // bytes
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LEN = 2 };

void gp_pb_varint(gp_text_t *message, uint64_t value)
{
    char *at = gp_text_extend(message, VARINT_MAX), *begin = at;
    if (at == NULL)
        return;
    for (; value >= 0x80; value >>= 7)
        *at++ = (char)(value | 0x80);
    *at++ = (char)value;
    *at = '\0';
    message->len -= VARINT_MAX - (size_t)(at - begin);
}

static void protobuf_put_tag(gp_text_t *message, unsigned field, enum wire_type type)
{
    gp_pb_varint(message, (uint64_t)field << 3 | type);
}

void gp_pb_uint(gp_text_t *message, unsigned field, uint64_t value)
{
    if (value == 0)
        return;
    protobuf_put_tag(message, field, WIRE_VARINT);
    gp_pb_varint(message, value);
}

void gp_pb_fixed64(gp_text_t *message, unsigned field, uint64_t value)
{
    char bytes[8];
    if (value == 0)
        return;
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(value >> (8 * i));
    protobuf_put_tag(message, field, WIRE_FIXED64);
    gp_text_add(message, bytes, sizeof(bytes));
}

void gp_pb_begin(gp_text_t *message, unsigned field, uint64_t len)
{
    protobuf_put_tag(message, field, WIRE_LEN);
    gp_pb_varint(message, len);
}

void gp_pb_bytes(gp_text_t *message, unsigned field, const void *bytes, size_t len)
{
    gp_pb_begin(message, field, len);
    if (len > 0)
        gp_text_add(message, bytes, len);
}

void gp_pb_text(gp_text_t *message, unsigned field, const char *text)
{
    char *repaired = malloc(GP_TEXT_GROWTH * strlen(text) + 1);
    if (repaired == NULL)
        message->failed = 1;
    else
        gp_pb_bytes(message, field, repaired, gp_text_repair(repaired, text));
    free(repaired);
}

void gp_pb_message(gp_text_t *message, unsigned field, const gp_text_t *inner)
{
    if (inner->failed)
        message->failed = 1;
    else
        gp_pb_bytes(message, field, inner->data, inner->len);
}
