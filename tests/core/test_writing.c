// SPDX-License-Identifier: MIT
// The thread that writes the capture: nothing is lost or out of order, and a stalled reader delays no thread.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "record/writing.h"

enum { START = 2 * sizeof(gp_file_header_t) + sizeof(gp_chunk_header_t), ROUNDS = 400, A_SECOND = 1000000000 };

static char directory[] = "writing-test-XXXXXX", path[64];
static gp_writer_t writer = GP_WRITER_INIT;

static void open_writer(void)
{
    gp_file_header_t header = {.version = GP_FILE_VERSION, .header_bytes = sizeof(header), .pid = 42};
    memcpy(header.magic, GP_FILE_MAGIC, sizeof(header.magic));
    gp_writer_open_later(&writer, path, &header);
}

static bool add(uint32_t index)
{
    gp_trace_record_t *record = gp_writer_add(&writer, GP_CHUNK_TRACES, sizeof(*record));
    if (record != NULL)
        record->index = index;
    return record != NULL;
}

// The chunks of a file are in sequence, and there are as many as were handed over.
static void check_file(unsigned chunks)
{
    gp_chunk_header_t header;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, START, SEEK_SET), 0);
    unsigned count = 0;
    for (; fread(&header, sizeof(header), 1, file) == 1; count++) {
        assert_int_equal(header.magic, GP_CHUNK_MAGIC);
        assert_int_equal(header.sequence, count + 1);
        assert_int_equal(fseek(file, (long)(header.payload_len + 7) & ~7L, SEEK_CUR), 0);
    }
    assert_int_equal(count, chunks);
    fclose(file);
}

static void writes_what_is_handed_over(void **state)
{
    (void)state;
    unsigned handed_over = 0;
    open_writer();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        for (uint32_t j = 0; j < 50; j++)
            assert_true(add(i * 50 + j));
        if (gp_writer_hand_over(&writer)) {
            gp_writing_begin(&writer);
            handed_over++;
        } else {
            assert_true(gp_writer_pending(&writer) > 0); // goes with the next
        }
    }
    assert_int_equal(gp_writing_wait(&writer, 60ull * A_SECOND), 0);
    if (gp_writer_pending(&writer) > 0 && gp_writer_hand_over(&writer)) {
        gp_writing_begin(&writer);
        handed_over++;
    }
    assert_int_equal(gp_writing_wait(&writer, 60ull * A_SECOND), 0);
    assert_int_equal(writer.error, 0);
    gp_writer_abandon(&writer);
    check_file(handed_over);
    unlink(path);
}

static void goes_on_while_a_reader_stalls(void **state)
{
    (void)state;
    char bytes[65536];
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0 && fcntl(reader, F_SETPIPE_SZ, 4096) >= 0);
    open_writer();
    unsigned long random = 1;
    for (int i = 0; i < 20000; i++) { // more than a pipe holds, and hard to compress
        gp_sample_record_t *sample = gp_writer_add(&writer, GP_CHUNK_SAMPLES, sizeof(*sample));
        sample->weight_ns = (random = random * 6364136223846793005ul + 1442695040888963407ul) >> 33;
    }
    assert_true(gp_writer_hand_over(&writer));
    gp_writing_begin(&writer);
    assert_int_equal(gp_writing_wait(&writer, A_SECOND / 20), -ETIMEDOUT);
    assert_false(gp_writer_hand_over(&writer));
    size_t added = 0;
    while (gp_writer_add(&writer, GP_CHUNK_SAMPLES, sizeof(gp_sample_record_t)) != NULL)
        added++;
    assert_in_range(added, GP_WRITER_SAMPLES_MAX / sizeof(gp_sample_record_t) - 1,
                    GP_WRITER_SAMPLES_MAX / sizeof(gp_sample_record_t));
    assert_true(add(1)); // definitions go on
    while (gp_writer_is_busy(&writer))
        if (read(reader, bytes, sizeof(bytes)) < 0)
            assert_int_equal(errno, EAGAIN);
    assert_true(gp_writer_hand_over(&writer));
    gp_writing_begin(&writer);
    while (gp_writer_is_busy(&writer))
        if (read(reader, bytes, sizeof(bytes)) < 0)
            assert_int_equal(errno, EAGAIN);
    assert_int_equal(writer.error, 0);
    gp_writer_abandon(&writer);
    close(reader);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_what_is_handed_over),
        cmocka_unit_test(goes_on_while_a_reader_stalls),
    };
    if (mkdtemp(directory) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/capture", directory);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(directory);
    return failed;
}
