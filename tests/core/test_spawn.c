// SPDX-License-Identifier: MIT
// Names that change while they are read; places of creation: found again, bounded, counted when there is no room.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "coro/announce.h"
#include "coro/coro_name.h"
#include "coro/registry.h"
#include "coro/spawn.h"
#include "coro/threads.h"
#include "unwind/unwind.h"

static prof_coro_t *self(void)
{
    return gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
}

static void names_are_cut_between_characters(void **state)
{
    (void)state;
    char name[GP_CORO_NAME_SIZE];
    prof_coro_t *coro = prof_coro_create(NULL, 0, "short");
    gp_coro_name_get(coro, name);
    assert_string_equal(name, "short");
    prof_coro_name(coro, "12345678901234567890123456789012345678901234567"); // 47 bytes
    gp_coro_name_get(coro, name);
    assert_int_equal(strlen(name), 47);
    prof_coro_name(coro, "1234567890123456789012345678901234567890123456\xc3\xa9"); // the last one has two bytes
    gp_coro_name_get(coro, name);
    assert_int_equal(strlen(name), 46);
    prof_coro_name(
        coro, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
              "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80");
    gp_coro_name_get(coro, name);
    assert_int_equal(strlen(name), 47); // no UTF-8: bytes
    prof_coro_name(coro, NULL);
    gp_coro_name_get(coro, name);
    assert_string_equal(name, "");
    assert_false(gp_coro_is_named(coro));
    prof_coro_destroy(coro);
}

static void a_default_name_gives_way(void **state)
{
    (void)state;
    char name[GP_CORO_NAME_SIZE];
    prof_coro_t *coro = prof_coro_create(NULL, 0, NULL);
    uint64_t id = coro->id;
    assert_false(gp_coro_name_default(coro, id + 1, "another's"));
    assert_true(gp_coro_name_default(coro, id, "by what it runs"));
    assert_false(gp_coro_name_default(coro, id, "again"));
    gp_coro_name_get(coro, name);
    assert_string_equal(name, "by what it runs");
    prof_coro_name(NULL, "not the thread's own stack");
    assert_false(gp_coro_is_named(self()));
    prof_coro_destroy(coro);
}

enum { RENAMES = 200000 };

static void *rename_it(void *argument)
{
    static const char *const names[] = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bb", "cccccccccccccccccccc"};
    for (int i = 0; i < RENAMES; i++)
        prof_coro_name(argument, names[i % 3]);
    return NULL;
}

static void a_reader_sees_one_name_or_another(void **state)
{
    (void)state;
    char name[GP_CORO_NAME_SIZE];
    prof_coro_t *coro = prof_coro_create(NULL, 0, "bb");
    pthread_t thread;
    pthread_create(&thread, NULL, rename_it, coro);
    for (int i = 0; i < RENAMES; i++) {
        gp_coro_name_get(coro, name);
        size_t expected = name[0] == 'a' ? 42 : name[0] == 'b' ? 2 : 20;
        assert_int_equal(strlen(name), expected);
        assert_int_equal(strspn(name, (char[]){name[0], '\0'}), expected);
    }
    pthread_join(thread, NULL);
    prof_coro_destroy(coro);
}

static void want(int wanted)
{
    atomic_store_explicit(&gp_spawn_wanted, wanted != 0, memory_order_relaxed);
    __atomic_store_n(&prof_coro_active, wanted, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) uint32_t site_at_depth(int depth)
{
    uint32_t site;
    if (depth > 0) {
        site = site_at_depth(depth - 1);
    } else {
        gp_park_t caller = gp_spawn_caller();
        site = gp_spawn_site_here(self(), &caller);
    }
    __asm__ volatile("" : "+r"(site)); // no tail call
    return site;
}

static void a_place_has_one_number(void **state)
{
    (void)state;
    want(0);
    assert_int_equal(site_at_depth(3), 0); // not wanted
    want(1);
    uint32_t sites[2];
    for (volatile int i = 0; i < 2; i++) // one place of call
        sites[i] = site_at_depth(3);
    assert_int_not_equal(sites[0], 0);
    assert_int_equal(sites[0], sites[1]);
    uint32_t deeper = site_at_depth(4);
    assert_int_not_equal(deeper, sites[0]);
    const gp_spawn_site_t *one = gp_spawn_site_at(sites[0]), *other = gp_spawn_site_at(deeper);
    assert_int_equal(other->depth, one->depth + 1);
    assert_int_equal(one->flags, 0);
    assert_int_equal(one->frames[0], other->frames[0]); // the caller of the innermost one
    prof_coro_t *coro = prof_coro_create(NULL, 0, "made here");
    assert_int_not_equal(coro->spawn_site, 0);
    want(0);
    prof_coro_destroy(coro);
    coro = prof_coro_create(NULL, 0, "not wanted");
    assert_int_equal(coro->spawn_site, 0);
    prof_coro_destroy(coro);
}

static void deep_stacks_keep_both_ends(void **state)
{
    (void)state;
    want(1);
    const gp_spawn_site_t *deep = gp_spawn_site_at(site_at_depth(1000)), *flat = gp_spawn_site_at(site_at_depth(0));
    assert_int_equal(deep->depth, GP_SPAWN_DEPTH);
    assert_int_equal(deep->flags, GP_UNWIND_TRUNCATED);
    assert_int_equal(deep->frames[deep->depth - 1], flat->frames[flat->depth - 1]);
    want(0);
}

// Two places of call at each level: as many stacks as there are paths.
static __attribute__((noinline)) uint32_t site_on_path(unsigned path, int depth)
{
    uint32_t site;
    if (depth == 0) {
        gp_park_t caller = gp_spawn_caller();
        return gp_spawn_site_here(self(), &caller);
    }
    if (path & 1) {
        site = site_on_path(path >> 1, depth - 1);
        __asm__ volatile("nop" : "+r"(site)); // not the same code as below
    } else {
        site = site_on_path(path >> 1, depth - 1);
        __asm__ volatile("" : "+r"(site));
    }
    return site;
}

static void the_table_is_bounded(void **state)
{
    (void)state;
    want(1);
    enum { DEPTH = 15 };
    uint64_t lost = gp_spawn_lost;
    uint32_t none = 0, first = 0;
    for (int round = 0; round < 2; round++) {
        for (volatile unsigned path = 0; path < 1u << DEPTH; path++) {
            uint32_t site = site_on_path(path, DEPTH);
            none += site == 0;
            if (path == 0 && round == 0)
                first = site;
            if (path == 0)
                assert_int_equal(site, first); // what is known stays known
        }
    }
    assert_int_equal(gp_spawn_site_count(), GP_SPAWN_SITES);
    assert_int_equal(gp_spawn_lost - lost, none);
    assert_true(none >= GP_SPAWN_SITES);
    want(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_cut_between_characters),  cmocka_unit_test(a_default_name_gives_way),
        cmocka_unit_test(a_reader_sees_one_name_or_another), cmocka_unit_test(a_place_has_one_number),
        cmocka_unit_test(deep_stacks_keep_both_ends),        cmocka_unit_test(the_table_is_bounded),
    };
    gp_unwind_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
