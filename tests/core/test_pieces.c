// SPDX-License-Identifier: MIT
// Scans of all coroutines hold the drain lock a piece at a time: a thread that stops a profile, or forks, waits for a
// thousand coroutines, not for all. And records of them are whole, however many there are.
//
// Counted are the coroutines between one giving back of the lock and the next.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/write/writer.h"
#include "cmocka_all.h"
#include "collect/collector.h"
#include "collect/waiting_stack.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "greenprof/coro.h"
#include "process/process.h"
#include "record/census_view.h"
#include "record/session.h"

enum { COROUTINES = 100000 }; // census records of as many are more than the writer holds at a time

static _Atomic long in_hold, most_in_hold, looked_at, refused, written[GP_CHUNK_TYPES];

static void look(void)
{
    long now = ++in_hold, most = most_in_hold;
    looked_at++;
    while (now > most &&
           !__atomic_compare_exchange_n((long *)&most_in_hold, &most, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    if (lock == &gp_drain_lock)
        in_hold = 0;
    return __real_pthread_mutex_unlock(lock);
}

// Called for each coroutine in a census.
void __real_gp_waiting_stack_trace(prof_coro_t *coro, uint64_t trace[2]);
void __wrap_gp_waiting_stack_trace(prof_coro_t *coro, uint64_t trace[2]);
void __wrap_gp_waiting_stack_trace(prof_coro_t *coro, uint64_t trace[2])
{
    look();
    __real_gp_waiting_stack_trace(coro, trace);
}

// Called for each coroutine when the ledger is written for the last time.
void __real_gp_ledger_read(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger);
void __wrap_gp_ledger_read(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger);
void __wrap_gp_ledger_read(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger)
{
    look();
    __real_gp_ledger_read(coro, now, ledger);
}

// Called for each coroutine when its wait is looked at.
void __real_gp_waiting_stack_take(prof_coro_t *coro, uint64_t least_ticks);
void __wrap_gp_waiting_stack_take(prof_coro_t *coro, uint64_t least_ticks);
void __wrap_gp_waiting_stack_take(prof_coro_t *coro, uint64_t least_ticks)
{
    look();
    __real_gp_waiting_stack_take(coro, least_ticks);
}

void *__real_gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes);
void *__wrap_gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes);
void *__wrap_gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes)
{
    void *record = __real_gp_writer_add(writer, type, bytes);
    refused += record == NULL;
    written[type] += record != NULL;
    return record;
}

static char directory[] = "/tmp/greenprof.pieces.XXXXXX", path[64];

static void begin(void)
{
    in_hold = most_in_hold = looked_at = refused = 0;
    memset((void *)written, 0, sizeof(written));
}

static void views_are_taken_in_pieces(void **state)
{
    (void)state;
    size_t count = 0;
    begin();
    gp_coro_view_t *views = gp_census_views(&count);
    assert_non_null(views);
    prof_core_interface()->language->views_free(views, count);
    assert_true(count >= COROUTINES);
    assert_true(looked_at >= COROUTINES);
    assert_true(most_in_hold <= GP_CORO_PIECE);
}

static void dumps_are_taken_in_pieces_and_are_whole(void **state)
{
    (void)state;
    begin();
    assert_int_equal(prof_coro_dump(path), 0);
    assert_true(most_in_hold <= GP_CORO_PIECE);
    assert_int_equal(refused, 0);
    assert_true(written[GP_CHUNK_CENSUS] >= COROUTINES);
    assert_true(written[GP_CHUNK_COROS] >= COROUTINES);
}

// The capture that the environment asks for. Its last report looks at all coroutines four times.
static void captures_are_written_in_pieces(void **state)
{
    (void)state;
    begin();
    gp_session_ending();
    assert_true(looked_at >= COROUTINES);
    assert_true(most_in_hold <= 4 * GP_CORO_PIECE); // one may be looked at more than once
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/census", directory);
    for (int i = 0; i < COROUTINES; i++)
        if (prof_coro_create(NULL, 0, "waiting") == NULL)
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_are_taken_in_pieces),
        cmocka_unit_test(dumps_are_taken_in_pieces_and_are_whole),
    };
    const struct CMUnitTest of_captures[] = {
        cmocka_unit_test(captures_are_written_in_pieces),
    };
    if (getenv("GREENPROF_OUTPUT") != NULL) // two writers would be counted as one
        return cmocka_run_group_tests(of_captures, set_up, tear_down);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
