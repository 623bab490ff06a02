// SPDX-License-Identifier: MIT
// greenprof's own header, which is good once:
//
//   X-Greenprof-Context: v1;trace=<32 hex>;parent=<16 hex>;time=<ms since 1970>;nonce=<32 hex>;mac=<64 hex>
//
// The fields are in this order, hex digits in lower case. mac is HMAC-SHA256 of all that precedes ";mac=".
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/hex.h"
#include "wire/formats.h"
#include "wire/keys.h"
#include "wire/nonces.h"

enum {
    TIME_DIGITS_MAX = 16,
    LEN_MAX = 9 + 32 + 8 + 16 + 6 + TIME_DIGITS_MAX + 7 + 32 + 5 + 64,
};

#define NAME "X-Greenprof-Context"

typedef struct fields {
    uint8_t parent[8], nonce[GP_NONCE_BYTES];
    uint64_t time_ms;
} fields_t;

static const char *greenprof_expect(const char *at, const char *what)
{
    size_t len = strlen(what);
    return at != NULL && strncmp(at, what, len) == 0 ? at + len : NULL;
}

static const char *greenprof_hex(const char *at, uint8_t *bytes, size_t count)
{
    return at != NULL && strspn(at, "0123456789abcdef") >= 2 * count ? gp_hex_read(at, bytes, count) : NULL;
}

static const char *greenprof_number(const char *at, uint64_t *value)
{
    size_t digits = at != NULL ? strspn(at, "0123456789") : 0;
    *value = 0;
    for (size_t i = 0; i < digits && digits <= TIME_DIGITS_MAX; i++)
        *value = *value * 10 + (uint64_t)(at[i] - '0');
    return digits > 0 && digits <= TIME_DIGITS_MAX ? at + digits : NULL;
}

// Returns the mac, or NULL where the text is malformed.
static const char *greenprof_parse(const char *text, prof_trace_id_t *trace, fields_t *fields)
{
    const char *at = greenprof_hex(greenprof_expect(text, "v1;trace="), trace->bytes, sizeof(trace->bytes));
    at = greenprof_hex(greenprof_expect(at, ";parent="), fields->parent, sizeof(fields->parent));
    at = greenprof_number(greenprof_expect(at, ";time="), &fields->time_ms);
    at = greenprof_hex(greenprof_expect(at, ";nonce="), fields->nonce, sizeof(fields->nonce));
    at = greenprof_expect(at, ";mac=");
    return at != NULL && !gp_trace_is_none(trace) ? at : NULL;
}

static int greenprof_own_read(const prof_header_t *headers, size_t count, uint64_t now_ms, prof_context_t *context)
{
    gp_header_text_t found;
    char text[LEN_MAX + 1];
    prof_trace_id_t trace;
    fields_t fields;
    int error = gp_header_find(headers, count, NAME, LEN_MAX, &found);
    if (error != 0)
        return error;
    memcpy(text, found.at, found.len);
    text[found.len] = '\0';
    const char *mac = greenprof_parse(text, &trace, &fields);
    if (mac == NULL)
        return -EINVAL;
    if (!gp_keys_verify(GP_MAC_SHA256, text, (size_t)(mac - 5 - text), mac, strlen(mac)))
        return -EACCES;
    if (fields.time_ms + GP_CONTEXT_AGE_MS < now_ms || fields.time_ms > now_ms + GP_CONTEXT_AHEAD_MS)
        return -ETIME;
    error = gp_nonce_take(fields.nonce, fields.time_ms, now_ms);
    if (error != 0)
        return error;
    context->trace = trace;
    context->parent_id = gp_hex_to_u64(fields.parent);
    context->flags = PROF_CONTEXT_SAMPLED | PROF_CONTEXT_SIGNED;
    return 0;
}

static int greenprof_own_write(const prof_context_t *context, uint64_t now_ms, char *text)
{
    uint8_t random[GP_NONCE_BYTES];
    char trace[PROF_TRACE_HEX_SIZE], nonce[2 * GP_NONCE_BYTES + 1], mac[GP_MAC_HEX_MAX];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return -EIO;
    prof_trace_to_hex(&context->trace, trace);
    gp_hex_write(nonce, random, sizeof(random));
    int len = sprintf(text, NAME ": v1;trace=%s;parent=%016" PRIx64 ";time=%" PRIu64 ";nonce=%s", trace,
                      context->parent_id, now_ms, nonce);
    const char *value = text + sizeof(NAME ": ") - 1;
    int error = gp_keys_sign(GP_MAC_SHA256, value, strlen(value), mac);
    if (error == 0)
        sprintf(text + len, ";mac=%s\r\n", mac);
    return error;
}

const gp_wire_format_t gp_wire_greenprof = {"greenprof", true, greenprof_own_read, greenprof_own_write};
