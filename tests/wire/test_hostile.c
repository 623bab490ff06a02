// SPDX-License-Identifier: MIT
// Headers that are wrong, cut, tampered with, sent twice or huge: each is refused, and none makes greenprof or OpenSSL
// allocate more memory than a good header is long. On the room itself, so that its allocations are seen.
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headers_to_read.h"
#include "wire/formats.h"
#include "wire/keys.h"
#include "wire/nonces.h"

enum { HUGE_LEN = 1 << 20 };

static size_t largest; // allocation since it was set to 0
static char huge[HUGE_LEN + 1];

static void see(size_t size)
{
    largest = size > largest ? size : largest;
}

// Functions for OpenSSL.
static void *crypto_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    see(size);
    return malloc(size);
}

static void *crypto_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    see(size);
    return realloc(old, size);
}

static void crypto_free(void *old, const char *file, int line)
{
    (void)file, (void)line;
    free(old);
}

// Functions for greenprof; the linker's --wrap leads here.
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
    see(size);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    see(count * size);
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    see(size);
    return __real_realloc(old, size);
}

static int read_with(const gp_wire_format_t *format, const prof_header_t *headers, size_t count)
{
    prof_context_t context = PROF_CONTEXT_INIT;
    largest = 0;
    return format->read(headers, count, now_ms(), &context);
}

static int read_own(const char *value)
{
    prof_header_t header = {"X-Greenprof-Context", value};
    return read_with(&gp_wire_greenprof, &header, 1);
}

static int read_osprofilers(const char *info, const char *mac)
{
    prof_header_t headers[] = {{"X-Trace-Info", info}, {"X-Trace-HMAC", mac}};
    return read_with(&gp_wire_osprofiler, headers, 2);
}

static void own_headers(void **state)
{
    (void)state;
    char value[256], text[256];
    make_own(value, "key", 0, fresh_nonce());
    size_t len = strlen(value);
    for (size_t i = 0; i < len; i++) {
        strcpy(text, value);
        text[i] ^= 1;
        assert_int_not_equal(read_own(text), 0);
        assert_in_range(largest, 0, len);
        strcpy(text, value);
        text[i] = '\0';
        assert_int_not_equal(read_own(text), 0);
        assert_in_range(largest, 0, len);
    }
    assert_int_equal(read_own(value), 0);
    assert_in_range(largest, 1, len); // it is seen
    assert_int_equal(read_own(value), -EALREADY);
    assert_in_range(largest, 0, len);
}

static void headers_of_osprofiler(void **state)
{
    (void)state;
    char text[256];
    assert_int_equal(read_osprofilers(OS_INFO, OS_MAC), 0);
    assert_in_range(largest, 1, strlen(OS_INFO OS_MAC));
    for (size_t i = 0; i < strlen(OS_INFO); i++) {
        strcpy(text, OS_INFO);
        text[i] ^= 1;
        assert_int_equal(read_osprofilers(text, OS_MAC), -EACCES);
        strcpy(text, OS_INFO);
        text[i] = '\0';
        assert_int_equal(read_osprofilers(text, OS_MAC), -EACCES);
        assert_in_range(largest, 0, strlen(OS_INFO OS_MAC));
    }
}

static void huge_headers(void **state)
{
    (void)state;
    const prof_header_t parent[] = {{"traceparent", huge}}, states[] = {{"traceparent", FIRST}, {"tracestate", huge}};
    memset(huge, 'a', HUGE_LEN);
    assert_int_equal(read_own(huge), -E2BIG);
    assert_int_equal(largest, 0);
    assert_int_equal(read_osprofilers(huge, OS_MAC), -E2BIG);
    assert_int_equal(largest, 0);
    assert_int_equal(read_osprofilers(OS_INFO, huge), -E2BIG);
    assert_int_equal(largest, 0);
    assert_int_equal(read_with(&gp_wire_w3c, parent, 1), -E2BIG);
    assert_int_equal(largest, 0);
    assert_int_equal(read_with(&gp_wire_w3c, states, 2), 0); // goes on without it
    assert_int_equal(largest, 0);
}

static int prepare(void **state)
{
    (void)state;
    return gp_nonces_prepare() != 0 || gp_keys_set("key,SECRET_KEY", 14) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_headers),
        cmocka_unit_test(headers_of_osprofiler),
        cmocka_unit_test(huge_headers),
    };
    if (CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free) != 1)
        return 1;
    return cmocka_run_group_tests(tests, prepare, NULL);
}
