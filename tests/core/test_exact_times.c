// SPDX-License-Identifier: MIT
// The clocks of an event of exact mode, where a sample settles the account between the two reads.
#include "cmocka_all.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "exact/exact_event.h"
#include "exact/exact_memory.h"

enum { SLEPT_NS = 10000000 };

static moment_t event_of(gp_thread_t *thread, prof_coro_t *coro)
{
    moment_t moment = {.thread = thread, .stack = gp_exact_stack_of(coro, 1, thread), .links = 1};
    assert_non_null(moment.stack);
    gp_exact_gap_ticks = UINT64_MAX / 2; // nothing settles it but the test
    read_clocks(&moment);
    return moment;
}

// The thread was off the CPU for longer than its coroutine has run: the sample after that takes it off, up to a moment
// that the event's own clock does not know yet.
static void settled_meanwhile(void **state)
{
    (void)state;
    gp_thread_t *thread = gp_thread_attach();
    assert_non_null(thread);
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
    prof_coro_t *coro = gp_coro_new(&birth);
    assert_non_null(coro);
    gp_edge_store(&coro->since, gp_ticks());
    gp_edge_store(&coro->settled, gp_edge_load(&coro->since));
    moment_t before = event_of(thread, coro);
    assert_in_range(before.cpu_ns, 0, 1000000000);
    gp_edge_store(&coro->off_ns, SLEPT_NS + gp_ticks_to_ns(gp_ticks() - gp_edge_load(&coro->since)));
    moment_t amidst = event_of(thread, coro);
    assert_int_equal(amidst.cpu_ns, before.cpu_ns);
    gp_edge_store(&coro->since, gp_edge_load(&coro->since) - gp_ticks_from_ns(2 * SLEPT_NS));
    moment_t after = event_of(thread, coro);
    assert_in_range(after.cpu_ns, before.cpu_ns + 1, 1000000000);
    gp_coro_retire(coro);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(settled_meanwhile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
