// SPDX-License-Identifier: MIT
// OSProfiler's headers, as its client and its WSGI middleware have them:
//
//   X-Trace-Info: <base64url of {"base_id": "<UUID>", "parent_id": "<UUID>"}>
//   X-Trace-HMAC: <40 hex, HMAC-SHA1 of the base64 text>
//
// They have no time: whatever was captured is good for as long as its key. Source: osprofiler/web.py, _utils.py
// (3.4.3).
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "wire/formats.h"
#include "wire/keys.h"

enum {
    INFO_MAX = 512,
    MAC_LEN = 40,
    UUID_LEN = PROF_TRACE_UUID_SIZE - 1,
    JSON_MAX = INFO_MAX / 4 * 3,
};

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Returns the length, or -1 where it is no base64url with its padding.
static int osprofiler_decode(gp_header_text_t text, char *out)
{
    uint32_t bits = 0;
    size_t data = text.len, len = 0;
    while (data > 0 && text.len - data < 2 && text.at[data - 1] == '=')
        data--;
    if (text.len % 4 != 0)
        return -1;
    for (size_t i = 0; i < data; i++) {
        const char *digit = memchr(base64, text.at[i], 64);
        if (digit == NULL)
            return -1;
        bits = bits << 6 | (uint32_t)(digit - base64);
        if (i % 4 != 0)
            out[len++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    return (int)len;
}

static void osprofiler_encode(const char *bytes, size_t len, char *out)
{
    for (size_t i = 0; i < len; i += 3) {
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < len ? (unsigned char)bytes[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            *out++ = k <= len - i ? base64[bits >> (18 - 6 * k) & 63] : '=';
    }
    *out = '\0';
}

// --- an object of strings, which is all that the JSON may be

typedef struct json {
    const char *at, *end;
} json_t;

static bool osprofiler_is_over(json_t *json)
{
    while (json->at < json->end && memchr(" \t\r\n", *json->at, 4) != NULL)
        json->at++;
    return json->at == json->end;
}

static bool osprofiler_take(json_t *json, char c)
{
    if (osprofiler_is_over(json) || *json->at != c)
        return false;
    json->at++;
    return true;
}

// Without escapes: neither the keys nor a UUID need any.
static bool osprofiler_take_string(json_t *json, gp_header_text_t *string)
{
    if (!osprofiler_take(json, '"'))
        return false;
    string->at = json->at;
    while (json->at < json->end && *json->at != '"')
        if (*json->at == '\\' || (unsigned char)*json->at++ < ' ')
            return false;
    string->len = (size_t)(json->at - string->at);
    return json->at++ < json->end;
}

static bool osprofiler_is(gp_header_text_t text, const char *expected)
{
    return text.len == strlen(expected) && memcmp(text.at, expected, text.len) == 0;
}

// Take one of the two ids, each once. Returns false for anything else.
static bool osprofiler_take_id(json_t *json, gp_header_text_t *base, gp_header_text_t *parent)
{
    gp_header_text_t key, value;
    if (!osprofiler_take_string(json, &key) || !osprofiler_take(json, ':') || !osprofiler_take_string(json, &value))
        return false;
    gp_header_text_t *into = osprofiler_is(key, "base_id") ? base : osprofiler_is(key, "parent_id") ? parent : NULL;
    if (into == NULL || into->at != NULL)
        return false;
    *into = value;
    return true;
}

static bool osprofiler_parse(const char *text, size_t len, gp_header_text_t *base, gp_header_text_t *parent)
{
    json_t json = {text, text + len};
    *base = *parent = (gp_header_text_t){NULL, 0};
    if (!osprofiler_take(&json, '{') || !osprofiler_take_id(&json, base, parent))
        return false;
    while (osprofiler_take(&json, ','))
        if (!osprofiler_take_id(&json, base, parent))
            return false;
    return osprofiler_take(&json, '}') && osprofiler_is_over(&json) && base->at != NULL;
}

static bool osprofiler_read_uuid(gp_header_text_t text, prof_trace_id_t *id)
{
    char copy[PROF_TRACE_UUID_SIZE];
    if (text.len != UUID_LEN)
        return false;
    memcpy(copy, text.at, UUID_LEN);
    copy[UUID_LEN] = '\0';
    return copy[8] == '-' && prof_trace_parse(copy, id) == 0;
}

// A span's id is the second half of its UUID: greenprof's own have zeros before it.
static int osprofiler_fill(const char *text, size_t len, prof_context_t *context)
{
    gp_header_text_t base, parent;
    prof_trace_id_t trace, span;
    if (!osprofiler_parse(text, len, &base, &parent) || !osprofiler_read_uuid(base, &trace) ||
        !osprofiler_read_uuid(parent.at != NULL ? parent : base, &span))
        return -EINVAL;
    context->trace = trace;
    context->parent_id = gp_hex_to_u64(span.bytes + 8);
    prof_trace_to_uuid(&span, context->parent_uuid);
    context->flags = PROF_CONTEXT_SAMPLED | PROF_CONTEXT_SIGNED | PROF_CONTEXT_OSPROFILER;
    return 0;
}

static int osprofiler_read(const prof_header_t *headers, size_t count, uint64_t now_ms, prof_context_t *context)
{
    gp_header_text_t info, mac;
    char json[JSON_MAX];
    (void)now_ms;
    int error = gp_header_find(headers, count, "X-Trace-Info", INFO_MAX, &info);
    if (error == 0)
        error = gp_header_find(headers, count, "X-Trace-HMAC", MAC_LEN + 8, &mac);
    if (error != 0)
        return error;
    if (!gp_keys_verify(GP_MAC_SHA1, info.at, info.len, mac.at, mac.len))
        return -EACCES;
    int len = osprofiler_decode(info, json);
    return len < 0 ? -EINVAL : osprofiler_fill(json, (size_t)len, context);
}

// --- writing

// As it was read, where the parent is still that; 0 = the request itself, which OSProfiler calls by the trace's id.
static void osprofiler_parent_uuid(const prof_context_t *context, char uuid[PROF_TRACE_UUID_SIZE])
{
    prof_trace_id_t read = {0}, id = {0};
    gp_hex_from_u64(context->parent_id, id.bytes + 8);
    if (context->parent_id == 0)
        id = context->trace;
    if (prof_trace_parse(context->parent_uuid, &read) == 0 && gp_hex_to_u64(read.bytes + 8) == context->parent_id)
        id = read;
    prof_trace_to_uuid(&id, uuid);
}

static int osprofiler_write(const prof_context_t *context, uint64_t now_ms, char *text)
{
    char json[JSON_MAX], base[PROF_TRACE_UUID_SIZE], parent[PROF_TRACE_UUID_SIZE], mac[GP_MAC_HEX_MAX];
    (void)now_ms;
    prof_trace_to_uuid(&context->trace, base);
    osprofiler_parent_uuid(context, parent);
    int len = snprintf(json, sizeof(json), "{\"base_id\": \"%s\", \"parent_id\": \"%s\"}", base, parent);
    char *value = stpcpy(text, "X-Trace-Info: ");
    osprofiler_encode(json, (size_t)len, value);
    int error = gp_keys_sign(GP_MAC_SHA1, value, strlen(value), mac);
    if (error == 0)
        sprintf(value + strlen(value), "\r\nX-Trace-HMAC: %s\r\n", mac);
    return error;
}

const gp_wire_format_t gp_wire_osprofiler = {"osprofiler", true, osprofiler_read, osprofiler_write};
