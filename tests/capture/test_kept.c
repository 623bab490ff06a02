// SPDX-License-Identifier: MIT
// A capture that is read twice: what the first reading keeps of the samples is what the second one would find. And
// threads that decompress ahead make no difference to what is read, also of a damaged capture.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/helpers.h"
#include "capture/several/captures.h"
#include "capture/write/writer.h"
#include "capture_script.h"

#define WORDS (GP_SAMPLE_WORDS(weight_ns) | GP_SAMPLE_WORDS(coro_id) | GP_SAMPLE_WORDS(stack_id))

enum { SAMPLES = 400000, A_FLUSH = 4000, MEBIBYTE = 1 << 20 };

typedef struct seen {
    uint64_t samples, sum; // of what is looked at, in its order
    uint64_t times;
} seen_t;

static int see(void *context, const gp_sample_record_t *samples, size_t count)
{
    seen_t *seen = context;
    for (size_t i = 0; i < count; i++) {
        const uint64_t values[] = {samples[i].weight_ns, samples[i].coro_id, samples[i].stack_id};
        for (size_t j = 0; j < 3; j++)
            seen->sum = (seen->sum ^ values[j]) * 0x100000001b3;
        seen->times += samples[i].time_ns;
    }
    seen->samples += count;
    return 0;
}

static const gp_reader_handlers_t all = {.samples = see}, some = {.samples = see, .sample_words = WORDS};

static uint64_t random_bits(void)
{
    static uint64_t state = 20261126;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static int write_capture(const char *path)
{
    static gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = {
        .magic = GP_FILE_MAGIC, .version = GP_FILE_VERSION, .header_bytes = sizeof(header), .elf_machine = 62};
    assert_int_equal(gp_writer_open(&writer, path, &header), 0);
    for (uint32_t i = 1; i <= SAMPLES; i++) {
        gp_sample_record_t *sample = gp_writer_add(&writer, GP_CHUNK_SAMPLES, sizeof(*sample));
        assert_non_null(sample);
        *sample = (gp_sample_record_t){.time_ns = i * 1000000ull + random_bits() % 1000,
                                       .weight_ns = random_bits() % 3000000,
                                       .coro_id = random_bits() % 70000,
                                       .thread = 1 + (uint32_t)(random_bits() % 4),
                                       .stack_id = (uint32_t)(random_bits() % 300),
                                       .trace = (uint32_t)(random_bits() % 5)};
        if (i % A_FLUSH == 0)
            assert_int_equal(gp_writer_flush(&writer), 0);
    }
    gp_writer_close(&writer);
    return open(path, O_RDWR | O_CLOEXEC);
}

static gp_captures_t captures_of(int fd, uint64_t words, size_t bytes)
{
    gp_captures_t captures = {0};
    assert_int_equal(gp_captures_add(&captures, fd, "capture"), 0);
    captures.keep_words = words;
    captures.keep_bytes = bytes;
    return captures;
}

static seen_t read_first(gp_captures_t *captures)
{
    char error[GP_READER_ERROR_SIZE];
    seen_t seen = {0};
    assert_int_equal(gp_captures_read(captures, &(gp_taker_t){&all, &seen, NULL}, error), 0);
    captures->inputs[0].samples = seen.samples;
    return seen;
}

static seen_t read_again(gp_captures_t *captures, const gp_reader_handlers_t *handlers)
{
    char error[GP_READER_ERROR_SIZE];
    seen_t seen = {0};
    assert_int_equal(gp_captures_read_again(captures, &(gp_taker_t){handlers, &seen, NULL}, error), 0);
    return seen;
}

static int capture_fd;

static int setup(void **state)
{
    char path[] = "test_kept.greenprof";
    (void)state;
    capture_fd = write_capture(path);
    unlink(path);
    return capture_fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    return close(capture_fd);
}

static int rewound(void)
{
    assert_int_equal(lseek(capture_fd, 0, SEEK_SET), 0);
    return capture_fd;
}

// Records with room come from memory, the rest from the file, in the order of the file.
static void same_from_memory(void **state)
{
    static const size_t rooms[] = {0, MEBIBYTE, 2 * MEBIBYTE, 64 * MEBIBYTE};
    (void)state;
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        gp_captures_t captures = captures_of(rewound(), WORDS, rooms[i]);
        seen_t first = read_first(&captures);
        assert_int_equal(first.samples, SAMPLES);
        uint64_t to = captures.inputs[0].kept.to;
        assert_int_equal(to == UINT64_MAX, rooms[i] == 64 * MEBIBYTE);
        assert_int_equal(captures.inputs[0].kept.first == NULL, rooms[i] == 0);
        seen_t second = read_again(&captures, &some);
        assert_int_equal(second.samples, SAMPLES);
        assert_true(second.sum == first.sum);
        seen_t third = read_again(&captures, &some); // nothing is kept any more
        assert_int_equal(third.samples, SAMPLES);
        assert_true(third.sum == first.sum);
        gp_captures_free(&captures);
    }
}

// Where all was kept, the file is not needed.
static void without_the_file(void **state)
{
    (void)state;
    int copy = memfd_create("capture", MFD_CLOEXEC);
    uint8_t *bytes = malloc(64 * MEBIBYTE);
    ssize_t len = pread(capture_fd, bytes, 64 * MEBIBYTE, 0);
    assert_true(len > 0 && write(copy, bytes, (size_t)len) == len && lseek(copy, 0, SEEK_SET) == 0);
    free(bytes);
    gp_captures_t captures = captures_of(copy, WORDS, 64 * MEBIBYTE);
    seen_t first = read_first(&captures);
    assert_int_equal(ftruncate(copy, 0), 0);
    seen_t second = read_again(&captures, &some);
    assert_int_equal(second.samples, SAMPLES);
    assert_true(second.sum == first.sum);
    gp_captures_free(&captures);
    close(copy);
}

// A reader of more words than were kept gets them from the file.
static void other_words(void **state)
{
    (void)state;
    gp_captures_t captures = captures_of(rewound(), WORDS, 64 * MEBIBYTE);
    seen_t first = read_first(&captures), second = read_again(&captures, &all);
    assert_true(second.sum == first.sum);
    assert_true(second.times == first.times);
    assert_null(captures.inputs[0].kept.first);
    gp_captures_free(&captures);
}

// Records as they are, not packed, are not kept: they are read again.
static void plain_records(void **state)
{
    static const char script[] =
        "sample 1000 1100 1 1 1 1\nsample 2000 1200 1 1 2 0\nchunk\nsample 3000 1300 2 1 1 1\n";
    size_t len;
    (void)state;
    uint8_t *bytes = capture_from_script(script, &len);
    int fd = memfd_create("capture", MFD_CLOEXEC);
    assert_true(write(fd, bytes, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0);
    free(bytes);
    gp_captures_t captures = captures_of(fd, WORDS, 64 * MEBIBYTE);
    seen_t first = read_first(&captures), second = read_again(&captures, &some);
    assert_int_equal(first.samples, 3);
    assert_int_equal(second.samples, 3);
    assert_true(second.sum == first.sum);
    gp_captures_free(&captures);
    close(fd);
}

static unsigned started;

static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    started++;
    return pthread_create(thread, NULL, run, argument);
}

static int no_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    (void)thread;
    (void)run;
    (void)argument;
    return EAGAIN;
}

typedef struct reading { // all that comes of one
    seen_t seen;
    uint64_t chunks;
    uint64_t stop_at; // chunk at which the handler fails
    gp_reader_summary_t summary;
    int result;
    uint64_t kept_to;
} reading_t;

static int see_in(void *context, const gp_sample_record_t *samples, size_t count)
{
    return see(&((reading_t *)context)->seen, samples, count);
}

static int see_chunk(void *context, const gp_chunk_header_t *chunk)
{
    reading_t *reading = context;
    reading->seen.sum = (reading->seen.sum ^ chunk->sequence) * 0x100000001b3;
    return ++reading->chunks == reading->stop_at ? -ENOTRECOVERABLE : 0;
}

static reading_t read_with(unsigned threads, gp_helper_start_t *start, int fd, uint64_t stop_at)
{
    gp_reader_kept_t kept = {0};
    gp_reader_handlers_t handlers = {.samples = see_in, .chunk = see_chunk, .kept = &kept};
    char error[GP_READER_ERROR_SIZE];
    reading_t reading = {.stop_at = stop_at};
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    gp_helpers_use(threads, start);
    gp_reader_kept_begin(&kept, WORDS, 2 * MEBIBYTE);
    reading.result = gp_reader_read(fd, &handlers, &reading, &reading.summary, error);
    reading.kept_to = kept.to;
    gp_reader_kept_free(&kept);
    gp_helpers_use(0, NULL);
    return reading;
}

static void assert_same_with_threads(int fd)
{
    reading_t alone = read_with(0, NULL, fd, 0);
    for (unsigned threads = 1; threads <= GP_HELPERS_MAX; threads++) {
        started = 0;
        reading_t beside = read_with(threads, start_thread, fd, 0);
        assert_int_equal(started, alone.summary.bytes > 2 * MEBIBYTE ? threads : started);
        assert_memory_equal(&alone, &beside, sizeof(alone));
    }
    reading_t without = read_with(1, no_thread, fd, 0);
    assert_memory_equal(&alone, &without, sizeof(alone));
}

static int copy_of_capture(off_t *len)
{
    int copy = memfd_create("capture", MFD_CLOEXEC);
    *len = lseek(capture_fd, 0, SEEK_END);
    assert_int_equal(rewound(), capture_fd);
    uint8_t *bytes = malloc((size_t)*len);
    assert_true(pread(capture_fd, bytes, (size_t)*len, 0) == *len && write(copy, bytes, (size_t)*len) == *len);
    free(bytes);
    return copy;
}

// Change a byte of the payload of a chunk, and its checksum accordingly.
static void spoil_chunk(int fd, unsigned number)
{
    static uint8_t payload[MEBIBYTE];
    gp_chunk_header_t chunk;
    off_t at = sizeof(gp_file_header_t);
    for (unsigned i = 0;; i++) {
        assert_int_equal(pread(fd, &chunk, sizeof(chunk), at), sizeof(chunk));
        if (i == number)
            break;
        at += (off_t)(sizeof(chunk) + ((chunk.payload_len + 7) & ~7u));
    }
    assert_true(chunk.payload_len > 0 && chunk.payload_len <= sizeof(payload));
    assert_int_equal(pread(fd, payload, chunk.payload_len, at + (off_t)sizeof(chunk)), chunk.payload_len);
    payload[random_bits() % chunk.payload_len] ^= (uint8_t)(1 + random_bits() % 255);
    chunk.checksum = XXH64(payload, chunk.payload_len, GP_CHUNK_SEED(chunk.type, chunk.flags, chunk.sequence));
    assert_int_equal(pwrite(fd, &chunk, sizeof(chunk), at), sizeof(chunk));
    assert_int_equal(pwrite(fd, payload, chunk.payload_len, at + (off_t)sizeof(chunk)), chunk.payload_len);
}

// The checksum is right, what it is of is not.
static void same_with_threads_where_made_to_mislead(void **state)
{
    off_t len;
    int copy = copy_of_capture(&len);
    (void)state;
    for (unsigned chunk = 40; chunk < 90; chunk += 5)
        spoil_chunk(copy, chunk);
    assert_same_with_threads(copy);
    assert_true(read_with(0, NULL, copy, 0).summary.records_bad > 0);
    close(copy);
}

static void same_with_threads(void **state)
{
    (void)state;
    assert_same_with_threads(capture_fd);
    reading_t alone = read_with(0, NULL, capture_fd, 0);
    assert_int_equal(alone.result, 0);
    assert_int_equal(alone.seen.samples, SAMPLES);
    assert_true(alone.summary.bytes > 2 * MEBIBYTE);
}

// Bytes that are wrong, and an end too early.
static void same_with_threads_where_damaged(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 12; round++) {
        off_t len;
        int copy = copy_of_capture(&len);
        for (uint64_t i = 0; i < 1 + round; i++) {
            uint64_t noise = random_bits();
            assert_int_equal(pwrite(copy, &noise, 1 + noise % 7, 128 + (off_t)(random_bits() % (uint64_t)(len - 256))),
                             1 + noise % 7);
        }
        if (round % 3 == 0)
            assert_int_equal(ftruncate(copy, len - (off_t)(random_bits() % (uint64_t)(len / 2))), 0);
        assert_same_with_threads(copy);
        close(copy);
    }
}

// A handler's error ends it at the same chunk; what was decompressed ahead is dropped.
static void same_error_with_threads(void **state)
{
    static const uint64_t chunks[] = {1, 30, 60, 90, 99};
    (void)state;
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        reading_t alone = read_with(0, NULL, capture_fd, chunks[i]);
        reading_t beside = read_with(2, start_thread, capture_fd, chunks[i]);
        assert_int_equal(alone.result, -ENOTRECOVERABLE);
        assert_int_equal(beside.result, -ENOTRECOVERABLE);
        assert_int_equal(alone.chunks, chunks[i]);
        assert_int_equal(beside.chunks, chunks[i]);
        assert_memory_equal(&alone.seen, &beside.seen, sizeof(alone.seen));
        assert_int_equal(alone.kept_to, beside.kept_to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_from_memory),
        cmocka_unit_test(without_the_file),
        cmocka_unit_test(other_words),
        cmocka_unit_test(plain_records),
        cmocka_unit_test(same_with_threads),
        cmocka_unit_test(same_with_threads_where_damaged),
        cmocka_unit_test(same_with_threads_where_made_to_mislead),
        cmocka_unit_test(same_error_with_threads),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
