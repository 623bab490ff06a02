// SPDX-License-Identifier: MIT
// Messages of protobuf, written one within the other. Source: the encoding of protobuf: a field is number << 3 | 2, its
// length as a varint, its bytes.
//
// The caller has the room. The length of a message is known when it is closed: each length takes two bytes, which holds
// for up to 16,383, and which readers accept for less.
#pragma once

#include <stddef.h>
#include <string.h>

typedef struct gp_proto {
    unsigned char *room;
    size_t len;
} gp_proto_t;

enum { GP_PROTO_HEAD = 3 }; // bytes before a message: its field, and two of length

static inline void gp_proto_set_len(unsigned char *head, size_t len)
{
    head[1] = (unsigned char)(len | 0x80);
    head[2] = (unsigned char)(len >> 7);
}

// Begin a message. Returns where, for gp_proto_close().
static inline size_t gp_proto_open(gp_proto_t *proto, unsigned field)
{
    size_t at = proto->len;
    proto->room[at] = (unsigned char)(field << 3 | 2);
    proto->len += GP_PROTO_HEAD;
    return at;
}

static inline void gp_proto_close(gp_proto_t *proto, size_t at)
{
    gp_proto_set_len(proto->room + at, proto->len - at - GP_PROTO_HEAD);
}

static inline void gp_proto_text(gp_proto_t *proto, unsigned field, const char *text)
{
    size_t len = strlen(text), at = gp_proto_open(proto, field);
    memcpy(proto->room + proto->len, text, len);
    proto->len += len;
    gp_proto_close(proto, at);
}
