// SPDX-License-Identifier: MIT
// The table of greenlets, read without the interpreter lock while its holder changes it.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "greenlet/greenlet_map.h"
#include "signal/thread.h"

enum { ROUNDS = 20000, LENT = 2000000, OTHERS = 100, MANY = 100000, STRIDE = 16 };

static const void *_Atomic running; // greenlet of the thread that reads
static bool is_lent;                // it runs as others at times
static size_t freed, seen, wrong;

void __real_free(void *memory);
void __wrap_free(void *memory);

void __wrap_free(void *memory)
{
    freed += memory != NULL;
    __real_free(memory);
}

// Every word of a record follows from its number: one that is torn is seen.
static gp_greenlet_t record(size_t number)
{
    uintptr_t address = 0x7f0000000000 + number * STRIDE;
    return (gp_greenlet_t){
        .greenlet = (const void *)address,    // NOLINT(performance-no-int-to-ptr)
        .coro = (prof_coro_t *)(address + 1), // NOLINT(performance-no-int-to-ptr)
        .coro_id = address + 2,
        .object = (const void *)(address + 3), // NOLINT(performance-no-int-to-ptr)
    };
}

static void put(size_t number)
{
    gp_greenlet_t added = record(number);
    gp_greenlet_put(&added);
}

static void take(size_t number)
{
    gp_greenlet_t gone = record(number);
    assert_ptr_equal(gp_greenlet_take(gone.greenlet), gone.coro);
}

// A handler's reading on a thread without the lock.
static void *read_running(void *unused)
{
    gp_thread_t self = {.root_id = 1};
    const void *state[2] = {NULL, NULL};
    const void *const *place = state;
    gp_thread_self = &self;
    gp_greenlet_here.state = &place;
    while ((state[1] = atomic_load_explicit(&running, memory_order_acquire)) != NULL) {
        uint64_t id = UINT64_MAX; // left alone where the table is just being changed
        uintptr_t coro = (uintptr_t)gp_greenlet_unreported(&id), expected = (uintptr_t)state[1];
        if (state[1] != atomic_load_explicit(&running, memory_order_acquire))
            continue; // it has just been over
        seen += coro != 0;
        wrong +=
            coro != 0 ? coro % STRIDE != 1 || (coro != expected + 1 && !is_lent) || id != coro + 1 : id != UINT64_MAX;
    }
    gp_greenlet_here.state = NULL;
    gp_thread_self = NULL;
    return unused;
}

// The running greenlet is put last, among others; when those go, it moves to where it belongs.
static void test_moved_while_it_is_read(void **unused)
{
    (void)unused;
    pthread_t reader;
    put(0);
    atomic_store_explicit(&running, record(0).greenlet, memory_order_release);
    assert_int_equal(pthread_create(&reader, NULL, read_running, NULL), 0);
    for (size_t round = 1; round <= ROUNDS; round++) {
        size_t first = round * (OTHERS + 1), last = first + OTHERS;
        for (size_t i = first; i <= last; i++)
            put(i);
        atomic_store_explicit(&running, record(last).greenlet, memory_order_release);
        take(round == 1 ? 0 : first - 1);
        for (size_t i = first; i < last; i++)
            take(i);
    }
    atomic_store_explicit(&running, NULL, memory_order_release);
    assert_int_equal(pthread_join(reader, NULL), 0);
    print_message("%zu records read\n", seen);
    assert_int_equal(wrong, 0);
    take(ROUNDS * (OTHERS + 1) + OTHERS);
}

// A greenlet that runs as a call of a pool, and as itself again.
static void test_lent_while_it_is_read(void **unused)
{
    (void)unused;
    pthread_t reader;
    gp_greenlet_t as_call = record(1);
    as_call.greenlet = record(0).greenlet;
    put(0);
    is_lent = true;
    seen = 0;
    atomic_store_explicit(&running, as_call.greenlet, memory_order_release);
    assert_int_equal(pthread_create(&reader, NULL, read_running, NULL), 0);
    for (size_t i = 0; i < LENT; i++) {
        gp_greenlet_put(&as_call);
        put(0);
    }
    atomic_store_explicit(&running, NULL, memory_order_release);
    assert_int_equal(pthread_join(reader, NULL), 0);
    print_message("%zu records read\n", seen);
    assert_int_equal(wrong, 0);
    take(0);
}

// Between the greenlet's end, which takes its record, and the switch away, which was reported before.
static void test_one_that_is_over_is_what_was_reported(void **unused)
{
    (void)unused;
    gp_thread_t self = {.root = record(9).coro, .root_id = 1};
    const void *state[2] = {record(1).greenlet, record(0).greenlet}; // the main one, and the running one
    const void *const *place = state;
    uint64_t id = UINT64_MAX;
    gp_thread_self = &self;
    gp_greenlet_here.state = &place;
    gp_greenlet_here.last = record(2).greenlet;
    put(0);
    assert_ptr_equal(gp_greenlet_unreported(&id), record(0).coro);
    assert_int_equal(id, record(0).coro_id);
    take(0);
    id = UINT64_MAX;
    assert_null(gp_greenlet_unreported(&id));
    assert_true(id == UINT64_MAX);
    state[1] = state[0];
    assert_ptr_equal(gp_greenlet_unreported(&id), self.root);
    assert_int_equal(id, self.root_id);
    gp_greenlet_here = (gp_greenlet_here_t){0};
    gp_thread_self = NULL;
}

static void test_outgrown_tables_stay(void **unused)
{
    (void)unused;
    freed = 0;
    for (size_t i = 0; i < MANY; i++)
        put(i);
    assert_int_equal(freed, 0);
    for (size_t i = 0; i < MANY; i++)
        take(i);
    assert_null(gp_greenlet_find(record(0).greenlet));
    assert_int_equal(freed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moved_while_it_is_read),
        cmocka_unit_test(test_lent_while_it_is_read),
        cmocka_unit_test(test_one_that_is_over_is_what_was_reported),
        cmocka_unit_test(test_outgrown_tables_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
