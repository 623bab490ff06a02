// SPDX-License-Identifier: MIT
// The reader's results; damage costs only the damaged.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/read/reader.h"
#include "capture_script.h"

typedef struct seen {
    unsigned metas, modules, threads, coros, traces, stacks, samples, ledgers, counters, ends;
    uint64_t weight_ns;
    gp_loc_t last_frame;
    char path[64];
} seen_t;

static int on_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    assert_true(key_len < 100 && value_len < 100000);
    (void)key;
    (void)value;
    ((seen_t *)context)->metas++;
    return 0;
}

static int on_module(void *context, const gp_module_record_t *record, const char *path, size_t path_len)
{
    seen_t *seen = context;
    seen->modules++;
    snprintf(seen->path, sizeof(seen->path), "%.*s", (int)path_len, path);
    return record->build_id_len > 20 ? -EINVAL : 0;
}

static int on_stack(void *context, const gp_stack_record_t *record, const gp_loc_t *frames)
{
    seen_t *seen = context;
    seen->stacks++;
    for (unsigned i = 0; i < record->depth; i++)
        seen->last_frame = frames[i];
    return 0;
}

static int on_sample(void *context, const gp_sample_record_t *record)
{
    seen_t *seen = context;
    seen->samples++;
    seen->weight_ns += record->weight_ns;
    return 0;
}

static int on_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < record->count; i++)
        sum += values[i];
    ((seen_t *)context)->counters++;
    return sum == UINT64_MAX ? -EINVAL : 0;
}

#define COUNT(name)                                                                                                    \
    static int on_##name(void *context, const gp_##name##_record_t *record)                                            \
    {                                                                                                                  \
        (void)record;                                                                                                  \
        ((seen_t *)context)->name##s++;                                                                                \
        return 0;                                                                                                      \
    }
COUNT(thread)
COUNT(coro)
COUNT(trace)
COUNT(ledger)
COUNT(end)

static const gp_reader_handlers_t handlers = {
    .meta = on_meta,
    .module = on_module,
    .thread = on_thread,
    .coro = on_coro,
    .trace = on_trace,
    .stack = on_stack,
    .sample = on_sample,
    .ledger = on_ledger,
    .counters = on_counters,
    .end = on_end,
};

static const char whole[] = "meta exe /bin/x\n"
                            "module 1 /bin/x 0102030405 0x1000 0x2000 0x1000\n"
                            "thread 1 10 1 0 main\n"
                            "coro 1 0 - 0x1000 0x1000 1 1 -\n"
                            "trace 1 4bf92f3577b34da6a3ce929d0e0e4736\n"
                            "stack 1 0 1:10 1:20 switching\n"
                            "stack 2 0 1:30\n"
                            "sample 1000 1000 1 1 1 1\n"
                            "sample 2000 1000 1 1 2 0\n"
                            "chunk\n"
                            "sample 3000 1000 1 1 1 1\n"
                            "ledger 1 1 3000 4 3000\n"
                            "counters 3000 3000 10 3 3 0 0 0 0 0 1 0 0 0 0 0\n"
                            "end 3000 0\n";

typedef struct outcome {
    int result;
    seen_t seen;
    gp_reader_summary_t summary;
    char error[GP_READER_ERROR_SIZE];
} outcome_t;

static outcome_t read_bytes(const uint8_t *bytes, size_t len)
{
    outcome_t outcome = {0};
    int fd = memfd_create("capture", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    lseek(fd, 0, SEEK_SET);
    outcome.result = gp_reader_read(fd, &handlers, &outcome.seen, &outcome.summary, outcome.error);
    close(fd);
    return outcome;
}

static outcome_t read_script(const char *script)
{
    size_t len;
    uint8_t *bytes = capture_from_script(script, &len);
    outcome_t outcome = read_bytes(bytes, len);
    free(bytes);
    return outcome;
}

static void test_whole(void **state)
{
    (void)state;
    outcome_t outcome = read_script(whole);
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.seen.metas, 1);
    assert_int_equal(outcome.seen.modules, 1);
    assert_string_equal(outcome.seen.path, "/bin/x");
    assert_int_equal(outcome.seen.threads, 1);
    assert_int_equal(outcome.seen.coros, 1);
    assert_int_equal(outcome.seen.traces, 1);
    assert_int_equal(outcome.seen.stacks, 2);
    assert_int_equal(outcome.seen.samples, 3);
    assert_int_equal(outcome.seen.weight_ns, 3000);
    assert_int_equal(outcome.seen.ledgers, 1);
    assert_int_equal(outcome.seen.counters, 1);
    assert_int_equal(outcome.seen.ends, 1);
    assert_int_equal(outcome.seen.last_frame, GP_LOC(1, 0x30));
    assert_true(outcome.summary.ended);
    assert_false(outcome.summary.truncated);
    assert_int_equal(outcome.summary.chunks_damaged + outcome.summary.chunks_missing + outcome.summary.chunks_unknown +
                         outcome.summary.records_bad + outcome.summary.bytes_skipped,
                     0);
}

static void test_damaged_chunk_costs_itself(void **state)
{
    (void)state;
    outcome_t outcome = read_script("stack 1 0 1:10\n"
                                    "bad\n"
                                    "sample 1000 1 1 1 1 0\nsample 2000 1 1 1 1 0\n"
                                    "chunk\n"
                                    "sample 3000 1 1 1 1 0\n");
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.seen.stacks, 1);
    assert_int_equal(outcome.seen.samples, 1);
    assert_int_equal(outcome.summary.chunks_damaged, 1);
    assert_int_equal(outcome.summary.chunks_missing, 1);
    assert_int_equal(outcome.summary.bytes_skipped, sizeof(gp_chunk_header_t) + 2 * 40);
    assert_false(outcome.summary.truncated);
}

static void test_bytes_between_chunks(void **state)
{
    (void)state;
    // A magic that starts nothing, with a length beyond the end of the file.
    outcome_t outcome = read_script("sample 1000 1 1 1 0 0\n"
                                    "raw 4750434b0700000000ffff00000000000000000000000000\n"
                                    "sample 2000 1 1 1 0 0\n");
    assert_int_equal(outcome.seen.samples, 2);
    assert_int_equal(outcome.summary.chunks_damaged, 1);
    assert_int_equal(outcome.summary.chunks_missing, 0);
    assert_int_equal(outcome.summary.bytes_skipped, 24);
}

static void test_unknown_and_missing(void **state)
{
    (void)state;
    outcome_t outcome = read_script("unknown 99 0102030405\nskip 3\nsample 1000 1 1 1 0 0\n");
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.summary.chunks_unknown, 1);
    assert_int_equal(outcome.summary.chunks_missing, 3);
    assert_int_equal(outcome.seen.samples, 1);
}

static void test_record_too_long(void **state)
{
    (void)state;
    // Right checksums, wrong sizes: a sample of 16 bytes; a module without its path; a stack
    // of 65535 frames.
    outcome_t outcome = read_script("unknown 7 00112233445566778899aabbccddeeff\n"
                                    "unknown 2 010000000000ffff000000000000000000000000000000000000000000000000000000"
                                    "000000000000000000000000000000000000000000\n"
                                    "unknown 6 01000000ffff0000\n"
                                    "sample 1000 1 1 1 0 0\n");
    assert_int_equal(outcome.summary.records_bad, 3);
    assert_int_equal(outcome.seen.samples, 1);
    assert_int_equal(outcome.seen.modules + outcome.seen.stacks, 0);
}

static void expect_refusal(const char *script, const char *what)
{
    outcome_t outcome = read_script(script);
    assert_int_equal(outcome.result, -EINVAL);
    assert_non_null(strstr(outcome.error, what));
    assert_int_equal(outcome.seen.samples, 0);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refusal("header version=99\nsample 1 1 1 1 0 0\n", "version 99");
    expect_refusal("header features=4\nsample 1 1 1 1 0 0\n", "0x4");
    expect_refusal("header header_bytes=64\nsample 1 1 1 1 0 0\n", "damaged");
    outcome_t optional = read_script("header features=0x400000000\nsample 1 1 1 1 0 0\n");
    assert_int_equal(optional.result, 0);
    assert_int_equal(optional.seen.samples, 1);

    assert_int_equal(read_bytes((const uint8_t *)"", 0).result, -EINVAL);
    assert_string_equal(read_bytes((const uint8_t *)"", 0).error, "is empty");
    const uint8_t text[] = "root:x:0:0:root:/root:/bin/bash\n";
    assert_string_equal(read_bytes(text, sizeof(text)).error, "is not a greenprof capture");
    assert_string_equal(read_bytes((const uint8_t *)GP_FILE_MAGIC, 8).error,
                        "is a capture cut off inside its file header");
}

// Cut off anywhere: all samples of whole chunks are there, and the reader says that
// something is missing.
static void test_truncated_everywhere(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = capture_from_script(whole, &len);
    unsigned before = 0;
    for (size_t cut = sizeof(gp_file_header_t); cut < len; cut++) {
        outcome_t outcome = read_bytes(bytes, cut);
        assert_int_equal(outcome.result, 0);
        assert_true(outcome.seen.samples >= before);
        before = outcome.seen.samples;
        // Between two chunks nothing shows but the missing end.
        assert_true(!outcome.summary.ended);
        assert_int_equal(outcome.summary.truncated, outcome.summary.bytes_skipped > 0);
        assert_int_equal(outcome.summary.chunks_damaged, 0);
    }
    assert_int_equal(before, 3);
    for (size_t cut = 0; cut < sizeof(gp_file_header_t); cut++)
        assert_int_equal(read_bytes(bytes, cut).result, -EINVAL);
    free(bytes);
}

// A flipped bit behind the file header loses at most the chunk around it.
static void test_every_bit_flipped(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = capture_from_script(whole, &len);
    uint64_t chunks = read_bytes(bytes, len).summary.chunks;
    for (size_t bit = sizeof(gp_file_header_t) * 8; bit < len * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        outcome_t outcome = read_bytes(bytes, len);
        assert_int_equal(outcome.result, 0);
        assert_true(outcome.summary.chunks + 1 >= chunks);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(bytes);
}

// Thousands of files with many flips, cuts and swapped pieces: no crash, and never more than there
// was.
static void test_random_damage(void **state)
{
    (void)state;
    size_t len;
    uint8_t *bytes = capture_from_script(whole, &len);
    uint8_t *copy = malloc(len);
    srand(20);
    for (int i = 0; i < 20000; i++) {
        memcpy(copy, bytes, len);
        for (int flips = rand() % 20; flips >= 0; flips--)
            copy[(size_t)rand() % len] ^= (uint8_t)(1 << rand() % 8);
        size_t cut = rand() % 4 == 0 ? (size_t)rand() % len : len;
        outcome_t outcome = read_bytes(copy, cut);
        assert_true(outcome.seen.samples <= 3);
        assert_true(outcome.result == 0 || outcome.result == -EINVAL);
    }
    free(copy);
    free(bytes);
}

// A file of nothing but chunk headers that claim 4 MiB each must not be checksummed from every one
// of them.
static void test_misleading_headers(void **state)
{
    (void)state;
    const gp_file_header_t header = {.magic = "GRNPROF", .version = GP_FILE_VERSION, .header_bytes = 128};
    const gp_chunk_header_t chunk = {.magic = GP_CHUNK_MAGIC, .type = 7, .payload_len = 4 << 20};
    size_t len = sizeof(header) + (6u << 20);
    uint8_t *bytes = calloc(1, len);
    memcpy(bytes, &header, sizeof(header));
    bytes[7] = '\n';
    for (size_t at = sizeof(header); at + sizeof(chunk) <= len; at += sizeof(chunk))
        memcpy(bytes + at, &chunk, sizeof(chunk));
    outcome_t outcome = read_bytes(bytes, len); // quadratic, this would be 400 GB: ctest's timeout
    assert_int_equal(outcome.result, 0);
    assert_int_equal(outcome.summary.chunks, 0);
    assert_int_equal(outcome.summary.bytes_skipped, len - sizeof(header));
    free(bytes);
}

static int refuse_second(void *context, const gp_sample_record_t *sample)
{
    (void)sample;
    return ++*(unsigned *)context == 2 ? -ECANCELED : 0;
}

static void test_handler_ends_reading(void **state)
{
    (void)state;
    const gp_reader_handlers_t only = {.sample = refuse_second};
    gp_reader_summary_t summary;
    char error[GP_READER_ERROR_SIZE];
    unsigned calls = 0;
    size_t len;
    uint8_t *bytes = capture_from_script(whole, &len);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0); // also: a pipe will do
    assert_int_equal(write(pipes[1], bytes, len), (ssize_t)len);
    close(pipes[1]);
    assert_int_equal(gp_reader_read(pipes[0], &only, &calls, &summary, error), -ECANCELED);
    assert_int_equal(calls, 2);
    close(pipes[0]);
    free(bytes);
}

static void test_unreadable(void **state)
{
    (void)state;
    gp_reader_summary_t summary;
    char error[GP_READER_ERROR_SIZE];
    assert_int_equal(gp_reader_read(-1, &handlers, NULL, &summary, error), -EBADF);
    assert_string_equal(error, strerror(EBADF));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_damaged_chunk_costs_itself),
        cmocka_unit_test(test_bytes_between_chunks),
        cmocka_unit_test(test_unknown_and_missing),
        cmocka_unit_test(test_record_too_long),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_truncated_everywhere),
        cmocka_unit_test(test_every_bit_flipped),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_misleading_headers),
        cmocka_unit_test(test_handler_ends_reading),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
