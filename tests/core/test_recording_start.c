// SPDX-License-Identifier: MIT
// The start of a recording is one moment on all of its clocks, however long it takes: times in the file are right.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/write/writer.h"
#include "cmocka_all.h"
#include "record/recording.h"
#include "record/session.h"
#include "record/session_file.h"
#include "signal/ticks.h"
#include "wrapped_syscall.h"

enum { SLOW_NS = 100000000, NEAR_NS = 5000000 };

static void dawdle(void)
{
    struct timespec pause = {.tv_nsec = SLOW_NS};
    nanosleep(&pause, NULL);
}

static gp_recording_t *recording; // the session's

// The file takes long to open.
int __real_gp_writer_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header);
int __wrap_gp_writer_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header);
int __wrap_gp_writer_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header)
{
    int error = __real_gp_writer_open(writer, path, header);
    recording = (gp_recording_t *)(void *)((char *)writer - offsetof(gp_recording_t, writer));
    dawdle();
    return error;
}

// Between the clocks, once: so it does as this program is loaded, which begins the first recording.
static int dawdles = 1;
static void before_syscall(long number, const long a[6])
{
    if (number == SYS_clock_gettime && a[0] == CLOCK_REALTIME && dawdles > 0) {
        dawdles--;
        dawdle();
    }
}

// The file's present moment, less the clock's, ns.
static int64_t error_of(clockid_t clock, uint64_t start_ns)
{
    uint64_t before = gp_clock_ns(clock), told = start_ns + gp_recording_since(recording, gp_ticks());
    uint64_t after = gp_clock_ns(clock);
    return told < before ? (int64_t)(told - before) : told > after ? (int64_t)(told - after) : 0;
}

static void check(const gp_file_header_t *header)
{
    assert_in_range(error_of(CLOCK_MONOTONIC, header->start_monotonic_ns) + NEAR_NS, 0, 2 * NEAR_NS);
    assert_in_range(error_of(CLOCK_REALTIME, header->start_realtime_ns) + NEAR_NS, 0, 2 * NEAR_NS);
}

static void a_recording_begins_at_one_moment(void **state)
{
    (void)state;
    assert_int_equal(dawdles, 0);
    check(&recording->writer.header);
    assert_int_equal(gp_session_finish(UINT64_MAX / 2), 0);
}

static void so_does_one_that_is_asked_for(void **state)
{
    const gp_session_wish_t wish = {.clock = -1, .is_asked = true};
    (void)state;
    dawdles = 1;
    assert_int_equal(gp_session_begin(&wish), 0);
    assert_int_equal(dawdles, 0);
    check(&recording->writer.header);
    assert_int_equal(gp_session_finish(UINT64_MAX / 2), 0);
}

// And a part that begins with an open request.
static void so_does_a_part(void **state)
{
    (void)state;
    dawdles = 1;
    gp_recording_turn(recording, 1000, gp_ticks() - gp_ticks_from_ns(SLOW_NS));
    check(&recording->header);
    assert_true(gp_recording_since(recording, gp_ticks()) >= SLOW_NS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_begins_at_one_moment),
        cmocka_unit_test(so_does_one_that_is_asked_for),
        cmocka_unit_test(so_does_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
