#include "export/marshal.h"

#include <string.h>

#include "export/text.h"

enum { TEXT_MAX = 65536, DIGIT_BITS = 15 };

static void put_le(FILE *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        putc((int)(value >> (8 * i) & 0xff), out);
}

void gp_marshal_dict_begin(FILE *out)
{
    putc('{', out);
}

void gp_marshal_dict_end(FILE *out)
{
    putc('0', out);
}

void gp_marshal_tuple(FILE *out, uint8_t count)
{
    putc('(', out);
    put_le(out, count, 4);
}

// Above 31 bits an int is a count of base-2^15 digits, then the digits, lowest first.
static void put_long(FILE *out, uint64_t value)
{
    uint64_t digits = 0;

    for (uint64_t rest = value; rest != 0; rest >>= DIGIT_BITS)
        digits++;
    putc('l', out);
    put_le(out, digits, 4);
    for (; value != 0; value >>= DIGIT_BITS)
        put_le(out, value & ((1u << DIGIT_BITS) - 1), 2);
}

void gp_marshal_int(FILE *out, uint64_t value)
{
    if (value > INT32_MAX) {
        put_long(out, value);
        return;
    }
    putc('i', out);
    put_le(out, value, 4);
}

void gp_marshal_float(FILE *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    putc('g', out);
    put_le(out, bits, 8);
}

// One character of repaired text: where it is, how long, and how far to go on.
static size_t next_character(const char *text, const char **bytes, size_t *step)
{
    size_t len = gp_text_utf8_len(text);

    *bytes = len ? text : "\xef\xbf\xbd";
    *step = len ? len : 1;
    return len ? len : 3;
}

void gp_marshal_text(FILE *out, const char *text)
{
    const char *bytes;
    size_t step, total = 0, used = 0;

    while (text[used] != '\0') { // the length comes first
        size_t len = next_character(text + used, &bytes, &step);
        if (total + len > TEXT_MAX)
            break;
        total += len;
        used += step;
    }
    putc('u', out);
    put_le(out, total, 4);
    for (size_t at = 0; at < used; at += step) {
        size_t len = next_character(text + at, &bytes, &step);
        fwrite(bytes, 1, len, out);
    }
}
