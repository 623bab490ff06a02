// SPDX-License-Identifier: MIT
// The cost of idle threads: blocks are found and reused without a look at any other, clocks are read only of threads
// with coroutines, the collector comes to its callers, and the memory of rings is given back.
//
// Costs are counted, not measured: of blocks that nothing may look at, the memory is taken away meanwhile.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "capture/ring_file.h"
#include "cmocka_all.h"
#include "collect/collector.h"
#include "collect/ready_threads.h"
#include "collect/sampler.h"
#include "collect/scan_pace.h"
#include "collect/sleep_scan.h"
#include "coro/registry.h"
#include "coro/thread_rings.h"
#include "coro/threads.h"
#include "signal/handler.h"
#include "signal/ticks.h"
#include "wrapped_syscall.h"

enum {
    BLOCKS = 300,
    FIRST_TID = 1 << 25, // more than there can be
    WARM = 16,           // free blocks that keep their memory
};

static _Atomic int clocks_read;
static void (*_Atomic on_gettid)(void); // by the thread that attaches itself

static void before_syscall(long number, const long a[6])
{
    clocks_read += number == SYS_clock_gettime && (clockid_t)a[0] < 0; // of another thread
    if (number == SYS_gettid && on_gettid != NULL)
        on_gettid();
}

static gp_thread_t *blocks[BLOCKS];

static void protect_others(const gp_thread_t *but, int protection)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i] != but)
            assert_int_equal(mprotect(blocks[i], sizeof(*blocks[i]), protection), 0);
}

static int make_blocks(void **state)
{
    (void)state;
    for (int i = 0; i < BLOCKS; i++)
        if ((blocks[i] = gp_thread_prepare(FIRST_TID + i, NULL)) == NULL)
            return -1;
    return 0;
}

static int drop_blocks(void **state)
{
    (void)state;
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i]->state != GP_THREAD_LIVE)
            continue;
        blocks[i]->state = GP_THREAD_EXITED;
        gp_coro_retire(blocks[i]->root);
        gp_thread_recycle(blocks[i]);
    }
    return 0;
}

static void blocks_are_found_by_themselves(void **state)
{
    (void)state;
    for (int i = 0; i < BLOCKS; i += 50) {
        protect_others(blocks[i], PROT_NONE);
        gp_thread_t *found = gp_thread_find(FIRST_TID + i), *none = gp_thread_find(FIRST_TID + BLOCKS + i);
        protect_others(NULL, PROT_READ | PROT_WRITE);
        assert_ptr_equal(found, blocks[i]);
        assert_null(none);
    }
}

static void ended_blocks_are_taken_first(void **state)
{
    (void)state;
    gp_thread_t *ended = blocks[BLOCKS / 2];
    ended->state = GP_THREAD_EXITED;
    gp_coro_retire(ended->root);
    gp_thread_recycle(ended);
    protect_others(ended, PROT_NONE);
    gp_thread_t *taken = gp_thread_prepare(FIRST_TID + BLOCKS, NULL), *again = gp_thread_find(FIRST_TID + BLOCKS);
    gp_thread_t *before = gp_thread_find(FIRST_TID + BLOCKS / 2);
    protect_others(NULL, PROT_READ | PROT_WRITE);
    assert_ptr_equal(taken, ended);
    assert_ptr_equal(again, ended);
    assert_null(before);
}

static void chains_keep_all_their_blocks(void **state)
{
    (void)state;
    pid_t tids[] = {FIRST_TID + (1 << 20), FIRST_TID + (2 << 20), FIRST_TID + (3 << 20)}; // in one bucket
    gp_thread_t *three[3];
    for (int i = 0; i < 3; i++)
        assert_non_null(three[i] = gp_thread_prepare(tids[i], NULL));
    for (int i = 0; i < 3; i++)
        assert_ptr_equal(gp_thread_find(tids[i]), three[i]);
    pthread_mutex_lock(&gp_registry_lock);
    gp_thread_set_tid(three[1], FIRST_TID + (4 << 20) + 1);
    pthread_mutex_unlock(&gp_registry_lock);
    assert_ptr_equal(gp_thread_find(tids[0]), three[0]);
    assert_null(gp_thread_find(tids[1]));
    assert_ptr_equal(gp_thread_find(tids[2]), three[2]);
    assert_ptr_equal(gp_thread_find(FIRST_TID + (4 << 20) + 1), three[1]);
    for (int i = 0; i < 3; i++) {
        gp_coro_retire(three[i]->root);
        gp_thread_recycle(three[i]);
    }
}

static void forget_news(void)
{
    uint32_t slot = 0;
    gp_ready_threads_take();
    for (gp_thread_t *thread; (thread = gp_thread_set_next(&gp_ready_threads, &slot)) != NULL;) {
        gp_thread_set_remove(&gp_ready_threads, thread);
        gp_thread_set_remove(&gp_ready_threads_lookers, thread);
    }
}

// `set` has `one` and nothing else.
static bool is_alone(const gp_thread_set_t *set, const gp_thread_t *one)
{
    uint32_t slot = 0;
    return gp_thread_set_next(set, &slot) == one && gp_thread_set_next(set, &slot) == NULL;
}

static void the_collector_comes_to_threads_with_news(void **state)
{
    (void)state;
    gp_thread_t *told = blocks[BLOCKS / 3];
    bool as_told[4];
    forget_news();
    gp_thread_notify(told);
    gp_thread_notify(told);
    protect_others(told, PROT_NONE);
    gp_ready_threads_take();
    as_told[0] = is_alone(&gp_ready_threads, told) && is_alone(&gp_ready_threads_lookers, told);
    gp_thread_set_remove(&gp_ready_threads_lookers, told);
    gp_ready_threads_take();
    as_told[1] = is_alone(&gp_ready_threads, told) && is_alone(&gp_ready_threads_lookers, NULL);
    gp_thread_notify(told); // before its ring was emptied: it is to be looked at again
    gp_ready_threads_take();
    as_told[2] = is_alone(&gp_ready_threads, told) && is_alone(&gp_ready_threads_lookers, told);
    gp_thread_set_remove(&gp_ready_threads, told);
    gp_thread_set_remove(&gp_ready_threads_lookers, told);
    gp_ready_threads_take();
    as_told[3] = is_alone(&gp_ready_threads, NULL) && is_alone(&gp_ready_threads_lookers, NULL);
    protect_others(NULL, PROT_READ | PROT_WRITE);
    for (int i = 0; i < 4; i++)
        assert_true(as_told[i]);
}

static void clocks_are_read_of_threads_with_coroutines(void **state)
{
    (void)state;
    gp_thread_t *thread = blocks[0];
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
    prof_coro_t *coro = gp_coro_new(&birth);
    bool found = false;
    thread->root->since = gp_ticks() - gp_ticks_from_ns(1000000000);
    clocks_read = 0;
    assert_false(gp_sleep_scan_look(thread, &found));
    assert_int_equal(clocks_read, 0);
    thread->current = coro;
    thread->current_id = coro->id;
    assert_true(gp_sleep_scan_look(thread, &found));
    assert_true(clocks_read > 0);
    thread->current = thread->root;
    thread->current_id = thread->root_id;
    gp_coro_retire(coro);
}

// Looked at `ago` ms ago, when its coroutine had been asleep for `asleep` ms: is its clock read?
static bool is_asked(gp_thread_t *thread, prof_coro_t *coro, uint64_t asleep, uint64_t ago)
{
    bool found = false;
    uint64_t ms = gp_ticks_from_ns(1000000), look = gp_ticks() - ago * ms;
    thread->look.slice = coro->since;
    thread->look.ticks = look;
    thread->look.asleep = look - asleep * ms;
    clocks_read = 0;
    assert_true(gp_sleep_scan_look(thread, &found));
    return clocks_read > 0;
}

static void what_sleeps_on_is_left_alone(void **state)
{
    (void)state;
    gp_thread_t *thread = blocks[0];
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
    prof_coro_t *coro = gp_coro_new(&birth);
    bool found = false;
    thread->current = coro;
    thread->current_id = coro->id;
    assert_false(is_asked(thread, coro, 3200000, 500)); // a second at most
    assert_true(is_asked(thread, coro, 3200000, 1500));
    assert_false(is_asked(thread, coro, 32000, 250)); // 1/64
    assert_true(is_asked(thread, coro, 32000, 750));
    assert_false(is_asked(thread, coro, 3200000, 500));
    coro->since++; // another slice
    assert_true(gp_sleep_scan_look(thread, &found));
    assert_true(clocks_read > 0);
    thread->current = thread->root;
    thread->current_id = thread->root_id;
    gp_coro_retire(coro);
}

static int kicks;

static void count_kick(void)
{
    kicks++;
}

static void a_thread_that_leaves_its_rest_wakes_the_collector(void **state)
{
    (void)state;
    gp_thread_t *thread = blocks[BLOCKS / 3];
    void (*kick)(void) = gp_handler_kick;
    forget_news();
    gp_handler_kick = count_kick;
    kicks = 0;
    gp_thread_notify_at_once(thread); // it does not rest
    assert_int_equal(kicks, 0);
    assert_false(gp_ready_threads_doze(false)); // as there is a thread to be looked at
    gp_thread_set_remove(&gp_ready_threads_lookers, thread);
    assert_true(gp_ready_threads_doze(false));
    gp_thread_notify(thread); // of a sample: that can wait
    assert_int_equal(kicks, 0);
    gp_thread_notify_at_once(thread); // of which it told before
    assert_int_equal(kicks, 1);
    gp_thread_notify_at_once(thread);
    assert_int_equal(kicks, 1);
    assert_false(gp_ready_threads_doze(true));
    gp_thread_set_remove(&gp_ready_threads_lookers, thread);
    assert_true(gp_ready_threads_doze(true));
    gp_thread_notify(thread); // its next round is far
    assert_int_equal(kicks, 2);
    gp_thread_notify(thread);
    gp_thread_notify_at_once(thread);
    assert_int_equal(kicks, 2);
    gp_handler_kick = kick;
    forget_news();
}

// Are so many intervals between half and one and a half of `mean_ns`, and that on average? The same ones each time.
static void assert_pace(gp_scan_pace_t *pace, uint64_t least_ns, uint64_t mean_ns)
{
    enum { COUNT = 10000 };
    uint64_t sum = 0;
    for (int i = 0; i < COUNT; i++) {
        uint64_t next = gp_scan_pace_next_ns(pace, least_ns);
        assert_in_range(next, mean_ns / 2, mean_ns + mean_ns / 2);
        sum += next;
    }
    assert_in_range(sum / COUNT, mean_ns * 98 / 100, mean_ns * 102 / 100);
}

static void looks_are_seldom_where_none_sleeps(void **state)
{
    (void)state;
    gp_scan_pace_t pace = {0};
    uint64_t half_s = 500000000;
    assert_pace(&pace, 0, GP_LOOK_NS);
    gp_scan_pace_note(&pace, half_s, false);
    assert_pace(&pace, 0, GP_LOOK_NS);
    gp_scan_pace_note(&pace, half_s, false);
    assert_pace(&pace, 0, 2 * GP_LOOK_NS);
    gp_scan_pace_note(&pace, 20 * half_s, false);
    assert_pace(&pace, 0, GP_LOOK_SELDOM_NS);
    assert_pace(&pace, 10 * GP_LOOK_NS, 10 * GP_LOOK_NS);
    gp_scan_pace_note(&pace, GP_LOOK_SELDOM_NS, true);
    assert_pace(&pace, 0, GP_LOOK_NS);
    gp_scan_pace_note(&pace, 20 * half_s, false);
    gp_scan_pace_hasten(&pace);
    for (int i = 0; i < GP_LOOK_QUICK_LOOKS; i++) {
        assert_pace(&pace, 0, GP_LOOK_NS);
        gp_scan_pace_note(&pace, GP_LOOK_NS, false);
    }
    assert_pace(&pace, 0, GP_LOOK_SELDOM_NS);
    gp_scan_pace_reset(&pace);
    assert_pace(&pace, 0, GP_LOOK_NS);
}

static size_t resident_pages(const gp_ring_t *ring)
{
    unsigned char pages[GP_RING_BYTES / 4096];
    size_t count = 0;
    assert_int_equal(mincore(ring->data, ring->capacity, pages), 0);
    for (size_t i = 0; i < sizeof(pages); i++)
        count += pages[i] & 1;
    return count;
}

static void use_ring(gp_thread_t *thread)
{
    enum { BYTES = 4096, RECORDS = GP_RING_BYTES / BYTES };
    for (int i = 0; i < RECORDS; i++) {
        void *record = gp_ring_reserve(&thread->ring, BYTES);
        assert_non_null(record);
        gp_ring_commit(record, GP_RING_PAD);
        gp_ring_consume(&thread->ring, gp_ring_peek(&thread->ring));
    }
    assert_int_equal(resident_pages(&thread->ring), RECORDS);
}

static void rings_are_given_back_after_a_peak(void **state)
{
    (void)state;
    size_t kept = 0;
    for (int i = 0; i < BLOCKS; i++)
        use_ring(blocks[i]);
    drop_blocks(NULL);
    for (int i = 0; i < BLOCKS; i++)
        kept += resident_pages(&blocks[i]->ring) != 0;
    assert_true(kept <= WARM);
}

// However much of it comes: what the collector has read makes room for what is next.
static void ring_of_a_thread_that_goes_on_stays_small(void **state)
{
    (void)state;
    enum { BYTES = 1024, LAPS = 4, PAGES = 8 };
    assert_int_equal(gp_sampler_acquire(100), 0);
    gp_ring_t *ring = &gp_thread_self->ring;
    for (int i = 0; i < LAPS * GP_RING_BYTES / BYTES; i++) {
        void *record = gp_ring_reserve(ring, BYTES);
        assert_non_null(record);
        gp_thread_commit(gp_thread_self, record, GP_RING_PAD);
        gp_collector_sync();
    }
    size_t pages = resident_pages(ring);
    gp_sampler_release(100);
    assert_in_range(pages, 1, PAGES);
}

static void take_all(gp_thread_t *thread)
{
    for (gp_ring_header_t *header; (header = gp_ring_peek(&thread->ring)) != NULL;)
        gp_ring_consume(&thread->ring, header);
}

static unsigned in_file(const unsigned char *slots)
{
    unsigned count = 0;
    for (int i = 0; i < BLOCKS; i++) {
        const gp_ring_t *ring = &blocks[i]->ring;
        unsigned char *at = (unsigned char *)gp_ring_at(ring, atomic_load(&ring->head));
        count += at >= slots && at < slots + (size_t)GP_RING_FILE_SLOTS * GP_RING_SLOT_BYTES;
    }
    return count;
}

// How many are to be; two of them.
static unsigned find_first_slots(gp_thread_t **one, gp_thread_t **another)
{
    unsigned count = 0;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i]->slot < GP_RING_FILE_SLOTS)
            *(count++ == 0 ? one : another) = blocks[i];
    return count;
}

static void put_record(gp_thread_t *thread)
{
    void *record = gp_ring_reserve(&thread->ring, 64);
    assert_non_null(record);
    gp_ring_commit(record, GP_RING_SAMPLE);
}

// Rings of the first blocks, wherever they are in their memory; a record amid its writing is waited for.
static void rings_come_to_a_file_and_back(void **state)
{
    (void)state;
    size_t bytes = (size_t)GP_RING_FILE_SLOTS * GP_RING_SLOT_BYTES;
    gp_thread_t *held, *used;
    unsigned count = find_first_slots(&held, &used);
    assert_in_range(count, 2, GP_RING_FILE_SLOTS);
    for (int round = 0; round < 3; round++) {
        unsigned char *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(slots, MAP_FAILED);
        for (int i = 0; i < BLOCKS; i++)
            for (int j = 0; j < i + round; j++)
                put_record(blocks[i]);
        void *begun = gp_ring_reserve(&held->ring, 64);
        gp_thread_keep_rings(slots, GP_RING_FILE_SLOTS);
        assert_false(gp_thread_turn_rings(take_all));
        assert_int_equal(in_file(slots), count - 1);
        gp_ring_commit(begun, GP_RING_SAMPLE);
        assert_true(gp_thread_turn_rings(take_all));
        assert_int_equal(in_file(slots), count);
        put_record(used);
        take_all(used);
        assert_int_equal(gp_ring_fill(&used->ring), 64); // kept
        assert_int_equal(gp_ring_owner(&used->ring)->index[0], used->index);
        assert_int_equal(resident_pages(&used->ring), 0);
        gp_thread_keep_rings(NULL, 0);
        assert_true(gp_thread_turn_rings(take_all));
        assert_int_equal(in_file(slots), 0);
        assert_int_equal(gp_ring_fill(&used->ring), 0);
        munmap(slots, bytes);
    }
}

static pid_t attaching;
static int asked; // for its number, by the thread that attaches itself

static void *prepare(void *unused)
{
    assert_non_null(gp_thread_prepare(attaching, NULL));
    return unused;
}

// The first time is before the thread looks for its block, the second one after it.
static void be_prepared_meanwhile(void)
{
    pthread_t other;
    if (++asked < 2)
        return;
    on_gettid = NULL;
    assert_int_equal(gp_thread_create_unseen(&other, NULL, prepare, NULL, false), 0);
    pthread_join(other, NULL);
}

static void *attach(void *argument)
{
    uintptr_t lo, hi, *own = argument;
    gp_thread_own_stack(&lo, &hi);
    attaching = gettid();
    on_gettid = be_prepared_meanwhile;
    gp_thread_t *thread = gp_thread_attach();
    own[0] = thread->root->lo - lo;
    own[1] = hi - thread->root->hi;
    return NULL;
}

static void a_stack_is_known_where_the_sampler_is_first(void **state)
{
    pthread_t thread;
    uintptr_t own[2] = {1, 1};
    (void)state;
    assert_int_equal(gp_thread_create_unseen(&thread, NULL, attach, own, false), 0);
    pthread_join(thread, NULL);
    assert_null(on_gettid);
    assert_int_equal(own[0], 0);
    assert_int_equal(own[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(blocks_are_found_by_themselves, make_blocks, drop_blocks),
        cmocka_unit_test_setup_teardown(ended_blocks_are_taken_first, make_blocks, drop_blocks),
        cmocka_unit_test_setup_teardown(chains_keep_all_their_blocks, make_blocks, drop_blocks),
        cmocka_unit_test_setup_teardown(the_collector_comes_to_threads_with_news, make_blocks, drop_blocks),
        cmocka_unit_test_setup_teardown(a_thread_that_leaves_its_rest_wakes_the_collector, make_blocks, drop_blocks),
        cmocka_unit_test(looks_are_seldom_where_none_sleeps),
        cmocka_unit_test_setup_teardown(clocks_are_read_of_threads_with_coroutines, make_blocks, drop_blocks),
        cmocka_unit_test_setup_teardown(what_sleeps_on_is_left_alone, make_blocks, drop_blocks),
        cmocka_unit_test_setup_teardown(rings_are_given_back_after_a_peak, make_blocks, drop_blocks),
        cmocka_unit_test_setup_teardown(rings_come_to_a_file_and_back, make_blocks, drop_blocks),
        cmocka_unit_test(ring_of_a_thread_that_goes_on_stays_small),
        cmocka_unit_test(a_stack_is_known_where_the_sampler_is_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
