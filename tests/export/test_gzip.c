// SPDX-License-Identifier: MIT
// What gzip.c writes is read by zlib: the same bytes, by its checksum and one by one, in one member.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "export/gzip.h"
#include "export/huffman.h"

enum { MOST = 1 << 20, WITH_GZIP_HEADER = 16 };

static uint8_t input[MOST], output[MOST + 1];

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

// Returns the compressed bytes, in pieces of `piece` bytes each.
static char *compressed(size_t len, size_t piece, size_t *compressed_len)
{
    char *bytes = NULL;
    FILE *file = open_memstream(&bytes, compressed_len);
    assert_non_null(file);
    gp_gzip_t *gzip = gp_gzip_open(file);
    assert_non_null(gzip);
    for (size_t at = 0; at < len; at += piece)
        gp_gzip_write(gzip, input + at, len - at < piece ? len - at : piece);
    gp_gzip_close(gzip);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

static void assert_read_back(const char *bytes, size_t bytes_len, size_t len)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)bytes, .avail_in = (uInt)bytes_len};
    stream.next_out = output;
    stream.avail_out = sizeof(output);
    assert_int_equal(inflateInit2(&stream, 15 + WITH_GZIP_HEADER), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    assert_int_equal(stream.total_out, len);
    assert_memory_equal(output, input, len);
    inflateEnd(&stream);
}

static void check(size_t len)
{
    size_t whole_len, cut_len;
    char *whole = compressed(len, MOST, &whole_len), *cut = compressed(len, 997, &cut_len);
    assert_read_back(whole, whole_len, len);
    assert_int_equal(whole_len, cut_len);
    assert_memory_equal(whole, cut, whole_len);
    free(whole);
    free(cut);
}

static void reads_back_few_bytes(void **state)
{
    (void)state;
    for (size_t len = 0; len < 600; len++) {
        memset(input, 'a', len);
        check(len);
        for (size_t i = 0; i < len; i++)
            input[i] = (uint8_t)i;
        check(len);
    }
}

// Blocks' bounds, and matches that reach as far back as they may and not farther.
static void reads_back_repeats(void **state)
{
    static const size_t apart[] = {1, 2, 3, 4, 5, 257, 258, 259, 4096, 24576, 32767, 32768, 32769, 65535, 65536, 65537};
    uint64_t random = 1;
    (void)state;
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
        for (size_t at = 0; at < MOST; at++)
            input[at] = at < apart[i] ? (uint8_t)next_random(&random) : input[at - apart[i]];
        check(MOST);
        check((1 << 16) - 1 + i % 3);
    }
}

// From all alike to all different, with lengths and distances of every kind.
static void reads_back_random_bytes(void **state)
{
    uint64_t random = 2;
    (void)state;
    for (unsigned turn = 0; turn < 40; turn++) {
        unsigned values = 1u << turn % 9;
        for (size_t at = 0; at < MOST;) {
            size_t run = 1 + next_random(&random) % 300, back = 1 + next_random(&random) % 40000;
            bool repeats = back < at && next_random(&random) % 8 < turn / 5;
            for (; run > 0 && at < MOST; run--, at++)
                input[at] = repeats ? input[at - back] : (uint8_t)(next_random(&random) % values);
        }
        check(MOST - next_random(&random) % 100);
    }
}

// Bytes of which each is half as frequent as the next: without a limit their codes would be longer than deflate has
// room for.
static void reads_back_steep_frequencies(void **state)
{
    (void)state;
    size_t at = 0;
    for (unsigned value = 0; value < 20; value++)
        for (size_t i = 0; i < (size_t)1 << value && at < 65536; i++)
            input[at++] = (uint8_t)(value + (i % 2 ? 128 : 0));
    check(at);
}

// The sum of 2^-length is 1: each sequence of bits says something, and nothing two things.
static void codes_are_complete(void **state)
{
    uint64_t random = 3;
    (void)state;
    for (unsigned turn = 0; turn < 2000; turn++) {
        unsigned count = 2 + next_random(&random) % 285, longest = count <= 19 && turn % 2 ? 7 : 15;
        uint32_t frequencies[GP_HUFFMAN_SYMBOLS_MAX];
        uint64_t sum = 0;
        gp_huffman_t codes;
        for (unsigned i = 0; i < count; i++)
            frequencies[i] = next_random(&random) % 3 ? (next_random(&random) >> next_random(&random) % 32) % 65537 : 0;
        gp_huffman_make(&codes, frequencies, count, longest);
        for (unsigned i = 0; i < count; i++) {
            assert_true(codes.lengths[i] <= longest);
            assert_true(frequencies[i] == 0 || codes.lengths[i] > 0);
            sum += codes.lengths[i] > 0 ? (uint64_t)1 << (15 - codes.lengths[i]) : 0;
        }
        assert_int_equal(sum, 1 << 15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_few_bytes),    cmocka_unit_test(reads_back_repeats),
        cmocka_unit_test(reads_back_random_bytes), cmocka_unit_test(reads_back_steep_frequencies),
        cmocka_unit_test(codes_are_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
