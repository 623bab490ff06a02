// SPDX-License-Identifier: MIT
// Trace ids as text. Sources: RFC 9562 (UUID), W3C Trace Context (traceparent).
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/hex.h"
#include "greenprof/trace.h"
#include "model/trace_parent.h"

static const char *trace_id_expect(const char *text, char c)
{
    return text != NULL && *text == c ? text + 1 : NULL;
}

static const char *trace_id_read_uuid(const char *text, uint8_t bytes[16])
{
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    for (size_t i = 0; i < sizeof(groups) && text != NULL; i++) {
        if (i > 0)
            text = trace_id_expect(text, '-');
        if (text != NULL)
            text = gp_hex_read(text, bytes, groups[i]);
        bytes += groups[i];
    }
    return text;
}

static const char *trace_id_read_traceparent(const char *text, uint8_t bytes[16])
{
    uint8_t version, rest[8], flags;
    text = gp_hex_read(text, &version, 1);
    text = trace_id_expect(text, '-');
    if (text != NULL)
        text = gp_hex_read(text, bytes, 16);
    text = trace_id_expect(text, '-');
    if (text != NULL)
        text = gp_hex_read(text, rest, 8);
    text = trace_id_expect(text, '-');
    if (text != NULL)
        text = gp_hex_read(text, &flags, 1);
    if (text == NULL || version == 0xff)
        return NULL;
    // Version 00 has exactly these fields; a later one may go on after another dash.
    if (version != 0 && *text == '-')
        text += strlen(text);
    return text;
}

static bool trace_id_is_end(const char *text)
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
    bool read = trace_id_is_end(gp_hex_read(text, parsed.bytes, 16)) ||
                trace_id_is_end(trace_id_read_uuid(text, parsed.bytes)) ||
                trace_id_is_end(trace_id_read_traceparent(text, parsed.bytes));
    if (!read || memcmp(&parsed, &none, sizeof(none)) == 0)
        return -EINVAL;
    *id = parsed;
    return 0;
}

int gp_trace_parent_read(const char *text, prof_trace_id_t *trace, uint64_t *span_id, uint8_t *flags)
{
    enum { LEN = 55 }; // of version 00
    uint8_t span[8], read_flags;
    prof_trace_id_t id;
    // The dash excludes the other forms of prof_trace_parse().
    if (strspn(text, "0123456789abcdef-") < LEN || text[2] != '-' || prof_trace_parse(text, &id) != 0 ||
        gp_hex_read(text + 36, span, 8) == NULL || gp_hex_read(text + 53, &read_flags, 1) == NULL ||
        gp_hex_to_u64(span) == 0)
        return -EINVAL;
    *trace = id;
    *span_id = gp_hex_to_u64(span);
    *flags = read_flags;
    return 0;
}

void prof_trace_to_hex(const prof_trace_id_t *id, char text[PROF_TRACE_HEX_SIZE])
{
    gp_hex_write(text, id->bytes, 16);
}

void prof_trace_to_uuid(const prof_trace_id_t *id, char text[PROF_TRACE_UUID_SIZE])
{
    static const uint8_t groups[] = {4, 2, 2, 2, 6};
    const uint8_t *bytes = id->bytes;
    for (size_t i = 0; i < sizeof(groups); i++) {
        if (i > 0)
            *text++ = '-';
        text = gp_hex_write(text, bytes, groups[i]);
        bytes += groups[i];
    }
}

void prof_trace_to_traceparent(const prof_trace_id_t *id, uint64_t span_id, int sampled,
                               char text[PROF_TRACE_TRACEPARENT_SIZE])
{
    uint8_t span[8];
    gp_hex_from_u64(span_id, span);
    memcpy(text, "00-", 3);
    text = gp_hex_write(text + 3, id->bytes, 16);
    *text++ = '-';
    text = gp_hex_write(text, span, 8);
    memcpy(text, sampled ? "-01" : "-00", 4);
}
