// SPDX-License-Identifier: MIT
#include "headers_to_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

prof_context_counts_t counted(void)
{
    prof_context_counts_t counts = {.size = sizeof(counts)};
    assert_int_equal(prof_context_counts(&counts), 0);
    return counts;
}

int read_one(const char *name, const char *value, prof_context_t *context)
{
    prof_header_t header = {name, value};
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(&header, 1, context);
}

int read_pair(const char *info, const char *mac, prof_context_t *context)
{
    prof_header_t headers[] = {{"X-Trace-Info", info}, {"x-trace-hmac", mac}};
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(headers, 2, context);
}

void assert_trace(const prof_context_t *context)
{
    char hex[PROF_TRACE_HEX_SIZE];
    prof_trace_to_hex(&context->trace, hex);
    assert_string_equal(hex, TRACE);
}

void assert_empty(const prof_context_t *context)
{
    static const prof_context_t empty = PROF_CONTEXT_INIT;
    assert_memory_equal(context, &empty, sizeof(empty));
}

static void hex_of(const unsigned char *bytes, unsigned len, char *hex)
{
    for (unsigned i = 0; i < len; i++)
        sprintf(hex + 2 * i, "%02x", bytes[i]);
}

void sign(const EVP_MD *how, const char *key, const char *text, char *hex)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    assert_non_null(HMAC(how, key, (int)strlen(key), (const unsigned char *)text, strlen(text), mac, &len));
    hex_of(mac, len, hex);
}

uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void make_own(char *value, const char *key, int64_t age_ms, const char *nonce)
{
    char mac[65];
    int len = sprintf(value, "v1;trace=" TRACE ";parent=" PARENT ";time=%" PRIu64 ";nonce=%s",
                      now_ms() - (uint64_t)age_ms, nonce);
    sign(EVP_sha256(), key, value, mac);
    sprintf(value + len, ";mac=%s", mac);
}

char *fresh_nonce(void)
{
    static char nonce[33];
    static uint64_t number;
    number++;
    sprintf(nonce, "%016" PRIx64 "%016" PRIx64, number << 32 | (uint64_t)getpid(), number);
    return nonce;
}

int set_keys(void **state)
{
    (void)state;
    return prof_hmac_keys("OTHER, SECRET_KEY ,third");
}

int read_states(const char *one, const char *two, prof_context_t *context)
{
    prof_header_t headers[] = {{"tracestate", one}, {"traceparent", FIRST}, {"TraceState", two}};
    *context = (prof_context_t)PROF_CONTEXT_INIT;
    return prof_context_read(headers, two != NULL ? 3 : 2, context);
}
