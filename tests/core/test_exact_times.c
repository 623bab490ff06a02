// SPDX-License-Identifier: MIT
// The clocks of an event of exact mode, where a sample settles the account between the two reads, or the thread is
// preempted once more when it has settled it.
#include "cmocka_all.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "exact/exact_event.h"
#include "exact/exact_memory.h"

enum { SLEPT_NS = 10000000, GAP_NS = 1000000 };

static unsigned settlements, preemptions;

void __real_gp_slice_settle_now(gp_thread_t *thread);
void __wrap_gp_slice_settle_now(gp_thread_t *thread);

void __wrap_gp_slice_settle_now(gp_thread_t *thread)
{
    __real_gp_slice_settle_now(thread);
    uint64_t until = gp_ticks() + gp_ticks_from_ns(2 * GAP_NS);
    while (settlements < preemptions && gp_ticks() < until)
        ;
    settlements++;
}

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

static void preempted_on_the_way_back(void **state)
{
    (void)state;
    gp_thread_t *thread = gp_thread_attach();
    assert_non_null(thread);
    prof_coro_t *coro = thread->root;
    gp_slice_new_epoch();
    gp_slice_begin(thread, (uintptr_t)__builtin_frame_address(0));
    moment_t moment = {.thread = thread, .stack = gp_exact_stack_of(coro, thread->root_id, thread), .links = 1};
    gp_exact_gap_ticks = gp_ticks_from_ns(GAP_NS);
    for (uint64_t until = gp_ticks() + gp_ticks_from_ns(2 * GAP_NS); gp_ticks() < until;)
        ;
    preemptions = 1;
    read_clocks(&moment);
    assert_true(settlements >= 2);
    assert_true(moment.ticks - gp_edge_load(&coro->settled) <= gp_exact_gap_ticks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settled_meanwhile),
        cmocka_unit_test(preempted_on_the_way_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
