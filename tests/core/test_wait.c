// SPDX-License-Identifier: MIT
// The estimator of waiting time: what samples weigh adds up to the waits they were taken of, on average, whatever the
// waits' lengths and order.
#include <math.h>
#include <string.h>

#include "cmocka_all.h"
#include "coro/threads.h"
#include "signal/handler.h"
#include "signal/ledger_edges.h"
#include "signal/sample.h"
#include "signal/slice.h"
#include "signal/wait_samples.h"

enum { HZ = 1000, ROUNDS = 40 };

static gp_thread_t *thread;
static prof_coro_t *coro;
static uint64_t sampled, samples;

static void nothing(void)
{
}

// Take what was put into the ring.
static void drain(void)
{
    for (gp_ring_header_t *header; (header = gp_ring_peek(&thread->ring)) != NULL;) {
        if (atomic_load(&header->committed) == GP_RING_WAIT) {
            sampled += ((const gp_sample_t *)(const void *)header)->weight_ns;
            samples++;
        }
        gp_ring_consume(&thread->ring, header);
    }
}

// Let the coroutine run, and the clock of waits begin.
static void begin(uint64_t now)
{
    gp_ledger_edge_enter(thread, coro, coro->id, now);
    drain();
    gp_wait_samples_begin(thread);
    thread->wait.window = now;
    sampled = samples = 0;
}

static int setup(void **state)
{
    (void)state;
    thread = gp_thread_attach();
    gp_ticks_scale.mult = 1ull << 32; // a tick is a nanosecond
    gp_handler_kick = nothing;
    gp_handler_sampling = true;
    gp_slice_new_epoch();
    gp_wait_samples_set_frequency(HZ);
    gp_wait_samples_want(1);
    coro = prof_coro_create(NULL, 0, "waiter");
    gp_wait_samples_begin(thread);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    prof_coro_destroy(coro);
    return 0;
}

// A wait of `ns`, then a slice of 1 us.
static void wait_for(uint64_t *now, uint64_t ns)
{
    gp_ledger_edge_leave(coro, *now, &(gp_park_t){0});
    *now += ns;
    gp_ledger_edge_enter(thread, coro, coro->id, *now);
    *now += 1000;
    drain();
}

// Waits by `next(i)`, `count` of them, in each of ROUNDS rounds: is the mean of the rounds' errors zero but for chance?
static void check(const char *what, uint64_t (*next)(unsigned i), unsigned count)
{
    double sum = 0, squares = 0;
    uint64_t now = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks) + 1000000;
    begin(now);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t truth = 0;
        sampled = 0;
        gp_wait_samples_begin(thread);
        thread->wait.window = now;
        for (unsigned i = 0; i < count; i++) {
            uint64_t ns = next(i);
            truth += ns;
            wait_for(&now, ns);
        }
        double error = ((double)sampled - (double)truth) / (double)truth;
        sum += error;
        squares += error * error;
    }
    double mean = sum / ROUNDS, deviation = sqrt(squares / ROUNDS - mean * mean);
    double standard_error = deviation / sqrt(ROUNDS);
    print_message("%s: %+.4f %% +- %.4f %%, one round %.2f %%, %.0f samples of %u waits\n", what, mean * 100,
                  standard_error * 100, deviation * 100, (double)samples / ROUNDS, count);
    assert_true(fabs(mean) <= 4 * standard_error + 1e-9);
    assert_true(deviation < 0.2);
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static uint64_t short_ones(unsigned i)
{
    (void)i;
    return 20000;
}

static uint64_t resonant(unsigned i) // two of them are a period
{
    return i % 2 == 0 ? 100000 : 900000;
}

static uint64_t mixed(unsigned i)
{
    (void)i;
    return 1000 + draw() % 4000000;
}

static uint64_t heavy_tailed(unsigned i)
{
    (void)i;
    return (uint64_t)(20000 / pow((double)(draw() % 100000 + 1) / 100000, 0.8));
}

static uint64_t long_ones(unsigned i) // more than are asked for: the period grows
{
    (void)i;
    return 3000000 + draw() % 1000000;
}

static void weights_are_unbiased(void **state)
{
    (void)state;
    check("20 us each", short_ones, 20000);
    check("0.1 and 0.9 ms in turns", resonant, 4000);
    check("up to 4 ms", mixed, 4000);
    check("heavy-tailed", heavy_tailed, 20000);
}

static void long_waits_weigh_what_they_last(void **state)
{
    (void)state;
    uint64_t now = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks) + 1000000, truth = 0;
    begin(now);
    for (unsigned i = 0; i < 100; i++) { // few enough for all to be sampled
        uint64_t ns = long_ones(i);
        truth += ns;
        wait_for(&now, ns);
    }
    assert_int_equal(sampled, truth);
}

// Ten thousand coroutines at once, each of which waits for 10 ms: a million waits a second, of which 4 * HZ are
// sampled.
static void many_waits_make_the_period_grow(void **state)
{
    (void)state;
    enum { WAITS = 400000 };
    const uint64_t wait_ns = 10000000, apart_ns = 1000;
    uint64_t now = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks) + 2 * wait_ns, truth = 0;
    begin(now);
    uint64_t before = thread->wait.period;
    for (unsigned i = 0; i < WAITS; i++) { // each began long before the one before it ended
        gp_ledger_edge_leave(coro, now - wait_ns, &(gp_park_t){0});
        gp_ledger_edge_enter(thread, coro, coro->id, now);
        now += apart_ns;
        truth += wait_ns;
        drain();
    }
    double seconds = WAITS * (double)apart_ns / 1e9;
    print_message("%.0f samples a second, period x%.0f, error %+.2f %%\n", (double)samples / seconds,
                  (double)thread->wait.period / (double)before, 100 * ((double)sampled / (double)truth - 1));
    // A tenth of a second's worth until each doubling, then what is aimed at.
    assert_true((double)samples < 20 * (4 * HZ / 10) + 6 * HZ * seconds);
    assert_true(thread->wait.period > 4 * before);
    assert_true(fabs((double)sampled / (double)truth - 1) < 0.15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(weights_are_unbiased, setup, teardown),
        cmocka_unit_test_setup_teardown(long_waits_weigh_what_they_last, setup, teardown),
        cmocka_unit_test_setup_teardown(many_waits_make_the_period_grow, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
