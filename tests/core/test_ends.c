// SPDX-License-Identifier: MIT
// The account of a coroutine before its first slice and after its last one, on a clock that the test turns.
#include "cmocka_all.h"
#include "coro/announce.h"
#include "coro/coro_ledger.h"
#include "coro/coro_name.h"
#include "coro/registry.h"
#include "coro/switch.h"
#include "coro/threads.h"
#include "signal/handler.h"
#include "signal/ledger_edges.h"
#include "signal/region.h"
#include "signal/slice.h"
#include "signal/wait_samples.h"

enum { STACK_LO = 0x20000000, STACK_BYTES = 65536 };

static gp_thread_t *thread;
static prof_coro_t *coro;
static uint64_t now; // ticks, which are nanoseconds here

static void nothing(void)
{
}

static prof_coro_t *make(void)
{
    gp_coro_birth_t birth = {.lo = STACK_LO, .hi = STACK_LO + STACK_BYTES, .kind = GP_CORO_ANNOUNCED};
    return gp_coro_new(&birth);
}

static int setup(void **state)
{
    (void)state;
    thread = gp_thread_attach();
    gp_ticks_scale.mult = 1ull << 32;
    gp_handler_kick = nothing;
    gp_handler_sampling = true;
    gp_ledger_edge_left_returns = false;
    gp_coro_set_draining(NULL); // records that are retired stay as they were
    gp_wait_samples_set_frequency(1000);
    gp_slice_new_epoch();
    gp_wait_samples_begin(thread);
    coro = make();
    now = coro->birth_ticks;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gp_coro_retire(coro);
    return 0;
}

static gp_ledger_t read_after(uint64_t ns)
{
    gp_ledger_t ledger;
    now += ns;
    gp_ledger_read(coro, now, &ledger);
    return ledger;
}

static void enter_after(uint64_t ns)
{
    now += ns;
    gp_ledger_edge_enter(thread, coro, coro->id, now);
}

static void leave_after(uint64_t ns)
{
    now += ns;
    gp_ledger_edge_leave(coro, now, &(gp_park_t){0});
}

static void check(gp_ledger_t ledger, uint64_t slice, uint64_t ready, uint64_t parked, uint64_t waiting)
{
    assert_int_equal(ledger.slice_ns, slice);
    assert_int_equal(ledger.ready_ns, ready);
    assert_int_equal(ledger.parked_ns, parked);
    assert_int_equal(ledger.waiting_ns, waiting);
}

static void one_that_has_not_started_is_ready(void **state)
{
    (void)state;
    assert_true(gp_ledger_edge_is_new(coro));
    check(read_after(1000), 0, 1000, 0, 0);
    enter_after(500);
    assert_false(gp_ledger_edge_is_new(coro));
    leave_after(70);
    check(read_after(30), 70, 1500, 0, 30); // and nothing was reported: the next wait is not divided
}

static void a_report_before_the_start_divides_later_waits(void **state)
{
    (void)state;
    prof_coro_active = 1;
    prof_coro_ready(coro);
    prof_coro_active = 0;
    enter_after(1000);
    leave_after(70);
    check(read_after(30), 70, 1000, 30, 0);
}

static void nothing_is_known_of_the_time_before_sampling(void **state)
{
    (void)state;
    gp_ledger_edge_end_epoch(now);
    gp_slice_new_epoch();
    now = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    assert_false(gp_ledger_edge_is_new(coro));
    check(read_after(1000), 0, 0, 0, 1000);
}

static void what_is_over_does_not_wait(void **state)
{
    (void)state;
    enter_after(10);
    leave_after(70);
    gp_coro_ends(coro, coro->id);
    check(read_after(1000), 70, 10, 0, 0);
    enter_after(5000); // its runtime clears it away
    leave_after(30);
    gp_coro_ends(coro, coro->id);
    check(read_after(1000), 100, 10, 0, 0);
    assert_int_equal(gp_ledger_edge_waited(coro), 10);
}

static void an_end_may_be_told_while_it_runs(void **state)
{
    (void)state;
    enter_after(0);
    gp_coro_ends(coro, coro->id + 1); // an earlier coroutine of this record
    assert_false(gp_ledger_edge_is_over(coro));
    gp_coro_ends(coro, coro->id);
    check(read_after(40), 40, 0, 0, 0);
    leave_after(30);
    check(read_after(1000), 70, 0, 0, 0);
}

static void what_left_may_come_back(void **state)
{
    (void)state;
    enter_after(0);
    leave_after(70);
    gp_ledger_edge_store(&coro->ready_ticks, GP_EDGE_LEFT);
    check(read_after(1000), 70, 0, 0, 0);
    assert_false(gp_ledger_edge_left_returns);
    enter_after(500);
    leave_after(30);
    assert_true(gp_ledger_edge_left_returns);
    check(read_after(1), 100, 0, 0, 1501); // it had only been parked
}

static void what_is_idle_does_not_wait(void **state)
{
    (void)state;
    enter_after(10);
    gp_coro_idles(coro);
    check(read_after(40), 40, 10, 0, 0);
    leave_after(30);
    check(read_after(1000), 70, 10, 0, 0);
    prof_coro_active = 1;
    prof_coro_ready(coro); // what wakes it is of no interest
    prof_coro_active = 0;
    check(read_after(1000), 70, 10, 0, 0);
    enter_after(5000);
    leave_after(30);
    check(read_after(1000), 100, 10, 0, 1000); // it waits as others do again
    enter_after(0);
    gp_coro_idles(coro);
    prof_coro_active = 1;
    prof_coro_ready(coro); // work came before it has left
    prof_coro_active = 0;
    assert_false(gp_ledger_edge_is_over(coro));
}

static void samples_skip_the_time_in_the_pool(void **state)
{
    (void)state;
    enter_after(0);
    gp_coro_idles(coro);
    leave_after(10);
    int64_t left = thread->wait.left;
    enter_after(1000000000);
    assert_int_equal(thread->wait.left, left);
}

// Ticks of slices in the activity that has not ended, beside its length so far.
static void slices_fit_the_activity(void)
{
    uint64_t slices = gp_ledger_edge_load(&coro->slice_ticks) - gp_ledger_edge_load(&gp_coro_timeline(coro)->slice);
    assert_true(slices <= gp_ledger_edge_load(&coro->since) - gp_ledger_edge_load(&gp_coro_timeline(coro)->start));
}

static void activities_end_where_idling_is_long(void **state)
{
    (void)state;
    thread->activity.least = 100;
    enter_after(0);
    gp_coro_idles(coro);
    leave_after(1000);
    uint64_t start = gp_ledger_edge_load(&gp_coro_timeline(coro)->start);
    enter_after(50); // too short to be shown
    assert_int_equal(gp_ledger_edge_load(&gp_coro_timeline(coro)->start), start);
    gp_coro_idles(coro);
    leave_after(20);
    slices_fit_the_activity();
    enter_after(500);
    assert_int_equal(gp_ledger_edge_load(&gp_coro_timeline(coro)->start), now);
    leave_after(20);
    slices_fit_the_activity();
    thread->activity.least = INT64_MAX;
}

static void samples_skip_the_time_after_the_end(void **state)
{
    (void)state;
    enter_after(0);
    leave_after(10);
    gp_coro_ends(coro, coro->id);
    int64_t left = thread->wait.left;
    enter_after(1000000000);
    assert_int_equal(thread->wait.left, left);
}

static void a_stack_that_is_used_again_takes_the_last_wait_back(void **state)
{
    (void)state;
    gp_ledger_t before = {0}, after = {0}, old;
    enter_after(0);
    leave_after(70);
    now += 1000;
    gp_coro_total(now, &before); // a profile begins: it was told of these
    check(read_after(2000), 70, 0, 0, 3000);
    prof_coro_t *former = coro;
    coro = make();
    gp_ledger_read(former, now, &old);
    check(old, 70, 0, 0, 0);
    gp_coro_total(now, &after);
    assert_int_equal(after.waiting_ns, before.waiting_ns);
    assert_int_equal(after.slice_ns - before.slice_ns, 0);
}

static void what_is_forsaken_stays_known(void **state)
{
    (void)state;
    uint64_t id = coro->id;
    enter_after(0);
    leave_after(70);
    check(read_after(1000), 70, 0, 0, 1000);
    gp_coro_forsake(coro, id + 1);
    check(read_after(0), 70, 0, 0, 1000);
    gp_coro_forsake(coro, id);
    check(read_after(1000), 70, 0, 0, 0);
    assert_int_equal(coro->id, id);
    gp_coro_abandon(coro, id);
    assert_int_equal(coro->id, 0);
}

static int not_sampling(void)
{
    return 0;
}

static prof_coro_t *announce_anew(const char *name)
{
    return gp_coro_announce(STACK_LO, STACK_LO + STACK_BYTES, (uintptr_t)nothing, name);
}

// Is another one, made on the same stack, the same record with another id, which is found there?
static bool is_renewed(const char *name)
{
    uint64_t before = coro->id, found;
    prof_coro_t *next = announce_anew(name);
    assert_int_not_equal(next->id, before);
    assert_ptr_equal(gp_region_find(STACK_LO, &found), next);
    assert_int_equal(found, next->id);
    bool is_same = next == coro && next->id == before + 1;
    coro = next;
    return is_same;
}

static void at_rest_a_stack_keeps_its_record(void **state)
{
    (void)state;
    gp_ledger_t before = {0}, after = {0};
    gp_ledger_edge_end_epoch(gp_ticks());
    gp_coro_set_draining(not_sampling);
    coro = announce_anew(NULL); // in place of one that was born while there was sampling
    gp_coro_total(coro->birth_ticks - 1, &before);
    uint64_t version = gp_region_version;
    assert_true(is_renewed(NULL));
    assert_int_not_equal(gp_region_version, version); // a reader that has found the one before looks again
    gp_coro_ends(coro, coro->id);
    assert_true(is_renewed(NULL));
    assert_false(gp_ledger_edge_is_over(coro));
    gp_coro_total(coro->birth_ticks - 1, &after);
    assert_int_equal(after.spawned, before.spawned + 2);
    after.spawned = before.spawned;
    assert_memory_equal(&before, &after, sizeof(before));
}

static void what_is_known_of_it_ends_with_it(void **state)
{
    (void)state;
    gp_ledger_edge_end_epoch(gp_ticks());
    gp_coro_set_draining(not_sampling);
    coro = announce_anew(NULL);
    is_renewed("named");
    assert_true(gp_coro_is_named(coro));
    is_renewed(NULL);
    assert_false(gp_coro_is_named(coro));
    gp_ledger_edge_store(&gp_coro_context(coro)->trace[0], 1);
    is_renewed(NULL);
    assert_int_equal(gp_coro_context(coro)->trace[0], 0);
    gp_coro_add(&gp_coro_rare(coro)->spawned, 1);
    is_renewed(NULL);
    assert_int_equal(gp_coro_rare(coro)->spawned, 0);
    coro->hook_mark = 7;
    is_renewed(NULL);
    assert_int_equal(coro->hook_mark, 0);
    gp_slice_new_epoch();
    gp_ledger_edge_end_epoch(gp_ticks()); // it has waited in what was recorded
    uint64_t birth = coro->birth_ticks;
    is_renewed(NULL);
    assert_true(coro->birth_ticks > birth);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_that_has_not_started_is_ready),
        TEST(a_report_before_the_start_divides_later_waits),
        TEST(nothing_is_known_of_the_time_before_sampling),
        TEST(what_is_over_does_not_wait),
        TEST(an_end_may_be_told_while_it_runs),
        TEST(what_left_may_come_back),
        TEST(what_is_idle_does_not_wait),
        TEST(samples_skip_the_time_in_the_pool),
        TEST(activities_end_where_idling_is_long),
        TEST(samples_skip_the_time_after_the_end),
        TEST(a_stack_that_is_used_again_takes_the_last_wait_back),
        TEST(what_is_forsaken_stays_known),
        TEST(at_rest_a_stack_keeps_its_record),
        TEST(what_is_known_of_it_ends_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
