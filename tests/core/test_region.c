// SPDX-License-Identifier: MIT
// The region table against a plain list: look-ups, replacement, reuse, and readers beside a writer.
#include <pthread.h>
#include <stdlib.h>

#include "cmocka_all.h"
#include "coro/registry.h"
#include "model/kinds.h"
#include "signal/region.h"

enum { BASE = 0x10000000, MANY = 2000 };

static prof_coro_t *make(uintptr_t lo, size_t size)
{
    gp_coro_birth_t birth = {.lo = lo, .hi = lo + size, .kind = GP_CORO_ANNOUNCED};
    return gp_coro_new(&birth);
}

static prof_coro_t *find(uintptr_t address)
{
    uint64_t id;
    return gp_region_find(address, &id);
}

static void finds_every_byte_and_no_more(void **state)
{
    (void)state;
    static const size_t sizes[] = {1024, 4096, 5000, 16384, 65528, 1 << 20, (1 << 20) + 4096, 8 << 20};
    uintptr_t at = BASE;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        at += 64;
        prof_coro_t *coro = make(at, sizes[i]);
        assert_non_null(coro);
        assert_ptr_equal(find(at), coro);
        assert_ptr_equal(find(at + sizes[i] - 1), coro);
        assert_ptr_equal(find(at + sizes[i] / 2), coro);
        assert_ptr_not_equal(find(at - 1), coro);
        assert_null(find(at + sizes[i]));
        at += sizes[i];
    }
}

static void same_base_replaces(void **state)
{
    (void)state;
    uintptr_t at = 0x40000000;
    prof_coro_t *first = make(at, 65536);
    uint64_t first_id = first->id, id;
    prof_coro_t *second = make(at, 65536);
    assert_true(second->id > first_id);
    assert_ptr_equal(gp_region_find(at + 100, &id), second);
    assert_int_equal(id, second->id);
    gp_coro_retire(second);
    assert_null(find(at + 100));
}

static void youngest_wins_across_size_classes(void **state)
{
    (void)state;
    uintptr_t at = 0x50000000;
    make(at, 1 << 20);
    prof_coro_t *small = make(at + 4096, 8192); // the big one's memory was reused
    assert_ptr_equal(find(at + 5000), small);
    assert_ptr_not_equal(find(at + 100), small);
}

static void agrees_with_a_list(void **state)
{
    (void)state;
    static struct {
        uintptr_t lo, hi;
        prof_coro_t *coro;
    } list[MANY];
    srand(7);
    for (int i = 0; i < MANY; i++) {
        size_t size = 4096u << (rand() % 6);
        list[i].lo = 0x100000000ull + (uintptr_t)i * 0x80000;
        list[i].hi = list[i].lo + size;
        list[i].coro = make(list[i].lo, size);
    }
    for (int round = 0; round < 200000; round++) {
        int i = rand() % MANY;
        if (rand() % 10 == 0) {
            gp_coro_retire(list[i].coro);
            list[i].coro = rand() % 2 ? make(list[i].lo, list[i].hi - list[i].lo) : NULL;
        }
        uintptr_t address = list[i].lo + (uintptr_t)rand() % 0x80000;
        prof_coro_t *expected = address < list[i].hi ? list[i].coro : NULL;
        assert_ptr_equal(find(address), expected);
    }
}

static _Atomic int stop;

static void *churn(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !stop; i++)
        gp_coro_retire(make(0x300000000ull + (i % 64) * 65536, 65536));
    return NULL;
}

static void reader_beside_writer_never_misses(void **state)
{
    (void)state;
    pthread_t thread;
    prof_coro_t *steady[64];
    for (unsigned i = 0; i < 64; i++)
        steady[i] = make(0x200000000ull + i * 65536, 65536);
    pthread_create(&thread, NULL, churn, NULL);
    for (int i = 0; i < 2000000; i++)
        assert_ptr_equal(find(0x200000000ull + (unsigned)(i % 64) * 65536 + 17), steady[i % 64]);
    stop = 1;
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_byte_and_no_more),      cmocka_unit_test(same_base_replaces),
        cmocka_unit_test(youngest_wins_across_size_classes), cmocka_unit_test(agrees_with_a_list),
        cmocka_unit_test(reader_beside_writer_never_misses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
