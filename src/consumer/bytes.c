// SPDX-License-Identifier: MIT
#include "consumer/bytes.h"

#include <stdlib.h>
#include <string.h>

static bool bytes_make_room(gp_reply_bytes_t *bytes, size_t more)
{
    if (bytes->room - bytes->len >= more)
        return true;
    size_t room = bytes->room + bytes->room / 2 + more + 256;
    char *data = realloc(bytes->data, room);
    if (data == NULL) {
        bytes->is_short = true;
        return false;
    }
    bytes->data = data;
    bytes->room = room;
    return true;
}

void gp_bytes_put(gp_reply_bytes_t *bytes, const char *data, size_t len)
{
    if (len == 0 || !bytes_make_room(bytes, len))
        return;
    memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

void gp_bytes_text(gp_reply_bytes_t *bytes, const char *text)
{
    gp_bytes_put(bytes, text, strlen(text));
}

void gp_bytes_number(gp_reply_bytes_t *bytes, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    gp_bytes_put(bytes, digits + at, sizeof(digits) - at);
}

// Bytes of the character at `text`, 0 where there is none. Source: RFC 3629, section 4.
static size_t bytes_character_len(const unsigned char *text, size_t len)
{
    unsigned lead = text[0], lowest = 0x80, highest = 0xbf;
    size_t more = lead < 0x80                    ? 0
                  : lead >= 0xc2 && lead <= 0xdf ? 1
                  : (lead & 0xf0) == 0xe0        ? 2
                  : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                 : 4;
    if (more == 4 || more >= len)
        return 0;
    if (lead == 0xe0)
        lowest = 0xa0;
    else if (lead == 0xed)
        highest = 0x9f;
    else if (lead == 0xf0)
        lowest = 0x90;
    else if (lead == 0xf4)
        highest = 0x8f;
    for (size_t i = 1; i <= more; i++, lowest = 0x80, highest = 0xbf)
        if (text[i] < lowest || text[i] > highest)
            return 0;
    return more + 1;
}

static void bytes_put_escaped(gp_reply_bytes_t *bytes, unsigned char c)
{
    char text[7] = {'\\', 'u', '0', '0', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
    if (c == '"' || c == '\\')
        gp_bytes_put(bytes, (char[]){'\\', (char)c}, 2);
    else
        gp_bytes_put(bytes, text, 6);
}

void gp_bytes_json(gp_reply_bytes_t *bytes, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + len, *plain = at;
    gp_bytes_put(bytes, "\"", 1);
    while (at < end) {
        size_t step = bytes_character_len(at, (size_t)(end - at));
        if (step != 0 && *at >= 0x20 && *at != '"' && *at != '\\' && *at != 0x7f) {
            at += step;
            continue;
        }
        gp_bytes_put(bytes, (const char *)plain, (size_t)(at - plain));
        if (step == 0)
            gp_bytes_text(bytes, "\\ufffd");
        else
            bytes_put_escaped(bytes, *at);
        plain = ++at;
    }
    gp_bytes_put(bytes, (const char *)plain, (size_t)(at - plain));
    gp_bytes_put(bytes, "\"", 1);
}

void gp_bytes_clear(gp_reply_bytes_t *bytes)
{
    bytes->len = 0;
    bytes->is_short = false;
}

void gp_bytes_free(gp_reply_bytes_t *bytes)
{
    free(bytes->data);
    *bytes = (gp_reply_bytes_t){0};
}
