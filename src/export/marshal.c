// SPDX-License-Identifier: MIT
#include "export/marshal.h"

#include <endian.h>
#include <string.h>

enum { TEXT_MAX = 65536, DIGIT_BITS = 15 };

#define HIGH_BITS 0x8080808080808080u // a bit in each byte

// A type code and a little-endian value behind it.
static inline void marshal_put(gp_text_t *out, char type, uint64_t value, size_t bytes)
{
    char *at = gp_text_extend(out, 1 + bytes);
    uint64_t ordered = htole64(value);
    if (at == NULL)
        return;
    at[0] = type;
    memcpy(at + 1, &ordered, bytes);
}

void gp_marshal_dict_begin(gp_text_t *out)
{
    marshal_put(out, '{', 0, 0);
}

void gp_marshal_dict_end(gp_text_t *out)
{
    marshal_put(out, '0', 0, 0);
}

void gp_marshal_tuple(gp_text_t *out, uint8_t count)
{
    marshal_put(out, '(', count, 4);
}

// Above 31 bits an int is a count of base-2^15 digits, then the digits, lowest first.
static void marshal_put_long(gp_text_t *out, uint64_t value)
{
    uint64_t digits = 0;
    for (uint64_t rest = value; rest != 0; rest >>= DIGIT_BITS)
        digits++;
    marshal_put(out, 'l', digits, 4);
    for (; value != 0; value >>= DIGIT_BITS) {
        const char digit[2] = {(char)(value & 0xff), (char)(value >> 8 & ((1u << (DIGIT_BITS - 8)) - 1))};
        gp_text_add(out, digit, sizeof(digit));
    }
}

void gp_marshal_int(gp_text_t *out, uint64_t value)
{
    if (value > INT32_MAX) {
        marshal_put_long(out, value);
        return;
    }
    marshal_put(out, 'i', value, 4);
}

void gp_marshal_float(gp_text_t *out, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    marshal_put(out, 'g', bits, 8);
}

// A character of repaired text: where it is, how long, and how far to go on.
static size_t marshal_next_character(const char *text, const char **bytes, size_t *step)
{
    size_t len = gp_text_utf8_len(text);
    *bytes = len ? text : "\xef\xbf\xbd";
    *step = len ? len : 1;
    return len ? len : 3;
}

// Length of the text when it is plain ASCII, as nearly all are, and short enough; else SIZE_MAX.
static size_t marshal_plain_len(const char *text)
{
    size_t len = strlen(text), i = 0;
    uint64_t word, all = 0;
    for (; i + sizeof(word) <= len; i += sizeof(word)) {
        memcpy(&word, text + i, sizeof(word));
        all |= word;
    }
    for (; i < len; i++)
        all |= (unsigned char)text[i];
    return (all & HIGH_BITS) == 0 && len <= TEXT_MAX ? len : SIZE_MAX;
}

void gp_marshal_text(gp_text_t *out, const char *text)
{
    const char *bytes;
    size_t step, total = 0, used = 0, plain = marshal_plain_len(text);
    if (plain != SIZE_MAX) {
        marshal_put(out, 'u', plain, 4);
        gp_text_add(out, text, plain);
        return;
    }
    while (text[used] != '\0') { // the length comes first
        size_t len = marshal_next_character(text + used, &bytes, &step);
        if (total + len > TEXT_MAX)
            break;
        total += len;
        used += step;
    }
    marshal_put(out, 'u', total, 4);
    for (size_t at = 0; at < used; at += step) {
        size_t len = marshal_next_character(text + at, &bytes, &step);
        gp_text_add(out, bytes, len);
    }
}
