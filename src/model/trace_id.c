// SPDX-License-Identifier: MIT
// Trace ids as text. Sources: RFC 9562 (UUID), W3C Trace Context (traceparent).
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "greenprof/trace.h"

static const char digits[] = "0123456789abcdef";

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

// Read `count` bytes as hex digits. Returns what follows them, or NULL.
static const char *read_hex(const char *text, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int high = hex_value(text[0]), low = high >= 0 ? hex_value(text[1]) : -1;
        if (low < 0)
            return NULL;
        bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return text;
}

static const char *expect(const char *text, char c)
{
    return text != NULL && *text == c ? text + 1 : NULL;
}

static const char *read_uuid(const char *text, uint8_t bytes[16])
{
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    for (size_t i = 0; i < sizeof(groups) && text != NULL; i++) {
        if (i > 0)
            text = expect(text, '-');
        if (text != NULL)
            text = read_hex(text, bytes, groups[i]);
        bytes += groups[i];
    }
    return text;
}

static const char *read_traceparent(const char *text, uint8_t bytes[16])
{
    uint8_t version, rest[8], flags;
    text = read_hex(text, &version, 1);
    text = expect(text, '-');
    if (text != NULL)
        text = read_hex(text, bytes, 16);
    text = expect(text, '-');
    if (text != NULL)
        text = read_hex(text, rest, 8);
    text = expect(text, '-');
    if (text != NULL)
        text = read_hex(text, &flags, 1);
    if (text == NULL || version == 0xff)
        return NULL;
    // Version 00 has exactly these fields; a later one may go on after another dash.
    if (version != 0 && *text == '-')
        text += strlen(text);
    return text;
}

static bool is_end(const char *text)
{
    if (text == NULL)
        return false;
    return text[strspn(text, " \t\r\n")] == '\0';
}

int prof_trace_parse(const char *text, prof_trace_id_t *id)
{
    prof_trace_id_t parsed = {0};
    static const prof_trace_id_t none;
    if (text == NULL || id == NULL)
        return -EINVAL;
    text += strspn(text, " \t\r\n");
    bool read = is_end(read_hex(text, parsed.bytes, 16)) || is_end(read_uuid(text, parsed.bytes)) ||
                is_end(read_traceparent(text, parsed.bytes));
    if (!read || memcmp(&parsed, &none, sizeof(none)) == 0)
        return -EINVAL;
    *id = parsed;
    return 0;
}

static char *write_hex(char *text, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
    return text;
}

void prof_trace_to_hex(const prof_trace_id_t *id, char text[PROF_TRACE_HEX_SIZE])
{
    write_hex(text, id->bytes, 16);
}

void prof_trace_to_uuid(const prof_trace_id_t *id, char text[PROF_TRACE_UUID_SIZE])
{
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    const uint8_t *bytes = id->bytes;
    for (size_t i = 0; i < sizeof(groups); i++) {
        if (i > 0)
            *text++ = '-';
        text = write_hex(text, bytes, groups[i]);
        bytes += groups[i];
    }
}

void prof_trace_to_traceparent(const prof_trace_id_t *id, uint64_t span_id, int sampled,
                               char text[PROF_TRACE_TRACEPARENT_SIZE])
{
    uint8_t span[8];
    for (int i = 0; i < 8; i++)
        span[i] = (uint8_t)(span_id >> (56 - 8 * i));
    memcpy(text, "00-", 3);
    text = write_hex(text + 3, id->bytes, 16);
    *text++ = '-';
    text = write_hex(text, span, 8);
    memcpy(text, sampled ? "-01" : "-00", 4);
}
