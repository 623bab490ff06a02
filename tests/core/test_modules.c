// SPDX-License-Identifier: MIT
// The modules of a process that loads and unloads plugins for ever, as a made-up loader tells of them.
#include <link.h>
#include <stdio.h>

#include "cmocka_all.h"
#include "collect/modules.h"

enum { IMAGE_BYTES = 0x1000, LOADED_MAX = 4 };

typedef struct note { // as ld writes it
    ElfW(Nhdr) head;
    char name[4];
    uint32_t build_id[5];
} note_t;

static struct {
    char path[32];
    uintptr_t at;
    uint32_t build; // 0: the file has no build-id
} loaded[LOADED_MAX];
static unsigned loaded_count;
static unsigned long long adds = 1000, subs;

int __wrap_dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *argument), void *argument);

int __wrap_dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t size, void *argument), void *argument)
{
    int result = 0;
    for (unsigned i = 0; i < loaded_count && result == 0; i++) {
        note_t note = {.head = {4, 20, NT_GNU_BUILD_ID}, .name = "GNU", .build_id = {loaded[i].build}};
        const ElfW(Phdr) headers[] = {
            {.p_type = PT_LOAD, .p_memsz = IMAGE_BYTES},
            {.p_type = PT_NOTE, .p_vaddr = (uintptr_t)&note - loaded[i].at, .p_memsz = sizeof(note)},
        };
        struct dl_phdr_info info = {.dlpi_addr = loaded[i].at,
                                    .dlpi_name = loaded[i].path,
                                    .dlpi_phdr = headers,
                                    .dlpi_phnum = loaded[i].build != 0 ? 2 : 1,
                                    .dlpi_adds = adds,
                                    .dlpi_subs = subs};
        result = visit(&info, sizeof(info), argument);
    }
    return result;
}

// Plugin `number` of this build is loaded at `at`, and nothing else but what is in the slots below.
static void load(unsigned slot, unsigned number, uint32_t build, uintptr_t at)
{
    snprintf(loaded[slot].path, sizeof(loaded[slot].path), "/plugin%u.so", number);
    loaded[slot].at = at;
    loaded[slot].build = build;
    loaded_count = slot + 1;
    adds++;
    subs++;
    assert_true(gp_modules_refresh());
}

static size_t module_count(void)
{
    size_t count;
    gp_modules_all(&count);
    return count;
}

static void a_file_is_one_module_wherever_it_is_loaded(void **state)
{
    (void)state;
    load(0, 1, 77, 0x10000);
    gp_loc_t loc = gp_modules_locate(0x10123);
    for (uintptr_t at = 0x20000; at < 0x400000; at += 0x10000) {
        load(0, 1, 77, at);
        assert_int_equal(gp_modules_locate(at + 0x123), loc);
        assert_int_equal(GP_LOC_MODULE(gp_modules_locate(at - 0x10000 + 0x123)), 0); // it is there no more
    }
    assert_int_equal(module_count(), 1);
}

// Names are prepared for what was met, whatever is loaded meanwhile.
static void the_latest_outlive_what_is_loaded_since(void **state)
{
    gp_loc_t latest[GP_MODULES_LATEST];
    (void)state;
    load(0, 1, 77, 0x10000);
    uint32_t since = gp_modules_looked_up();
    gp_loc_t loc = gp_modules_locate(0x10200);
    assert_int_equal(gp_modules_locate(0x10200), loc); // known by now
    load(0, 2, 88, 0x10000);
    gp_loc_t other = gp_modules_locate(0x10200);
    gp_modules_locate(0x90000); // no module's
    assert_int_equal(gp_modules_looked_up(), since + 2);
    assert_int_equal(gp_modules_latest(since, latest), 2);
    assert_int_equal(latest[0], loc);
    assert_int_equal(latest[1], other);
    assert_int_equal(gp_modules_latest(since + 1, latest), 1);
    assert_int_equal(latest[0], other);
    assert_int_equal(gp_modules_latest(since + 2, latest), 0);

    for (int round = 0; round < 3; round++) { // more than there is room for
        load(0, 2, 88, 0x10000);
        for (uintptr_t at = 0; at < IMAGE_BYTES; at += 2)
            gp_modules_locate(0x10000 + at);
    }
    gp_loc_t last = gp_modules_locate(0x10401);
    assert_int_equal(gp_modules_latest(since, latest), GP_MODULES_LATEST);
    assert_int_equal(latest[GP_MODULES_LATEST - 1], last);
}

static void what_may_be_another_file_is_another_module(void **state)
{
    (void)state;
    size_t before = module_count();
    load(0, 1, 78, 0x10000); // another build
    load(0, 2, 77, 0x10000); // another path
    assert_int_equal(module_count(), before + 2);
    load(0, 3, 0, 0x10000); // no build-id: known by where it is
    load(0, 3, 0, 0x20000);
    load(0, 3, 0, 0x10000);
    assert_int_equal(module_count(), before + 4);
}

static void two_copies_at_a_time_are_two(void **state)
{
    (void)state;
    size_t before = module_count();
    load(0, 9, 99, 0x10000);
    load(1, 9, 99, 0x20000);
    gp_loc_t one = gp_modules_locate(0x10001), two = gp_modules_locate(0x20001);
    assert_int_not_equal(GP_LOC_MODULE(one), GP_LOC_MODULE(two));
    load(1, 9, 99, 0x20000);
    assert_int_equal(gp_modules_locate(0x10001), one);
    assert_int_equal(gp_modules_locate(0x20001), two);
    assert_int_equal(module_count(), before + 2);
}

static void those_without_room_are_counted(void **state)
{
    (void)state;
    enum { BEYOND = 1000 };
    load(0, 1, 77, 0x10000);
    gp_loc_t loc = gp_modules_locate(0x10123);
    unsigned number = 1000;
    while (module_count() < GP_MODULES_MAX)
        load(0, number++, 1, 0x10000);
    assert_int_equal(gp_modules_lost(), 0);
    assert_int_equal(GP_LOC_MODULE(gp_modules_locate(0x10123)), GP_MODULES_MAX);
    for (unsigned i = 0; i < BEYOND; i++)
        load(0, number++, 1, 0x10000);
    assert_int_equal(module_count(), GP_MODULES_MAX);
    assert_int_equal(gp_modules_lost(), BEYOND);
    assert_int_equal(gp_modules_locate(0x10123), GP_LOC(0, 0x10123));
    load(0, 1, 77, 0x50000); // a known module keeps its place
    assert_int_equal(gp_modules_locate(0x50123), loc);
    assert_int_equal(gp_modules_lost(), BEYOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_one_module_wherever_it_is_loaded),
        cmocka_unit_test(the_latest_outlive_what_is_loaded_since),
        cmocka_unit_test(what_may_be_another_file_is_another_module),
        cmocka_unit_test(two_copies_at_a_time_are_two),
        cmocka_unit_test(those_without_room_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
