// SPDX-License-Identifier: MIT
// The collector hears of every record, though a thread once known to have news tells nothing more: whichever of the two
// sees the other, no record is left in a ring without a visit.
#include <pthread.h>
#include <sched.h>

#include "cmocka_all.h"
#include "collect/collector.h"
#include "collect/ready_threads.h"
#include "collect/sampler.h"
#include "coro/threads.h"

enum { RECORDS = 30000, BATCH = 3, BYTES = 64 };

typedef struct met {
    gp_thread_t *_Atomic thread;
    _Atomic uint64_t waits; // odd: the thread waits for its ring to be emptied
    _Atomic bool is_over;
} met_t;

static void *produce(void *argument)
{
    met_t *met = argument;
    gp_thread_t *thread = gp_thread_attach();
    atomic_store(&met->thread, thread);
    for (int i = 1; thread != NULL && i <= RECORDS; i++) {
        void *record = gp_ring_reserve(&thread->ring, BYTES);
        if (record != NULL)
            gp_thread_commit(thread, record, GP_RING_PAD);
        if (i % BATCH != 0)
            continue;
        atomic_fetch_add(&met->waits, 1);
        while (gp_ring_unread(&thread->ring) > 0 && !atomic_load(&met->is_over))
            sched_yield();
        atomic_fetch_add(&met->waits, 1);
    }
    atomic_store(&met->is_over, true);
    return NULL;
}

// As the collector does. Returns whether that is all.
static bool drain(gp_thread_t *thread)
{
    for (gp_ring_header_t *header; (header = gp_ring_peek(&thread->ring)) != NULL;)
        gp_ring_consume(&thread->ring, header);
    return !gp_ring_has_begun(&thread->ring);
}

static bool is_in(const gp_thread_set_t *set, const gp_thread_t *thread)
{
    uint32_t slot = thread->slot;
    return gp_thread_set_next(set, &slot) == thread;
}

// Returns false: the collector waits for a thread that has no reason to come.
static bool come_once(met_t *met, gp_thread_t *thread)
{
    uint64_t waits = atomic_load(&met->waits);
    gp_ready_threads_take();
    if (is_in(&gp_ready_threads, thread)) {
        if (drain(thread))
            gp_thread_set_remove(&gp_ready_threads, thread);
        return true;
    }
    return !(waits & 1) || !gp_ring_has_begun(&thread->ring) || atomic_load(&met->waits) != waits;
}

static void no_record_is_left_in_the_ring(void **state)
{
    (void)state;
    static met_t met;
    pthread_t producer;
    bool is_heard = true;
    assert_int_equal(pthread_create(&producer, NULL, produce, &met), 0);
    while (is_heard && !atomic_load(&met.is_over)) {
        gp_thread_t *thread = atomic_load(&met.thread);
        is_heard = thread == NULL || come_once(&met, thread);
    }
    atomic_store(&met.is_over, true);
    pthread_join(producer, NULL);
    assert_true(is_heard);
    assert_int_equal(atomic_load(&met.waits), 2 * (RECORDS / BATCH));
}

// The collector, once told, came while the record was being written: it comes again, without being told.
static void collector_comes_again_for_what_is_being_written(void **state)
{
    (void)state;
    assert_int_equal(gp_sampler_acquire(100), 0);
    gp_thread_t *thread = gp_thread_self;
    void *record = gp_ring_reserve(&thread->ring, BYTES);
    assert_non_null(record);
    gp_thread_notify(thread);
    gp_collector_sync();
    assert_true(gp_ring_unread(&thread->ring) >= BYTES);
    gp_ring_commit(record, GP_RING_PAD); // as where gp_thread_commit() looked before the collector took note
    gp_collector_sync();
    uint64_t left = gp_ring_unread(&thread->ring);
    gp_sampler_release(100);
    assert_int_equal(left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_record_is_left_in_the_ring),
        cmocka_unit_test(collector_comes_again_for_what_is_being_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
