// SPDX-License-Identifier: MIT
// The clocks of an event of exact mode, where a sample settles the account between the two reads, or the thread is
// preempted once more when it has settled it.
#include "cmocka_all.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "exact/exact_memory.h"
#include "exact/exact_time.h"
#include "signal/slice_switch.h"

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

// Returns the coroutine's CPU time at the event.
static uint64_t event_of(gp_thread_t *thread, prof_coro_t *coro, bool steady)
{
    gp_exact_stack_t *stack = gp_exact_stack_of(coro, 1, thread);
    assert_non_null(stack);
    gp_exact_gap_ticks = UINT64_MAX / 2; // nothing settles it but the test
    assert_int_equal(gp_exact_charge_time(stack, thread, false, 0), steady);
    return gp_exact_stack_cpu_ns(stack);
}

// The thread was off the CPU for longer than its coroutine has run: the next sample takes this off, up to a moment that
// the event's own clock does not know yet.
static void settled_meanwhile(void **state)
{
    (void)state;
    gp_thread_t *thread = gp_thread_attach();
    assert_non_null(thread);
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
    prof_coro_t *coro = gp_coro_new(&birth);
    assert_non_null(coro);
    gp_ledger_edge_store(&coro->since, gp_ticks());
    gp_ledger_edge_store(&coro->settled, gp_ledger_edge_load(&coro->since));
    uint64_t before = event_of(thread, coro, true);
    assert_in_range(before, 0, 1000000000);
    gp_ledger_edge_store(&coro->off_ns, SLEPT_NS + gp_ticks_to_ns(gp_ticks() - gp_ledger_edge_load(&coro->since)));
    assert_int_equal(event_of(thread, coro, false), before);
    gp_ledger_edge_store(&coro->since, gp_ledger_edge_load(&coro->since) - gp_ticks_from_ns(2 * SLEPT_NS));
    assert_in_range(event_of(thread, coro, true), before + 1, 1000000000);
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
    gp_exact_stack_t *stack = gp_exact_stack_of(coro, thread->root_id, thread);
    gp_exact_gap_ticks = gp_ticks_from_ns(GAP_NS);
    for (uint64_t until = gp_ticks() + gp_ticks_from_ns(2 * GAP_NS); gp_ticks() < until;)
        ;
    preemptions = 1;
    assert_true(gp_exact_charge_time(stack, thread, false, 0));
    assert_true(settlements >= 2);
    assert_true(stack->last_ticks - gp_ledger_edge_load(&coro->settled) <= gp_exact_gap_ticks);
}

// Events take the fast way, which looks at no account, only as long as the stack is ready.
static void changes_of_the_account_are_noticed(void **state)
{
    (void)state;
    gp_thread_t *thread = gp_thread_attach();
    assert_non_null(thread);
    gp_slice_begin(thread, (uintptr_t)__builtin_frame_address(0));
    gp_exact_stack_t *stack = gp_exact_stack_of(thread->root, thread->root_id, thread);
    atomic_store_explicit(&thread->exact.stack, stack, memory_order_relaxed);
    gp_exact_charge_time(stack, thread, false, 0);
    assert_ptr_equal(thread->exact_ready, stack);
    __real_gp_slice_settle_now(thread);
    assert_null(thread->exact_ready);
    gp_exact_charge_time(stack, thread, false, 0);
    gp_coro_birth_t birth = {.kind = GP_CORO_ANNOUNCED};
    prof_coro_t *coro = gp_coro_new(&birth);
    assert_non_null(coro);
    gp_park_t park = {.sp = (uintptr_t)__builtin_frame_address(0)};
    gp_slice_enter(thread);
    gp_slice_switch(thread, &park, coro, coro->id, gp_ticks());
    assert_null(thread->exact_ready);
    gp_coro_retire(coro);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settled_meanwhile),
        cmocka_unit_test(preempted_on_the_way_back),
        cmocka_unit_test(changes_of_the_account_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
