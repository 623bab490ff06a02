// SPDX-License-Identifier: MIT
// Knowledge of coroutines across rests of a recording: of the windows all, of the rests nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "collect/collector.h"
#include "collect/sampler.h"
#include "collect/waiting_stack.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "exact/recorder.h"
#include "greenprof/coro.h"
#include "greenprof/prof.h"
#include "signal/handler.h"
#include "signal/ledger_edges.h"
#include "signal/rest.h"
#include "signal/slice.h"

#define STACK_LO    0x7000000000u
#define STACK_BYTES 65536u

static gp_thread_t *thread;
static prof_coro_t *coro;
static uint64_t now;

static int setup(void **state)
{
    gp_coro_birth_t birth = {.lo = STACK_LO, .hi = STACK_LO + STACK_BYTES, .kind = GP_CORO_ANNOUNCED};
    (void)state;
    thread = gp_thread_attach();
    gp_ticks_scale.mult = 1ull << 32;
    gp_slice_new_epoch();
    coro = gp_coro_new(&birth);
    now = coro->birth_ticks;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gp_coro_retire(coro);
    return 0;
}

static void enter_after(uint64_t ns)
{
    now += ns;
    gp_ledger_edge_enter(thread, coro, coro->id, now);
}

static void leave_after(uint64_t ns)
{
    now += ns;
    gp_ledger_edge_leave(coro, now, &(gp_park_t){.pc = 1});
}

static void rest_after(uint64_t ns)
{
    now += ns;
    gp_ledger_edge_end_epoch(now);
}

static void resume(void)
{
    while (gp_ticks() <= now) // a counter that goes in steps may stand still for so long
        ;
    gp_slice_new_epoch();
    now = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
}

static void check_after(uint64_t ns, uint64_t slice, uint64_t ready, uint64_t parked, uint64_t waiting)
{
    gp_ledger_t ledger;
    now += ns;
    gp_ledger_read(coro, now, &ledger);
    assert_int_equal(ledger.slice_ns, slice);
    assert_int_equal(ledger.ready_ns, ready);
    assert_int_equal(ledger.parked_ns, parked);
    assert_int_equal(ledger.waiting_ns, waiting);
}

static void a_wait_counts_as_far_as_it_was_recorded(void **state)
{
    (void)state;
    enter_after(10);
    leave_after(70);
    rest_after(300);
    check_after(0, 70, 10, 0, 300);
    check_after(5000, 70, 10, 0, 300); // nothing is known of the rest
    resume();
    check_after(40, 70, 10, 0, 340);
    rest_after(10);
    resume(); // it has done nothing in this window
    check_after(1, 70, 10, 0, 351);
    enter_after(9);
    check_after(5, 75, 10, 0, 360);
    leave_after(0);
    check_after(20, 75, 10, 0, 380);
}

static void a_slice_counts_as_far_as_it_was_settled(void **state)
{
    (void)state;
    enter_after(10);
    gp_ledger_edge_store(&coro->settled, now + 60);
    rest_after(70);
    check_after(5000, 70, 10, 0, 0);
    resume();
    check_after(30, 60, 10, 0, 30);
    enter_after(0); // its thread goes on, or it was switched meanwhile
    leave_after(5);
    check_after(0, 65, 10, 0, 30);
}

static uint64_t longest_after(uint64_t ns)
{
    gp_ledger_t ledger;
    now += ns;
    gp_ledger_read(coro, now, &ledger);
    assert_int_equal(ledger.longest_ns, gp_ledger_longest_since_entry(coro, now));
    return ledger.longest_ns;
}

// The slice is known as two, each as long as it was recorded.
static void a_slice_across_a_rest_is_no_longer_than_was_recorded(void **state)
{
    (void)state;
    enter_after(10);
    gp_ledger_edge_store(&coro->settled, now + 300);
    rest_after(300);
    assert_int_equal(longest_after(5000), 300);
    resume();
    assert_int_equal(longest_after(20), 300); // before its thread is met again, and after
    enter_after(0);
    assert_int_equal(longest_after(100), 300);
    assert_int_equal(longest_after(250), 350);
    gp_ledger_edge_store(&coro->settled, now + 50);
    rest_after(50);
    assert_int_equal(longest_after(5000), 400);
    resume();
    enter_after(0);
    leave_after(70);
    assert_int_equal(longest_after(1000), 400);
}

static void what_was_reported_stays_divided(void **state)
{
    (void)state;
    __atomic_store_n(&prof_coro_active, 1, __ATOMIC_RELAXED);
    enter_after(10);
    leave_after(70);
    gp_ledger_edge_store(&coro->ready_ticks, now + 100);
    enter_after(130);
    leave_after(0);
    check_after(0, 70, 40, 100, 0);
    gp_ledger_edge_store(&coro->ready_ticks, now + 25);
    rest_after(30); // it could run for 5 then
    resume();
    check_after(0, 70, 40, 130, 0); // known when it is met again
    enter_after(60);                // and whether it was ready in this window is not
    check_after(0, 70, 45, 125, 60);
    leave_after(0);
    rest_after(30);
    resume();
    gp_ledger_edge_store(&coro->ready_ticks, now + 50); // reported in this window
    enter_after(60);
    check_after(0, 70, 55, 205, 60);
    leave_after(0);
    __atomic_store_n(&prof_coro_active, 0, __ATOMIC_RELAXED);
}

static void what_is_over_does_not_wait(void **state)
{
    (void)state;
    enter_after(10);
    leave_after(70);
    gp_coro_ends(coro, coro->id);
    rest_after(300);
    resume();
    enter_after(50);
    leave_after(1);
    check_after(0, 71, 10, 0, 50); // it has come back all the same
}

static void many_rests_add_up(void **state)
{
    enum { RESTS = 3000, WINDOW = 7 };
    (void)state;
    enter_after(10);
    leave_after(70);
    for (int i = 0; i < 500; i++) {
        rest_after(WINDOW);
        resume();
    }
    check_after(0, 70, 10, 0, 500 * WINDOW);
    enter_after(0);
    leave_after(0);
    check_after(0, 70, 10, 0, 500 * WINDOW);
    for (int i = 0; i < RESTS; i++) {
        rest_after(WINDOW);
        resume();
    }
    gp_ledger_t ledger; // more than is remembered: a part of it, never too much
    gp_ledger_read(coro, now, &ledger);
    assert_in_range(ledger.waiting_ns, (500 + 1000) * WINDOW, (500 + RESTS) * WINDOW);
}

static void what_was_born_in_a_rest_is_met_after_it(void **state)
{
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
    (void)state;
    gp_ledger_edge_end_epoch(gp_ticks());
    prof_coro_t *former = coro;
    coro = gp_coro_new(&birth);
    now = coro->birth_ticks;
    assert_false(gp_ledger_edge_is_current(coro));
    check_after(100, 0, 0, 0, 0);
    resume();
    check_after(30, 0, 0, 0, 30);
    enter_after(0);
    leave_after(5);
    check_after(0, 5, 0, 0, 30);
    gp_coro_retire(coro);
    coro = former;
}

static void what_lies_across_a_rest_is_known_to(void **state)
{
    (void)state;
    gp_rest_sums_t sums;
    uint64_t before = gp_ticks();
    assert_false(gp_rest_overlaps(before));
    gp_rest_begin(1000);
    assert_true(gp_rest_overlaps(before));
    assert_true(gp_rest_overlaps(gp_ticks()));
    uint64_t within = gp_ticks();
    gp_rest_end(1700);
    assert_true(gp_rest_overlaps(before));
    assert_true(gp_rest_overlaps(within));
    assert_false(gp_rest_overlaps(gp_ticks()));
    gp_rest_read(5000, &sums);
    assert_int_equal(sums.count, 1);
    assert_int_equal(sums.cpu_ns, 700);
    gp_rest_begin(6000);
    gp_rest_read(6500, &sums);
    assert_int_equal(sums.count, 2);
    assert_int_equal(sums.cpu_ns, 1200);
    gp_rest_in_child();
    gp_rest_read(6500, &sums);
    assert_int_equal(sums.count + sums.ns + sums.cpu_ns, 0);
    assert_false(gp_rest_overlaps(before));
}

static void only_the_patient_let_it_rest(void **state)
{
    (void)state;
    assert_false(gp_sampler_may_rest()); // nothing is sampled
    assert_int_equal(gp_sampler_acquire_patiently(100), 0);
    assert_true(gp_sampler_may_rest());
    prof_t *profile = prof_start(NULL);
    assert_non_null(profile);
    assert_false(gp_sampler_may_rest());
    assert_false(gp_sampler_rest());
    assert_true(gp_handler_sampling);
    prof_stop(profile);
    prof_free(profile);
    assert_true(gp_sampler_rest());
    assert_int_equal(prof_coro_active, 0);
    assert_false(gp_handler_sampling);
    assert_true(gp_rest_is_now());
    assert_false(gp_sampler_rest());
    assert_int_equal(gp_sampler_acquire_patiently(50), 0); // joins the rest
    assert_false(gp_handler_sampling);
    assert_int_equal(gp_sampler_resume(), 0);
    assert_int_equal(prof_coro_active, 1);
    assert_false(gp_rest_is_now());
    gp_sampler_release_patiently(50);
}

static void a_profile_ends_a_rest(void **state)
{
    (void)state;
    assert_true(gp_sampler_rest());
    prof_t *profile = prof_start(NULL);
    assert_non_null(profile);
    assert_int_equal(prof_coro_active, 1);
    assert_false(gp_rest_is_now());
    assert_int_equal(gp_sampler_resume(), 0); // that was done
    prof_stop(profile);
    prof_free(profile);
    assert_true(gp_sampler_rest());
    gp_sampler_release_patiently(100); // the last one: the rest is over, and nothing is sampled
    assert_false(gp_rest_is_now());
    assert_int_equal(prof_coro_active, 0);
    assert_int_equal(gp_sampler_resume(), 0);
    assert_int_equal(prof_coro_active, 0);
    gp_collector_sync();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_counts_as_far_as_it_was_recorded),
        TEST(a_slice_counts_as_far_as_it_was_settled),
        TEST(a_slice_across_a_rest_is_no_longer_than_was_recorded),
        TEST(what_was_reported_stays_divided),
        TEST(what_is_over_does_not_wait),
        TEST(many_rests_add_up),
        TEST(what_was_born_in_a_rest_is_met_after_it),
        TEST(what_lies_across_a_rest_is_known_to),
        cmocka_unit_test(only_the_patient_let_it_rest),
        cmocka_unit_test(a_profile_ends_a_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
