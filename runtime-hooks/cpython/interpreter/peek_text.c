// SPDX-License-Identifier: MIT
#include "interpreter/peek_text.h"

#include <string.h>

enum { STATE_KIND = 7 << 2, STATE_COMPACT = 1 << 5, STATE_ASCII = 1 << 6, CHARACTERS_MAX = 1024 };

static size_t peek_text_put_utf8(char *to, uint32_t c)
{
    if (c >= 0xd800 && c < 0xe000) // half a surrogate pair: undecodable bytes of a file name
        c = 0xfffd;
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(leads[more] | c >> (6 * more));
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
    return more + 1;
}

static uint32_t peek_text_character(const unsigned char *data, unsigned kind, size_t at)
{
    uint32_t c = 0;
    memcpy(&c, data + at * kind, kind);
    return c;
}

int gp_cpython_peek_text(const gp_cpython_layout_t *layout, uintptr_t object, char *text, size_t size)
{
    unsigned char head[48], data[CHARACTERS_MAX * 4];
    uint32_t state;
    uint64_t length;
    if (!gp_peek(object, head, GP_CPYTHON_TEXT_STATE + sizeof(state)))
        return -1;
    memcpy(&length, head + GP_CPYTHON_OBJECT_SIZE, sizeof(length));
    memcpy(&state, head + GP_CPYTHON_TEXT_STATE, sizeof(state));
    unsigned kind = (state & STATE_KIND) >> 2;
    if (!(state & STATE_COMPACT) || (kind != 1 && kind != 2 && kind != 4))
        return -1;
    size_t characters = length < CHARACTERS_MAX ? (size_t)length : CHARACTERS_MAX, used = 0;
    uintptr_t start = object + (state & STATE_ASCII ? layout->text_ascii : layout->text_compact);
    if (characters > 0 && !gp_peek(start, data, characters * kind))
        return -1;
    for (size_t i = 0; i < characters && used + 5 <= size; i++)
        used += peek_text_put_utf8(text + used, peek_text_character(data, kind, i));
    text[used] = '\0';
    return (int)used;
}
