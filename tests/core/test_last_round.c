// SPDX-License-Identifier: MIT
// The end of a recording while a round is on its way: threads and coroutines that ended after the round's look are in
// the capture all the same. The order is forced: the round waits, with what it took, until the end is asked for.
#include <time.h>

#include "capture/write/writer.h"
#include "cmocka_all.h"
#include "collect/collector.h"
#include "collect/sink.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "greenprof/coro.h"
#include "record/recording.h"
#include "record/session.h"

static _Atomic bool is_on_its_way, is_asked, is_over;
static _Atomic int ledgers_after_end;
static prof_coro_t *first, *late;

static void wait_for(_Atomic bool *what)
{
    struct timespec pause = {.tv_nsec = 100000};
    while (!*what)
        nanosleep(&pause, NULL);
}

// The end waits for a round.
int __real_gp_collector_sync_within(uint64_t limit_ns);
int __wrap_gp_collector_sync_within(uint64_t limit_ns);
int __wrap_gp_collector_sync_within(uint64_t limit_ns)
{
    is_asked = true;
    return __real_gp_collector_sync_within(limit_ns);
}

void *__real_gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes);
void *__wrap_gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes);
void *__wrap_gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes)
{
    is_over = is_over || type == GP_CHUNK_END;
    ledgers_after_end += is_over && type == GP_CHUNK_LEDGER;
    return __real_gp_writer_add(writer, type, bytes);
}

static void coro_over(prof_coro_t *coro)
{
    if (coro != first)
        return;
    prof_coro_destroy(late);
    is_on_its_way = true;
    wait_for(&is_asked);
}

static void what_ends_during_a_round_is_in_the_capture(void **state)
{
    static const gp_sink_t sink = {.coro_over = coro_over};
    (void)state;
    gp_sink_add(&sink);
    first = prof_coro_create(NULL, 0, "first");
    late = prof_coro_create(NULL, 0, "late");
    uint64_t late_id = late->id;
    prof_coro_destroy(first);
    wait_for(&is_on_its_way);
    gp_session_ending();
    assert_true(is_over);
    __real_gp_collector_sync_within(UINT64_MAX / 2);
    assert_int_equal(gp_coro_written(late)->ledger_id, late_id);
    assert_int_equal(ledgers_after_end, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_during_a_round_is_in_the_capture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
