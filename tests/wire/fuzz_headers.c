// SPDX-License-Identifier: MIT
// Fuzz target: headers of requests, which anyone may send. A line is "Name: value"; "@1" and "@256" in a value stand
// for its signature so far by a good key, so that what lies behind the signatures is reached, too.
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "fuzz.h"
#include "wire/formats.h"
#include "wire/keys.h"
#include "wire/nonces.h"

enum { HEADERS_MAX = 8, VALUE_MAX = 16384 };

#define NOW_MS 1790000000000u
#define KEY    "key"

static const gp_wire_format_t *const formats[] = {&gp_wire_greenprof, &gp_wire_osprofiler, &gp_wire_w3c};

static void sign(const EVP_MD *how, const char *text, size_t len, char *hex)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_len = 0;
    HMAC(how, KEY, sizeof(KEY) - 1, (const unsigned char *)text, len, mac, &mac_len);
    gp_hex_write(hex, mac, mac_len);
}

// A copy of its own, so that a read past its end is seen.
static char *value_of(const char *text, size_t len, const char *before)
{
    char *value = malloc(len + 80);
    const char *mark = memchr(text, '@', len);
    size_t kept = mark != NULL ? (size_t)(mark - text) : len;
    memcpy(value, text, kept);
    value[kept] = '\0';
    if (mark != NULL && text + len - mark == 2 && mark[1] == '1' && before != NULL)
        sign(EVP_sha1(), before, strlen(before), value + kept); // X-Trace-HMAC, of the line before
    else if (mark != NULL && text + len - mark == 4 && memcmp(mark, "@256", 4) == 0 && kept >= 5)
        sign(EVP_sha256(), value, kept - 5, value + kept); // behind ";mac="
    else if (mark != NULL)
        value[kept] = '\0';
    return realloc(value, strlen(value) + 1);
}

static void check(const prof_context_t *context)
{
    char text[PROF_CONTEXT_TEXT_SIZE];
    if (gp_trace_is_none(&context->trace) || strlen(context->tracestate) >= sizeof(context->tracestate) ||
        strlen(context->parent_uuid) >= sizeof(context->parent_uuid))
        abort();
    for (size_t i = 0; i < 3; i++)
        if (formats[i]->write(context, NOW_MS, text) != 0 || strlen(text) >= sizeof(text) ||
            strcmp(text + strlen(text) - 2, "\r\n") != 0)
            abort();
}

static void read_all(const prof_header_t *headers, size_t count)
{
    static const prof_context_t empty = {.size = sizeof(empty)};
    for (size_t i = 0; i < 3; i++) {
        prof_context_t context = empty;
        int error = formats[i]->read(headers, count, NOW_MS, &context);
        if (error == 0)
            check(&context);
        if (error == 0 && formats[i]->is_signed != ((context.flags & PROF_CONTEXT_SIGNED) != 0))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prof_header_t headers[HEADERS_MAX];
    char *names[HEADERS_MAX], *values[HEADERS_MAX];
    size_t count = 0;
    if (!gp_keys_exist() && (gp_nonces_prepare() != 0 || gp_keys_set(KEY ",other", sizeof(KEY ",other") - 1) != 0))
        abort();
    const char *text = (const char *)data, *end = text + size;
    for (const char *line = text, *stop; line < end && count < HEADERS_MAX; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop != NULL ? stop : end;
        const char *colon = memchr(line, ':', (size_t)(stop - line));
        if (colon == NULL || stop - line > VALUE_MAX)
            continue;
        names[count] = strndup(line, (size_t)(colon - line));
        values[count] = value_of(colon + 1, (size_t)(stop - colon - 1), count > 0 ? values[count - 1] : NULL);
        headers[count] = (prof_header_t){names[count], values[count]};
        count++;
    }
    read_all(headers, count);
    for (size_t i = 0; i < count; i++) {
        free(names[i]);
        free(values[i]);
    }
    return 0;
}
