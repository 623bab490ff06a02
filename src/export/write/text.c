// SPDX-License-Identifier: MIT
#include "export/write/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

size_t gp_text_utf8_len(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned char lo = 0x80, hi = 0xbf;
    size_t len;
    if (s[0] == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        len = 2;
    else if (s[0] >= 0xe0 && s[0] <= 0xef)
        len = 3;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        len = 4;
    else
        return 0;
    // No overlong forms, no surrogates, nothing above U+10FFFF: the second byte decides.
    if (s[0] == 0xe0)
        lo = 0xa0;
    else if (s[0] == 0xed)
        hi = 0x9f;
    else if (s[0] == 0xf0)
        lo = 0x90;
    else if (s[0] == 0xf4)
        hi = 0x8f;
    if (s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return len;
}

size_t gp_text_repair(char *out, const char *text)
{
    char *at = out;
    while (*text != '\0') {
        size_t len = gp_text_utf8_len(text);
        if (len == 0) {
            memcpy(at, "\xef\xbf\xbd", 3);
            at += 3;
            text++;
        } else {
            memcpy(at, text, len);
            at += len;
            text += len;
        }
    }
    *at = '\0';
    return (size_t)(at - out);
}

void gp_text_put_line(FILE *out, const char *text)
{
    while (*text != '\0') {
        size_t len = gp_text_utf8_len(text);
        unsigned char c = (unsigned char)*text;
        if (len == 0)
            fputs("\xef\xbf\xbd", out);
        else if (c < ' ' || c == 0x7f)
            putc(' ', out);
        else
            fwrite(text, 1, len, out);
        text += len ? len : 1;
    }
}

size_t gp_text_uint(char *out, uint64_t value)
{
    char digits[GP_TEXT_UINT_MAX];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    memcpy(out, digits + at, sizeof(digits) - at);
    return sizeof(digits) - at;
}

size_t gp_text_decimal(char *out, uint64_t ns, uint64_t unit_ns, unsigned digits)
{
    uint64_t scale = 1;
    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    // Units of the last digit, then the point is put in.
    uint64_t step = unit_ns / scale ? unit_ns / scale : 1;
    uint64_t value = ns / step + (ns % step >= (step + 1) / 2 && step > 1);
    if (digits == 0)
        return (size_t)snprintf(out, 32, "%" PRIu64, value);
    return (size_t)snprintf(out, 32, "%" PRIu64 ".%0*" PRIu64, value / scale, (int)digits, value % scale);
}

static bool text_enlarge(gp_text_t *text, size_t len)
{
    size_t size = (text->len + len + 1) * 2;
    char *data = text->failed ? NULL : realloc(text->data, size);
    if (data == NULL) {
        text->failed = 1;
        return false;
    }
    text->data = data;
    text->size = size;
    return true;
}

char *gp_text_extend(gp_text_t *text, size_t len)
{
    if (text->failed || (text->len + len + 1 > text->size && !text_enlarge(text, len)))
        return NULL;
    char *at = text->data + text->len;
    text->len += len;
    at[len] = '\0';
    return at;
}

void gp_text_add(gp_text_t *text, const char *bytes, size_t len)
{
    char *at = gp_text_extend(text, len);
    if (at != NULL)
        memcpy(at, bytes, len);
}

void gp_text_clear(gp_text_t *text)
{
    text->len = 0;
    if (text->data != NULL)
        text->data[0] = '\0';
}

void gp_text_free(gp_text_t *text)
{
    free(text->data);
    memset(text, 0, sizeof(*text));
}
