// SPDX-License-Identifier: MIT
// The accounts, on a clock turned by the test: the charge of each coroutine, and their sum, the CPU clock.
#include "../context.h"
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "cmocka_all.h"
#include "coro/coro_ledger.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "signal/handler.h"
#include "signal/hog.h"
#include "signal/sample.h"
#include "signal/slice_switch.h"
#include "signal/wait_samples.h"

static int faked;
static uint64_t wall_ns = 1000000000, cpu_ns = 500000000;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static int read_faked(clockid_t clock, struct timespec *now)
{
    uint64_t ns = clock == CLOCK_THREAD_CPUTIME_ID ? cpu_ns : wall_ns;
    now->tv_sec = (time_t)(ns / 1000000000u);
    now->tv_nsec = (long)(ns % 1000000000u);
    return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    return faked ? read_faked(clock, now) : __real_clock_gettime(clock, now);
}

// Reads six arguments, however many there are.
__attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (faked && number == SYS_clock_gettime)
        return read_faked((clockid_t)a[0], (struct timespec *)a[1]);
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void run(uint64_t ns) // on the CPU
{
    wall_ns += ns;
    cpu_ns += ns;
}

static void sleep_for(uint64_t ns) // blocked, or preempted
{
    wall_ns += ns;
}

static void nothing(void)
{
}

static gp_thread_t *thread;
static prof_coro_t *a, *b;
static uint64_t root_before_ns;

static int setup(void **state)
{
    (void)state;
    thread = gp_thread_attach();
    faked = 1;
    gp_ticks_scale.counter = false; // ticks are nanoseconds of the faked clock
    gp_ticks_scale.mult = 1ull << 32;
    gp_slice_init();
    gp_wait_samples_set_frequency(1000);
    gp_handler_kick = nothing;
    gp_handler_sampling = true;
    a = prof_coro_create(NULL, 0, "a"); // no stacks: the hint alone says which coroutine runs
    b = prof_coro_create(NULL, 0, "b");
    gp_slice_new_epoch();
    thread->cpu.start_ns = cpu_ns;
    gp_slice_settle_now(thread);
    root_before_ns = gp_ledger_edge_settled_cpu_ns(thread->root);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    faked = 0;
    prof_coro_destroy(a);
    prof_coro_destroy(b);
    return 0;
}

static void to(prof_coro_t *coro)
{
    prof_coro_switch_hook(coro);
}

static uint64_t root_cpu_ns(void)
{
    return gp_ledger_edge_settled_cpu_ns(thread->root) - root_before_ns;
}

static void short_slices_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        to(a);
        run(3000);
        to(b);
        run(7000);
    }
    to(NULL);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), 3000000);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(b), 7000000);
    assert_int_equal(a->switches, 1000);
    gp_slice_settle_now(thread);
    assert_int_equal(root_cpu_ns(), 0);
}

static void preemption_is_nobodys_time(void **state)
{
    (void)state;
    to(a);
    run(1000);
    sleep_for(4000000); // another process ran
    run(1000);
    to(b);
    run(5000);
    to(NULL);
    gp_slice_settle_now(thread);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), 2000);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(b), 5000);
}

static void loop_that_waits_gets_nothing_for_it(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        run(2000);          // the loop's own work
        sleep_for(1000000); // epoll_wait
        to(a);
        run(10000);
        to(NULL);
    }
    gp_slice_settle_now(thread);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), 1000000);
    assert_int_equal(root_cpu_ns(), 200000);
}

static void short_waits_are_taken_back_from_the_loop(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        run(2000);
        sleep_for(20000); // too short to be noticed at the switch
        to(a);
        run(10000);
        to(NULL);
    }
    to(a);
    run(1000000); // long: the CPU clock is read here
    to(NULL);
    gp_slice_settle_now(thread);
    // The sum is exact; what the loop waited is not in it, and the coroutine has what it used.
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a) + root_cpu_ns(), 100 * 12000 + 1000000);
    assert_in_range(gp_ledger_edge_settled_cpu_ns(a), 2000000 - GP_SLICE_ROOT_PENDING_NS, 2000000);
}

// The hint is corrected at the next look: by then the other has run for a while, after a sleep of the one before.
static void unseen_switch_is_charged_by_the_cpu_clock(void **state)
{
    (void)state;
    to(a);
    run(1000);
    gp_slice_settle_now(thread);
    sleep_for(3000000);
    run(400000); // b, but it was not reported
    thread->busy = true;
    gp_slice_correct(thread, b, b->id, wall_ns, cpu_ns);
    gp_slice_settle(thread, wall_ns, cpu_ns);
    thread->busy = false;
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), 1000);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(b), 400000);
    assert_int_equal(a->slice_ticks, 3001000);
    run(5000);
    to(NULL);
    gp_slice_settle_now(thread);
    assert_int_equal(b->slice_ticks, 405000);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(b), 405000);
    assert_int_equal(root_cpu_ns(), 0);
}

// Destroyed by others while it ran: the thread's own stack has the rest.
static void thread_stands_in_for_who_is_gone(void **state)
{
    (void)state;
    to(a);
    run(3000);
    prof_coro_destroy(a);
    a = NULL;
    run(4000);
    to(b);
    run(2000);
    to(NULL);
    gp_slice_settle_now(thread);
    assert_int_equal(root_cpu_ns(), 7000);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(b), 2000);
}

static void resting_time_is_not_counted(void **state)
{
    (void)state;
    to(a);
    run(1000);
    to(NULL);
    gp_slice_settle_now(thread);
    uint64_t before = root_cpu_ns();
    run(5000000); // not sampled
    gp_slice_new_epoch();
    thread->cpu.start_ns = cpu_ns; // what arming a thread does
    gp_slice_settle_now(thread);
    assert_int_equal(root_cpu_ns(), before);
}

static ucontext_t outside, inside;
static prof_coro_t *keeper;

static void rest(uint64_t ns)
{
    gp_ledger_edge_end_epoch(gp_ticks());
    run(ns);
    gp_slice_new_epoch();
    thread->cpu.start_ns = cpu_ns;
}

static void keep_thread_across_a_rest(void)
{
    run(300000000);
    gp_slice_settle_now(thread); // the end of a window
    rest(5000000000);
    run(400000000);
    to(NULL);
    setcontext(&outside);
}

// Delays of `victim` so far, ticks; the records are gone. unseen: how much of them was at most
static uint64_t take_delays(prof_coro_t *victim, uint64_t *unseen)
{
    uint64_t ticks = 0;
    *unseen = 0;
    for (gp_ring_header_t *header; (header = gp_ring_peek(&thread->ring)) != NULL;) {
        const gp_delay_mark_t *mark = (const gp_delay_mark_t *)(const void *)header;
        if (header->committed == GP_RING_DELAY && mark->coro == victim) {
            ticks += mark->delay_ticks;
            *unseen += mark->unseen_ticks;
        }
        gp_ring_consume(&thread->ring, header);
    }
    return ticks;
}

// A loop looks for events again after a slice of 40 ms, and finds one that `b` waits for.
static void what_a_late_look_finds_may_have_been_ready(void **state)
{
    gp_ledger_t before, after;
    uint64_t unseen;
    (void)state;
    gp_hog_set_threshold(10000000);
    gp_slice_init();
    __atomic_store_n(&prof_coro_active, 1, __ATOMIC_RELAXED);
    to(b);
    to(NULL);
    take_delays(b, &unseen);
    gp_ledger_read(b, wall_ns, &before);
    run(20000000);
    gp_ledger_edge_looked(thread, wall_ns, wall_ns);
    uint64_t looked = wall_ns;
    to(a);
    run(40000000);
    to(NULL);
    gp_ledger_edge_looked(thread, looked, wall_ns);
    prof_coro_ready(b);
    gp_ledger_edge_ready_by_look(b);
    run(3000000);
    gp_ledger_edge_looked(thread, wall_ns, wall_ns); // once more, before it comes to b
    to(b);
    to(NULL);
    gp_ledger_read(b, wall_ns, &after);
    assert_int_equal(after.parked_ns - before.parked_ns, 20000000);
    assert_int_equal(after.waiting_ns - before.waiting_ns, 40000000);
    assert_int_equal(after.ready_ns - before.ready_ns, 3000000);
    assert_int_equal(take_delays(b, &unseen), 40000000);
    assert_int_equal(unseen, 40000000);
    to(a);
    run(9000000);
    to(NULL);
    gp_ledger_edge_looked(thread, wall_ns - 9000000, wall_ns); // not late
    prof_coro_ready(b);
    gp_ledger_edge_ready_by_look(b);
    to(b);
    to(NULL);
    __atomic_store_n(&prof_coro_active, 0, __ATOMIC_RELAXED);
    gp_ledger_read(b, wall_ns, &after);
    assert_int_equal(after.parked_ns - before.parked_ns, 29000000);
    assert_int_equal(after.waiting_ns - before.waiting_ns, 40000000);
    assert_int_equal(take_delays(b, &unseen), 0);
}

// A stay on the thread from before a rest until after it is a hog for as long as was recorded since, and so is the
// delay of its victims.
static void a_hog_is_no_longer_than_was_recorded(void **state)
{
    static char stack[256 << 10];
    gp_ledger_t ledger;
    uint64_t unseen;
    (void)state;
    gp_hog_set_threshold(10000000);
    gp_slice_init();
    keeper = prof_coro_create(stack, sizeof(stack), "keeper");
    context_on(&inside, stack, sizeof(stack), NULL);
    makecontext(&inside, keep_thread_across_a_rest, 0);
    __atomic_store_n(&prof_coro_active, 1, __ATOMIC_RELAXED);
    to(b); // it has run before
    to(NULL);
    take_delays(b, &unseen);
    prof_coro_ready(b);
    to(keeper);
    swapcontext(&outside, &inside);
    gp_hog_t *hog = &thread->hog.latest[(thread->hog.count - 1) % GP_HOGS];
    assert_ptr_equal(hog->coro, keeper);
    assert_int_equal(hog->end - hog->start, 400000000);
    to(b);
    to(NULL);
    __atomic_store_n(&prof_coro_active, 0, __ATOMIC_RELAXED);
    assert_int_equal(take_delays(b, &unseen), 0); // whether it was ready after the rest is not known
    gp_ledger_read(keeper, wall_ns, &ledger);
    assert_int_equal(ledger.longest_ns, 400000000);
    assert_int_equal(ledger.slice_ns, 700000000);
    assert_int_equal(ledger.cpu_ns, 700000000);
    prof_coro_destroy(keeper);
}

// Where a span begins or ends: what is open is settled once it may hide a preemption.
static void an_edge_settles_what_is_open(void **state)
{
    (void)state;
    to(a);
    run(GP_SLICE_LONG_NS - 2);
    assert_int_equal(gp_slice_settle_open(thread, wall_ns), wall_ns);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), 0); // not yet
    sleep_for(4000000);
    assert_int_equal(gp_slice_settle_open(thread, wall_ns), wall_ns);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), GP_SLICE_LONG_NS - 2);
    run(1000);
    assert_int_equal(gp_ledger_edge_cpu_ns(a, wall_ns), GP_SLICE_LONG_NS - 2 + 1000);
    thread->busy = true; // amid a switch
    sleep_for(4000000);
    assert_int_equal(gp_slice_settle_open(thread, wall_ns), wall_ns);
    thread->busy = false;
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), GP_SLICE_LONG_NS - 2);
    to(NULL);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), GP_SLICE_LONG_NS - 2 + 1000);
}

// Where a coroutine's request or trace begins or ends.
static void a_request_settles_as_a_switch_does(void **state)
{
    (void)state;
    to(a);
    run(GP_SLICE_WINDOW_NS - 2);
    gp_slice_settle_as_switch(thread, a);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), GP_SLICE_WINDOW_NS - 2); // by ticks: none can hide in it
    sleep_for(10);
    gp_slice_settle_as_switch(thread, a);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), GP_SLICE_WINDOW_NS - 2); // one can: by the CPU clock
    run(10);
    gp_slice_settle_as_switch(thread, a);
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), GP_SLICE_WINDOW_NS + 8);
    sleep_for(10);
    gp_slice_settle_as_switch(thread, a);
    run(GP_SLICE_WINDOW_NS);
    gp_slice_settle_as_switch(thread, a); // what ticks have charged too much is taken back
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), 2 * GP_SLICE_WINDOW_NS + 8);
    run(10);
    gp_slice_settle_as_switch(thread, b); // no hook has said that it runs
    assert_int_equal(gp_ledger_edge_settled_cpu_ns(a), 2 * GP_SLICE_WINDOW_NS + 18);
}

// A thread's own stack waits between its requests, for moments.
static void requests_of_a_thread_are_exact(void **state)
{
    enum { REQUESTS = 100, RUNS = 15000, WAITS = 20000 };
    (void)state;
    for (int i = 1; i <= REQUESTS; i++) {
        gp_slice_settle_as_switch(thread, thread->root);
        run(RUNS);
        gp_slice_settle_as_switch(thread, thread->root);
        assert_int_equal(root_cpu_ns(), i * RUNS);
        sleep_for(WAITS);
    }
}

static void an_edge_begins_the_accounts_of_a_thread(void **state)
{
    (void)state;
    to(a);
    run(5000);
    gp_slice_new_epoch();
    thread->cpu.start_ns = cpu_ns;
    run(300);
    gp_slice_settle_open(thread, wall_ns);
    assert_int_equal(thread->epoch, gp_ledger_edge_epoch);
    assert_int_equal(root_cpu_ns(), 300); // no hook has said since then which one runs
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(short_slices_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(preemption_is_nobodys_time, setup, teardown),
        cmocka_unit_test_setup_teardown(loop_that_waits_gets_nothing_for_it, setup, teardown),
        cmocka_unit_test_setup_teardown(short_waits_are_taken_back_from_the_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(unseen_switch_is_charged_by_the_cpu_clock, setup, teardown),
        cmocka_unit_test_setup_teardown(thread_stands_in_for_who_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(resting_time_is_not_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_hog_is_no_longer_than_was_recorded, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_late_look_finds_may_have_been_ready, setup, teardown),
        cmocka_unit_test_setup_teardown(an_edge_settles_what_is_open, setup, teardown),
        cmocka_unit_test_setup_teardown(a_request_settles_as_a_switch_does, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_of_a_thread_are_exact, setup, teardown),
        cmocka_unit_test_setup_teardown(an_edge_begins_the_accounts_of_a_thread, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
