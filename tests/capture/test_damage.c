// SPDX-License-Identifier: MIT
// 10,000 captures damaged at random: no crash, no hang, and no intact chunk is lost.
//
// A capture is made by the library's own writer, and taken apart here by a walk of its own; a damaged copy is read, and
// must yield the records of exactly those chunks that are undamaged.
// Usage: test_damage [ROUNDS [SEED]]
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
#include "capture/write/writer.h"
#include "report/report_options.h"

enum {
    FLUSHES = 12,
    CHUNKS_MAX = 200,
    COROS = 40,
    STACKS = 60,
    DAMAGES_MAX = 4,
    DATASET_EVERY = 20, // rounds of which one also goes through the dataset and a report
};

typedef struct chunk {
    size_t at, len; // header and payload in the file, without padding
    uint16_t type;
    unsigned samples; // in it
    uint64_t weight_ns;
} chunk_t;

typedef struct capture {
    uint8_t *bytes;
    size_t len;
    chunk_t chunks[CHUNKS_MAX];
    unsigned count;
} capture_t;

typedef struct seen {
    uint64_t samples, weight_ns;
} seen_t;

static capture_t whole;
static unsigned rounds = 10000;
static uint64_t state = 20260801;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static size_t below(size_t limit)
{
    return (size_t)(random_bits() >> 16) % limit;
}

static void add_stack(gp_writer_t *writer, uint32_t id)
{
    uint16_t depth = (uint16_t)(1 + below(30));
    gp_stack_record_t *stack = gp_writer_add(writer, GP_CHUNK_STACKS, sizeof(*stack) + depth * sizeof(gp_loc_t));
    assert_non_null(stack);
    stack->id = id;
    stack->depth = depth;
    for (uint16_t i = 0; i < depth; i++)
        ((gp_loc_t *)(stack + 1))[i] = GP_LOC(1 + below(3), 0x1000 + 16 * below(200));
}

static void add_definitions(gp_writer_t *writer, uint32_t flush)
{
    for (uint32_t i = 0; i < STACKS / FLUSHES; i++)
        add_stack(writer, flush * (STACKS / FLUSHES) + i + 1);
    for (uint64_t i = 0; i < COROS; i++) {
        gp_coro_record_t *coro = gp_writer_add(writer, GP_CHUNK_COROS, sizeof(*coro));
        coro->id = flush * COROS + i + 1;
        coro->kind = GP_CORO_ANNOUNCED;
        gp_ledger_record_t *ledger = gp_writer_add(writer, GP_CHUNK_LEDGER, sizeof(*ledger));
        ledger->coro_id = coro->id;
        ledger->cpu_ns = 1000000;
        ledger->trace = flush + 1;
    }
    gp_trace_record_t *trace = gp_writer_add(writer, GP_CHUNK_TRACES, sizeof(*trace));
    trace->index = flush + 1;
    memset(trace->id, (int)flush + 1, sizeof(trace->id));
}

// Returns how many samples were added, and their weight.
static unsigned add_samples(gp_writer_t *writer, uint32_t flush, uint64_t *weight_ns)
{
    unsigned count = (unsigned)(1 + below(600));
    *weight_ns = 0;
    for (unsigned i = 0; i < count; i++) {
        gp_sample_record_t *sample = gp_writer_add(writer, GP_CHUNK_SAMPLES, sizeof(*sample));
        sample->time_ns = flush * 200000000u + i * 300000u + below(1000);
        sample->weight_ns = 900000 + below(200000);
        sample->coro_id = 1 + below((flush + 1) * COROS);
        sample->thread = 1 + (uint32_t)below(4);
        sample->stack_id = 1 + (uint32_t)below((flush + 1) * (STACKS / FLUSHES));
        sample->trace = 1 + (uint32_t)below(flush + 1);
        *weight_ns += sample->weight_ns;
    }
    return count;
}

// The chunks of an undamaged file, one after the other.
static void take_apart(const unsigned *samples, const uint64_t *weights)
{
    unsigned sample_chunks = 0;
    for (size_t at = sizeof(gp_file_header_t); at < whole.len;) {
        gp_chunk_header_t header;
        memcpy(&header, whole.bytes + at, sizeof(header));
        assert_true(header.magic == GP_CHUNK_MAGIC && whole.count < CHUNKS_MAX);
        chunk_t *chunk = &whole.chunks[whole.count++];
        *chunk = (chunk_t){.at = at, .len = sizeof(header) + header.payload_len, .type = header.type};
        if (header.type == GP_CHUNK_SAMPLES) {
            assert_int_equal(header.flags, GP_CHUNK_PACKED | GP_CHUNK_ZSTD);
            chunk->samples = samples[sample_chunks];
            chunk->weight_ns = weights[sample_chunks++];
        }
        at += (chunk->len + 7) & ~(size_t)7;
    }
    assert_int_equal(sample_chunks, FLUSHES);
}

static void make_capture(void)
{
    char path[] = "damage-XXXXXX";
    unsigned samples[FLUSHES];
    uint64_t weights[FLUSHES];
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = {.version = GP_FILE_VERSION, .header_bytes = sizeof(header)};
    memcpy(header.magic, GP_FILE_MAGIC, sizeof(header.magic));
    close(mkstemp(path));
    assert_int_equal(gp_writer_open(&writer, path, &header), 0);
    for (uint32_t flush = 0; flush < FLUSHES; flush++) {
        add_definitions(&writer, flush);
        samples[flush] = add_samples(&writer, flush, &weights[flush]);
        assert_int_equal(gp_writer_flush(&writer), 0);
    }
    gp_writer_close(&writer);

    FILE *file = fopen(path, "rb");
    whole.bytes = malloc(1 << 20);
    whole.len = fread(whole.bytes, 1, 1 << 20, file);
    assert_in_range(whole.len, 1000, (1 << 20) - 1);
    fclose(file);
    unlink(path);
    take_apart(samples, weights);
}

// Damage a file in a random way. Returns the length that is left.
static size_t damage(uint8_t *bytes, size_t len)
{
    size_t at = below(len), stretch = 1 + below(len - at < 5000 ? len - at : 5000);
    switch (below(6)) {
    case 0: // power off, or killed
        return at;
    case 1:
        bytes[at] ^= (uint8_t)(1u << below(8));
        break;
    case 2:
        for (int i = 0; i < 8; i++)
            bytes[below(len)] ^= (uint8_t)(1u << below(8));
        break;
    case 3: // blocks that were allocated but never written
        memset(bytes + at, 0, stretch);
        break;
    case 4:
        for (size_t i = 0; i < stretch; i++)
            bytes[at + i] = (uint8_t)random_bits();
        break;
    case 5: // a piece of the file in another place of it
        memmove(bytes + at, bytes + below(len - stretch + 1), stretch);
        break;
    }
    return len;
}

static bool is_intact(const chunk_t *chunk, const uint8_t *bytes, size_t len)
{
    return chunk->at + chunk->len <= len && memcmp(bytes + chunk->at, whole.bytes + chunk->at, chunk->len) == 0;
}

static int on_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    seen_t *seen = context;
    seen->samples += count;
    for (size_t i = 0; i < count; i++)
        seen->weight_ns += samples[i].weight_ns;
    return 0;
}

static int file_of(const uint8_t *bytes, size_t len)
{
    int fd = memfd_create("damaged", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

// Lost chunks do not take along records that refer to them: the report has every sample read.
static void check_report(int fd, unsigned wants, const seen_t *expected)
{
    char error[GP_READER_ERROR_SIZE];
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    gp_dataset_t *dataset = gp_dataset_load_fd(fd, GP_KEEP_PLAIN, error);
    assert_non_null(dataset);
    assert_int_equal(dataset->samples, expected->samples);
    assert_int_equal(dataset->sampled_ns, expected->weight_ns);
    gp_symbolizer_t *symbolizer = gp_symbolizer_create();
    const gp_report_options_t options = {.by = GP_BY_NONE, .wants = wants};
    gp_report_t *report = gp_report_from_capture(dataset, &options, symbolizer);
    assert_non_null(report);
    assert_int_equal(report->samples, expected->samples);
    gp_report_free(report);
    gp_symbolizer_destroy(symbolizer);
    gp_dataset_free(dataset);
}

static void check(const uint8_t *bytes, size_t len, bool with_report)
{
    const gp_reader_handlers_t handlers = {.samples = on_samples};
    gp_reader_summary_t summary;
    char error[GP_READER_ERROR_SIZE];
    seen_t expected = {0}, seen = {0};
    unsigned chunks = 0;
    for (unsigned i = 0; i < whole.count; i++) {
        if (!is_intact(&whole.chunks[i], bytes, len))
            continue;
        chunks++;
        expected.samples += whole.chunks[i].samples;
        expected.weight_ns += whole.chunks[i].weight_ns;
    }
    int fd = file_of(bytes, len);
    int result = gp_reader_read(fd, &handlers, &seen, &summary, error);
    bool has_header = len >= sizeof(gp_file_header_t) && memcmp(bytes, whole.bytes, sizeof(gp_file_header_t)) == 0;
    if (!has_header && !is_intact(&whole.chunks[0], bytes, len)) {
        // Without the header and its copy it is no capture; but damage to what the checksum does not cover may pass.
        assert_true(result == 0 || error[0] != '\0');
    } else {
        assert_int_equal(result, 0);
        assert_true(summary.chunks >= chunks); // a piece that was copied elsewhere may hold a whole chunk
        assert_true(seen.samples >= expected.samples && seen.weight_ns >= expected.weight_ns);
        if (summary.chunks == chunks) {
            assert_int_equal(seen.samples, expected.samples);
            assert_int_equal(seen.weight_ns, expected.weight_ns);
        }
        if (chunks < whole.count && len == whole.len) // something is missing, and it says so
            assert_true(summary.chunks_damaged > 0 || summary.chunks_missing > 0 || summary.truncated);
        if (with_report)
            check_report(fd, 0, &seen);
        if (with_report)
            check_report(fd, GP_WANT_LABELS, &seen);
    }
    close(fd);
}

static void keeps_every_intact_chunk(void **unused)
{
    (void)unused;
    uint8_t *bytes = malloc(whole.len);
    check(whole.bytes, whole.len, true);
    for (unsigned round = 0; round < rounds; round++) {
        size_t len = whole.len;
        memcpy(bytes, whole.bytes, len);
        for (size_t i = 1 + below(DAMAGES_MAX); i > 0 && len > 0; i--)
            len = damage(bytes, len);
        if (len > 0)
            check(bytes, len, round % DATASET_EVERY == 0);
    }
    free(bytes);
}

// Every length that a file can be cut to.
static void survives_every_truncation(void **unused)
{
    (void)unused;
    size_t step = rounds < 10000 ? 97 : 7;
    for (size_t len = 1; len < whole.len; len += 1 + below(step))
        check(whole.bytes, len, false);
}

typedef struct fields {
    uint64_t samples, words, others;
} fields_t;

static int add_fields(void *context, const gp_sample_record_t *samples, size_t count)
{
    fields_t *fields = context;
    for (size_t i = 0; i < count; i++) {
        const gp_sample_record_t *sample = &samples[i];
        uint64_t number = ++fields->samples;
        fields->words += number * (sample->weight_ns + 3 * sample->coro_id + 5 * sample->stack_id + 7 * sample->kind);
        fields->others += number * (sample->time_ns + 3 * sample->thread + 5 * sample->trace);
    }
    return 0;
}

static fields_t read_fields(uint64_t words)
{
    const gp_reader_handlers_t handlers = {.samples = add_fields, .sample_words = words};
    gp_reader_summary_t summary;
    char error[GP_READER_ERROR_SIZE];
    fields_t fields = {0};
    int fd = file_of(whole.bytes, whole.len);
    assert_int_equal(gp_reader_read(fd, &handlers, &fields, &summary, error), 0);
    close(fd);
    return fields;
}

// Fields that a handler asks for are the same as when it asks for all; others are not unpacked.
static void unpacks_what_is_looked_at(void **unused)
{
    (void)unused;
    fields_t all = read_fields(0), some = read_fields(GP_SAMPLE_WORDS(weight_ns) | GP_SAMPLE_WORDS(coro_id) |
                                                      GP_SAMPLE_WORDS(stack_id) | GP_SAMPLE_WORDS(kind));
    fields_t rest = read_fields(GP_SAMPLE_WORDS(time_ns) | GP_SAMPLE_WORDS(thread) | GP_SAMPLE_WORDS(trace));
    assert_true(all.samples > FLUSHES && some.samples == all.samples && rest.samples == all.samples);
    assert_true(some.words == all.words && rest.others == all.others);
    assert_true(some.others != all.others && rest.words != all.words);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_every_intact_chunk),
        cmocka_unit_test(survives_every_truncation),
        cmocka_unit_test(unpacks_what_is_looked_at),
    };
    if (argc > 1)
        rounds = (unsigned)atoi(argv[1]);
    if (argc > 2)
        state = strtoull(argv[2], NULL, 10);
    make_capture();
    printf("%u chunks, %zu bytes, %u rounds\n", whole.count, whole.len, rounds);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(whole.bytes);
    return failed;
}
