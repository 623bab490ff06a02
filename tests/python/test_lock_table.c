// SPDX-License-Identifier: MIT
// Owners of a lock while others waited, as its gives tell.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "interpreter/lock_table.h"
#include "signal/ledger_edges.h"

enum { LOCK = 0x7000, OTHER = 0x9000 };

static void give(gp_lock_slot_t *slot, uint32_t thread, uint64_t ticks, bool by_owner)
{
    gp_lock_give_t made = {.ticks = ticks, .code = thread * 10, .thread = thread, .by_owner = by_owner};
    gp_lock_slot_give(slot, &made);
}

static gp_lock_slot_t *wanted(uintptr_t lock)
{
    gp_lock_slot_t *slot = gp_lock_slot_claim(lock);
    assert_non_null(slot);
    atomic_store(&slot->waiters, 1);
    return slot;
}

static void the_longest_holder_is_named(void **state)
{
    gp_lock_slot_t *slot = wanted(LOCK);
    (void)state;
    give(slot, 1, 100, true); // before the wait
    give(slot, 2, 220, true);
    give(slot, 3, 400, true);
    give(slot, 4, 450, true);
    gp_lock_held_t held = gp_lock_slot_held(slot, 200, 460, 0);
    assert_true(held.thread == 3 && held.code == 30 && held.given == 450 && held.by_owner);
    held = gp_lock_slot_held(slot, 200, 900, 5); // it gave up: the owner still has it
    assert_true(held.thread == 5 && held.given == 450);
    held = gp_lock_slot_held(slot, 460, 470, 0); // it was not given meanwhile
    assert_true(held.thread == 0 && held.given == 0);
    atomic_store(&slot->waiters, 0);
}

// Locks of one row share its places.
static void others_are_told_apart(void **state)
{
    gp_lock_slot_t *slot = wanted(OTHER), *found = NULL;
    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        give(slot, 7, 1000 + i, true);
    gp_lock_held_t held = gp_lock_slot_held(slot, 900, 2000, 0);
    assert_true(held.thread == 7 && held.given == 1099);
    assert_null(gp_lock_slot_find(OTHER + 8));
    found = gp_lock_slot_find(OTHER);
    assert_ptr_equal(found, slot);
    atomic_store(&slot->waiters, 0);
}

static void an_event_is_given_by_another(void **state)
{
    bool by_owner;
    gp_lock_slot_t *slot = wanted(LOCK + 64);
    (void)state;
    atomic_store(&slot->owner, 1);
    assert_true(gp_lock_slot_leave(slot, 1, &by_owner));
    assert_true(by_owner && !atomic_load(&slot->is_event) && atomic_load(&slot->owner) == 0);
    atomic_store(&slot->owner, 1);
    assert_true(gp_lock_slot_leave(slot, 2, &by_owner));
    assert_true(!by_owner && atomic_load(&slot->is_event));
    atomic_store(&slot->waiters, 0);
    assert_false(gp_lock_slot_leave(slot, 2, &by_owner));
    assert_true(by_owner); // the owner is not known: this may have been
}

// A slot is taken over by the next lock of its place, but not while it is waited for.
static void a_wait_keeps_its_slot(void **state)
{
    gp_lock_slot_t *slot = wanted(LOCK), *other = NULL;
    uintptr_t rival = LOCK;
    (void)state;
    atomic_store(&slot->owner, 9);
    while ((other = gp_lock_slot_claim(rival += 16)) != NULL) {
        assert_ptr_not_equal(other, slot);
        if (other == slot + 1 || other == slot - 1) // its other place, at last
            atomic_store(&other->waiters, 1);
    }
    assert_ptr_equal(gp_lock_slot_find(LOCK), slot);
    atomic_store(&slot->waiters, 0);
    assert_ptr_equal(gp_lock_slot_claim(rival), slot);
    assert_true(atomic_load(&slot->owner) == 0 && gp_lock_slot_find(LOCK) == NULL);
    gp_lock_table_begin_anew();
}

// While recording rests, others take and give it unseen.
static void a_rest_forgets_owners(void **state)
{
    bool by_owner;
    gp_lock_slot_t *slot = wanted(LOCK + 64), *again = NULL;
    (void)state;
    atomic_store(&slot->is_event, false);
    atomic_store(&slot->owner, 1);
    gp_ledger_edge_store(&gp_ledger_edge_epoch_ticks, 500);
    again = gp_lock_slot_find(LOCK + 64);
    assert_ptr_equal(again, slot);
    assert_true(gp_lock_slot_leave(slot, 2, &by_owner));
    assert_true(by_owner && !atomic_load(&slot->is_event));
    atomic_store(&slot->owner, 1);
    assert_ptr_equal(gp_lock_slot_claim(LOCK + 64), slot);
    assert_int_equal(atomic_load(&slot->owner), 1);
    gp_lock_table_begin_anew(); // after a fork
    assert_true(atomic_load(&slot->owner) == 0 && atomic_load(&slot->waiters) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_longest_holder_is_named),  cmocka_unit_test(others_are_told_apart),
        cmocka_unit_test(an_event_is_given_by_another), cmocka_unit_test(a_wait_keeps_its_slot),
        cmocka_unit_test(a_rest_forgets_owners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
