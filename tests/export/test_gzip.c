// SPDX-License-Identifier: MIT
// Files of gzip.c as zlib reads them: the same bytes, in one member; and threads make no difference.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/helpers.h"
#include "export/write/gzip.h"

enum { BLOCK = 256 * 1024, MOST = 20 * BLOCK, WITH_GZIP_HEADER = 16 };

static uint8_t input[MOST], output[MOST + 1];
static unsigned started, may_start;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static int start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    if (started == may_start)
        return EAGAIN;
    started++;
    return pthread_create(thread, NULL, run, argument);
}

// Wanted are `wanted` threads, `may` can be had.
static void use_threads(unsigned wanted, unsigned may)
{
    started = 0;
    may_start = may;
    gp_helpers_use(wanted, start);
}

// Returns the compressed bytes, written in pieces of `piece` bytes each.
static char *compressed(size_t len, size_t piece, size_t *compressed_len)
{
    char *bytes = NULL;
    FILE *file = open_memstream(&bytes, compressed_len);
    assert_non_null(file);
    gp_gzip_t *gzip = gp_gzip_open(file);
    assert_non_null(gzip);
    for (size_t at = 0; at < len; at += piece)
        gp_gzip_write(gzip, input + at, len - at < piece ? len - at : piece);
    assert_int_equal(gp_gzip_close(gzip), 0);
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
    size_t alone_len, beside_len;
    use_threads(0, 0);
    char *alone = compressed(len, MOST, &alone_len);
    assert_read_back(alone, alone_len, len);
    for (unsigned threads = 1; threads <= GP_HELPERS_MAX; threads++) {
        use_threads(threads, threads);
        char *beside = compressed(len, 9973, &beside_len);
        assert_int_equal(started, len >= (size_t)2 * BLOCK ? threads : 0);
        assert_int_equal(alone_len, beside_len);
        assert_memory_equal(alone, beside, alone_len);
        free(beside);
    }
    free(alone);
}

// Texts with repeats near by and far away, and bytes without.
static void fill(uint64_t seed)
{
    for (size_t at = 0; at < MOST;) {
        size_t run = 1 + next_random(&seed) % 300, back = 1 + next_random(&seed) % 40000;
        bool repeats = back < at && next_random(&seed) % 8 < 6;
        for (; run > 0 && at < MOST; run--, at++)
            input[at] = repeats ? input[at - back] : (uint8_t)next_random(&seed);
    }
}

static void reads_back(void **state)
{
    static const size_t lens[] = {
        0,   1, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK, 9 * BLOCK + 7,
        MOST};
    (void)state;
    fill(1);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
        check(lens[i]);
}

// A block's output is larger than its input.
static void reads_back_noise(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (size_t at = 0; at < MOST; at++)
        input[at] = (uint8_t)next_random(&seed);
    check(MOST);
}

static void does_with_fewer_threads(void **state)
{
    size_t whole_len, len;
    (void)state;
    fill(3);
    use_threads(0, 0);
    char *whole = compressed(MOST, MOST, &whole_len);
    for (unsigned may = 0; may < GP_HELPERS_MAX; may++) {
        use_threads(GP_HELPERS_MAX, may);
        char *bytes = compressed(MOST, MOST, &len);
        assert_int_equal(started, may);
        assert_int_equal(len, whole_len);
        assert_memory_equal(bytes, whole, len);
        free(bytes);
    }
    free(whole);
}

static void full_disk_is_in_the_error_flag(void **state)
{
    (void)state;
    fill(4);
    use_threads(2, 2);
    FILE *file = fopen("/dev/full", "wb");
    assert_non_null(file);
    gp_gzip_t *gzip = gp_gzip_open(file);
    assert_non_null(gzip);
    gp_gzip_write(gzip, input, MOST);
    assert_int_equal(gp_gzip_close(gzip), 0);
    assert_true(ferror(file));
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back),
        cmocka_unit_test(reads_back_noise),
        cmocka_unit_test(does_with_fewer_threads),
        cmocka_unit_test(full_disk_is_in_the_error_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
