// SPDX-License-Identifier: MIT
// The HMAC of what is preloaded beside OpenSSL's, and the signature of a request.
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// clang-format off
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include "base/hex.h"
#include "base/sha256.h"
#include "live/control_sign.h"

static void fill(uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(rand() >> 7);
}

static void check_hash(const char *text, const char *hex)
{
    uint8_t sum[GP_SHA256_BYTES];
    char shown[2 * GP_SHA256_BYTES + 1];
    gp_sha256_t state;
    gp_sha256_begin(&state);
    gp_sha256_add(&state, text, strlen(text));
    gp_sha256_end(&state, sum);
    gp_hex_write(shown, sum, sizeof(sum));
    assert_string_equal(shown, hex);
}

// FIPS 180-4's examples.
static void test_known_hashes(void **unused)
{
    (void)unused;
    check_hash("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_hashes_of_every_length(void **unused)
{
    uint8_t bytes[400], ours[GP_SHA256_BYTES], theirs[SHA256_DIGEST_LENGTH];
    (void)unused;
    fill(bytes, sizeof(bytes));
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        gp_sha256_t state;
        size_t first = len > 0 ? (size_t)rand() % len : 0;
        gp_sha256_begin(&state);
        gp_sha256_add(&state, bytes, first);
        gp_sha256_add(&state, bytes + first, len - first);
        gp_sha256_end(&state, ours);
        SHA256(bytes, len, theirs);
        assert_memory_equal(ours, theirs, sizeof(ours));
    }
}

static void test_codes_of_every_key_length(void **unused)
{
    uint8_t key[GP_KEY_BYTES_MAX], text[200], ours[GP_SHA256_BYTES], theirs[EVP_MAX_MD_SIZE];
    unsigned theirs_len;
    (void)unused;
    fill(key, sizeof(key));
    fill(text, sizeof(text));
    for (size_t len = 1; len <= sizeof(key); len++) {
        gp_hmac_t mac;
        gp_hmac_begin(&mac, key, len);
        gp_hmac_add(&mac, text, 70);
        gp_hmac_add(&mac, text + 70, sizeof(text) - 70);
        gp_hmac_end(&mac, ours);
        assert_non_null(HMAC(EVP_sha256(), key, (int)len, text, sizeof(text), theirs, &theirs_len));
        assert_memory_equal(ours, theirs, sizeof(ours));
        static const gp_hmac_t nothing;
        assert_memory_equal(&mac, &nothing, sizeof(mac));
    }
}

static void test_comparing(void **unused)
{
    uint8_t one[GP_SHA256_BYTES], other[GP_SHA256_BYTES];
    (void)unused;
    fill(one, sizeof(one));
    memcpy(other, one, sizeof(other));
    assert_true(gp_hmac_is_equal(one, other));
    for (int bit = 0; bit < 8 * GP_SHA256_BYTES; bit++) {
        other[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(gp_hmac_is_equal(one, other));
        other[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static gp_key_list_t list_of(const char *text)
{
    gp_key_list_t keys = {0};
    assert_int_equal(gp_key_list_parse(&keys, text, strlen(text)), 0);
    return keys;
}

static void test_requests(void **unused)
{
    uint8_t nonce[GP_CONTROL_NONCE_BYTES];
    gp_control_request_t request = {.magic = GP_CONTROL_MAGIC, .command = GP_CONTROL_STOP, .path = "/a"};
    gp_key_list_t keys = list_of("first, second ,third"), others = list_of("fourth"), none = list_of(" ,\n");
    (void)unused;
    fill(nonce, sizeof(nonce));
    assert_int_equal(keys.count, 3);
    assert_int_equal(none.count, 0);
    for (size_t i = 0; i < keys.count; i++) {
        gp_control_sign(&keys.list[i], nonce, &request);
        assert_true(gp_control_is_signed(&keys, nonce, &request));
        assert_false(gp_control_is_signed(&others, nonce, &request));
        assert_false(gp_control_is_signed(&none, nonce, &request));
    }
    for (size_t i = 0; i < sizeof(request); i++) {
        ((uint8_t *)&request)[i] ^= 0x10;
        assert_false(gp_control_is_signed(&keys, nonce, &request));
        ((uint8_t *)&request)[i] ^= 0x10;
    }
    nonce[31] ^= 1;
    assert_false(gp_control_is_signed(&keys, nonce, &request));
}

static void test_lists_that_are_too_long(void **unused)
{
    char text[GP_KEYS_TEXT_MAX];
    gp_key_list_t keys = {0};
    (void)unused;
    memset(text, 'x', GP_KEY_BYTES_MAX + 1);
    assert_int_equal(gp_key_list_parse(&keys, text, GP_KEY_BYTES_MAX), 0);
    assert_int_equal(gp_key_list_parse(&keys, text, GP_KEY_BYTES_MAX + 1), -E2BIG);
    keys.count = 0;
    for (size_t i = 0; i < 2 * GP_KEYS_MAX; i++)
        memcpy(text + 2 * i, "k,", 2);
    assert_int_equal(gp_key_list_parse(&keys, text, 2 * GP_KEYS_MAX), 0);
    keys.count = 0;
    assert_int_equal(gp_key_list_parse(&keys, text, 2 * GP_KEYS_MAX + 1), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_hashes),
        cmocka_unit_test(test_hashes_of_every_length),
        cmocka_unit_test(test_codes_of_every_key_length),
        cmocka_unit_test(test_comparing),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_lists_that_are_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
