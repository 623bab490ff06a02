// SPDX-License-Identifier: MIT
// The capture writer: whole chunks, a full disk at every possible write, a descriptor closed by the host, a folder that
// is gone.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/write/write_parts.h"
#include "capture/write/writer.h"
#include "cmocka_all.h"
#include "model/counters.h"

static long bytes_until_full = -1; // of a file; -1: never

static bool memory_is_short;

ssize_t __real_writev(int fd, const struct iovec *parts, int count);
ssize_t __wrap_writev(int fd, const struct iovec *parts, int count);
void *__real_realloc(void *block, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);

ssize_t __wrap_writev(int fd, const struct iovec *parts, int count)
{
    struct iovec fit[8];
    struct stat status;
    if (bytes_until_full < 0)
        return __real_writev(fd, parts, count);
    assert_int_equal(fstat(fd, &status), 0);
    long left = bytes_until_full - (long)status.st_size;
    if (left <= 0) {
        errno = ENOSPC;
        return -1;
    }
    for (int i = 0; i < count; i++) {
        fit[i] = parts[i];
        if ((long)fit[i].iov_len > left)
            fit[i].iov_len = (size_t)left;
        left -= (long)fit[i].iov_len;
    }
    return __real_writev(fd, fit, count);
}

void *__wrap_realloc(void *block, size_t bytes)
{
    return memory_is_short ? NULL : __real_realloc(block, bytes);
}

static char path[] = "writer-test-XXXXXX.greenprof";

static gp_file_header_t make_header(uint8_t session)
{
    gp_file_header_t header = {.version = GP_FILE_VERSION, .header_bytes = sizeof(header), .pid = 42};
    memcpy(header.magic, GP_FILE_MAGIC, 8);
    memset(header.session, session, sizeof(header.session));
    return header;
}

// The file header, and the chunk that holds it once more.
enum { START = 2 * sizeof(gp_file_header_t) + sizeof(gp_chunk_header_t) };

static unsigned last_type; // of the chunks that were counted last; 0 = there were none

// Count the other whole chunks of the file; fails on anything else in it.
static unsigned count_chunks(void)
{
    last_type = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, START, SEEK_SET), 0);
    unsigned count = 0;
    gp_chunk_header_t header;
    while (fread(&header, 1, sizeof(header), file) == sizeof(header)) {
        assert_int_equal(header.magic, GP_CHUNK_MAGIC);
        assert_int_equal(header.sequence, count + 1);
        assert_int_equal(fseek(file, (long)header.payload_len, SEEK_CUR), 0);
        last_type = header.type;
        count++;
    }
    struct stat status;
    assert_int_equal(fstat(fileno(file), &status), 0);
    assert_int_equal(ftell(file), status.st_size); // nothing behind the last whole chunk
    fclose(file);
    return count;
}

static void add(gp_writer_t *writer, uint64_t value)
{
    gp_trace_record_t *record = gp_writer_add(writer, GP_CHUNK_TRACES, sizeof(*record));
    if (record != NULL)
        record->index = (uint32_t)value;
}

static void writes_whole_chunks(void **state)
{
    (void)state;
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = make_header(0);
    assert_int_equal(gp_writer_open(&writer, path, &header), 0);
    for (uint64_t i = 0; i < 5; i++) {
        add(&writer, i);
        assert_int_equal(gp_writer_flush(&writer), 0);
    }
    gp_writer_close(&writer);
    assert_int_equal(count_chunks(), 5);
}

static void full_disk_leaves_whole_chunks(void **state)
{
    (void)state;
    const long chunk = sizeof(gp_chunk_header_t) + sizeof(gp_trace_record_t);
    for (long room = 0; room <= (long)START + 3 * chunk; room++) {
        gp_writer_t writer = GP_WRITER_INIT;
        gp_file_header_t header = make_header(0);
        bytes_until_full = room;
        int error = gp_writer_open(&writer, path, &header);
        if (room < (long)START) {
            assert_int_equal(error, -ENOSPC);
            assert_int_not_equal(access(path, F_OK), 0); // nothing is left behind
        } else {
            // An end behind the last chunk, or in the place of it.
            const long end = sizeof(gp_chunk_header_t) + sizeof(gp_end_record_t);
            long fit = (room - (long)START) / chunk, behind = (room - (long)START) % chunk >= end;
            for (uint64_t i = 0; i < 4; i++) {
                add(&writer, i);
                gp_writer_flush(&writer);
            }
            assert_int_equal(writer.error, -ENOSPC);
            assert_null(gp_writer_add(&writer, GP_CHUNK_TRACES, 8));
            bytes_until_full = -1;
            gp_writer_close(&writer);
            assert_int_equal(count_chunks(), fit + behind);
            assert_int_equal(last_type, fit + behind > 0 ? GP_CHUNK_END : 0);
        }
        bytes_until_full = -1;
    }
}

// Records so far get written, and so do the counters and the end, which need memory of their own.
static void tells_its_end_where_memory_is_short(void **state)
{
    (void)state;
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = make_header(0);
    assert_int_equal(gp_writer_open(&writer, path, &header), 0);
    assert_non_null(gp_writer_add(&writer, GP_CHUNK_SAMPLES, sizeof(gp_sample_record_t)));
    memory_is_short = true;
    assert_null(gp_writer_add(&writer, GP_CHUNK_TRACES, sizeof(gp_trace_record_t)));
    assert_non_null(gp_writer_add(&writer, GP_CHUNK_COUNTERS, sizeof(gp_counters_record_t) + 8 * GP_COUNTER_COUNT));
    assert_int_equal(gp_writer_flush(&writer), 0);
    assert_int_equal(count_chunks(), 2);
    assert_non_null(gp_writer_add(&writer, GP_CHUNK_COUNTERS, sizeof(gp_counters_record_t) + 8 * GP_COUNTER_COUNT));
    assert_non_null(gp_writer_add(&writer, GP_CHUNK_END, sizeof(gp_end_record_t)));
    gp_writer_close(&writer);
    memory_is_short = false;
    assert_int_equal(count_chunks(), 4);
}

// Nor does a pipe without a reader: one error each, and no signal that is pending afterwards.
static void a_limit_on_files_raises_no_signal(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        gp_writer_t writer = GP_WRITER_INIT;
        gp_file_header_t header = make_header(0);
        signal(SIGXFSZ, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, 100});
        int too_large = gp_writer_open(&writer, path, &header), ends[2];
        if (pipe(ends) != 0)
            _exit(3);
        close(ends[0]);
        struct iovec part = {&header, sizeof(header)};
        int broken = gp_write_parts(ends[1], &part, 1);
        _exit(too_large == -EFBIG && broken == -EPIPE ? 0 : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void survives_a_closed_descriptor(void **state)
{
    (void)state;
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = make_header(0);
    assert_int_equal(gp_writer_open(&writer, path, &header), 0);
    add(&writer, 1);
    assert_int_equal(gp_writer_flush(&writer), 0);
    close(writer.fd);
    int theirs = open("/dev/null", O_WRONLY); // may or may not get the number
    add(&writer, 2);
    assert_int_equal(gp_writer_flush(&writer), 0);
    gp_writer_close(&writer);
    close(theirs);
    assert_int_equal(count_chunks(), 2);
}

static void keeps_the_image_before_an_exec(void **state)
{
    (void)state;
    char aside[64];
    snprintf(aside, sizeof(aside), "%s.1", path);
    unlink(aside);
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t mine = make_header(1), other = make_header(2);
    assert_int_equal(gp_writer_open(&writer, path, &mine), 0);
    gp_writer_close(&writer);
    assert_int_equal(gp_writer_open(&writer, path, &other), 0); // another run's: replaced
    gp_writer_close(&writer);
    assert_int_not_equal(access(aside, F_OK), 0);
    assert_int_equal(gp_writer_open(&writer, path, &other), 0); // the same process of the same run: kept
    gp_writer_close(&writer);
    assert_int_equal(access(aside, F_OK), 0);
    unlink(aside);
}

static void refuses_what_cannot_be(void **state)
{
    (void)state;
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = make_header(1);
    assert_int_equal(gp_writer_open(&writer, "/nonexistent/x.greenprof", &header), -ENOENT);
    assert_int_equal(gp_writer_open(&writer, "/", &header), -EISDIR);
    char *longest = calloc(1, 8192);
    memset(longest, 'a', 8000);
    assert_int_equal(gp_writer_open(&writer, longest, &header), -ENAMETOOLONG);
    free(longest);
}

// Not even when nothing can be written to it: it is not ours.
static void leaves_a_device_where_it_is(void **state)
{
    (void)state;
    const char *pipe = "writer-test-pipe";
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = make_header(0);
    bytes_until_full = 0;
    int error = gp_writer_open(&writer, pipe, &header);
    bytes_until_full = -1;
    close(reader);
    assert_int_equal(error, -ENOSPC);
    assert_int_equal(unlink(pipe), 0);
}

// After a stall of the disk.
static void gives_large_buffers_back(void **state)
{
    (void)state;
    enum { SMALL = 2 << 20 };
    gp_writer_t writer = GP_WRITER_INIT;
    gp_file_header_t header = make_header(0);
    assert_int_equal(gp_writer_open(&writer, path, &header), 0);
    while (gp_writer_add(&writer, GP_CHUNK_TRACES, sizeof(gp_trace_record_t)) != NULL)
        ;
    assert_true(gp_writer_pending(&writer) > SMALL);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(gp_writer_flush(&writer), 0);
        add(&writer, i);
    }
    assert_int_equal(gp_writer_flush(&writer), 0);
    const gp_buffer_t *all[] = {&writer.buffers[GP_CHUNK_TRACES], &writer.outgoing[GP_CHUNK_TRACES], &writer.packed,
                                &writer.chunk};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_in_range(all[i]->room, 0, SMALL);
    gp_writer_close(&writer);
}

static gp_end_record_t last_record(void)
{
    gp_end_record_t record;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, -(long)sizeof(record), SEEK_END), 0);
    assert_int_equal(fread(&record, sizeof(record), 1, file), 1);
    fclose(file);
    return record;
}

// Whatever the bound: as many chunks as fit, and a record that says why there are no more.
static void is_never_larger_than_it_may_be(void **state)
{
    (void)state;
    const uint64_t chunk = sizeof(gp_chunk_header_t) + sizeof(gp_trace_record_t),
                   last = sizeof(gp_chunk_header_t) + sizeof(gp_end_record_t);
    for (uint64_t room = 0; room <= 3 * chunk; room++) {
        gp_writer_t writer = GP_WRITER_INIT;
        gp_file_header_t header = make_header(0);
        writer.max_bytes = START + last + room;
        assert_int_equal(gp_writer_open(&writer, path, &header), 0);
        for (uint64_t i = 0; i < 4; i++) {
            add(&writer, i);
            gp_writer_flush(&writer);
        }
        assert_int_equal(writer.error, -EFBIG);
        gp_writer_close(&writer);
        struct stat status;
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, START + room / chunk * chunk + last);
        assert_int_equal(count_chunks(), room / chunk + 1);
        assert_int_equal(last_record().reason, GP_END_FULL);
    }
}

// The folder goes before the file is begun. Returns what became of it.
static int write_without_folder(bool makes_directory, char folder[32], char file[48])
{
    static gp_writer_t writer;
    gp_file_header_t header = make_header(1);
    strcpy(folder, "writer-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, 48, "%s/a.greenprof", folder);
    writer = (gp_writer_t)GP_WRITER_INIT;
    writer.makes_directory = makes_directory;
    gp_writer_open_later(&writer, file, &header);
    assert_int_equal(rmdir(folder), 0);
    assert_non_null(gp_writer_add(&writer, GP_CHUNK_END, sizeof(gp_end_record_t)));
    int error = gp_writer_flush(&writer);
    gp_writer_close(&writer);
    return error;
}

static void makes_its_folder_again(void **unused)
{
    (void)unused;
    char folder[32], file[48];
    struct stat status;
    assert_int_equal(write_without_folder(true, folder, file), 0);
    assert_int_equal(stat(folder, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_int_equal(stat(file, &status), 0);
    assert_true(status.st_size > START);
    unlink(file);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(write_without_folder(false, folder, file), -ENOENT);
    assert_int_equal(access(folder, F_OK), -1);
}

int main(void)
{
    close(mkstemps(path, 10));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_whole_chunks),
        cmocka_unit_test(full_disk_leaves_whole_chunks),
        cmocka_unit_test(tells_its_end_where_memory_is_short),
        cmocka_unit_test(a_limit_on_files_raises_no_signal),
        cmocka_unit_test(survives_a_closed_descriptor),
        cmocka_unit_test(keeps_the_image_before_an_exec),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(leaves_a_device_where_it_is),
        cmocka_unit_test(is_never_larger_than_it_may_be),
        cmocka_unit_test(gives_large_buffers_back),
        cmocka_unit_test(makes_its_folder_again),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
