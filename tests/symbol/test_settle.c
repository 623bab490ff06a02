// SPDX-License-Identifier: MIT
// A name that leads into a unit which a helper is reading: the reader waits before it looks at anything of the unit.
// And a function within a type, which is gone past at first.
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "symbol/dwarf_unit.h"

void __real_gp_dwarf_code_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted);
void __real_gp_dwarf_settle(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit);
bool __real_gp_dwarf_abbrevs_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit);
void __wrap_gp_dwarf_code_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted);
void __wrap_gp_dwarf_settle(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit);
bool __wrap_gp_dwarf_abbrevs_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit);

static pthread_t caller;
static const gp_dwarf_unit_t *led_to;
static sem_t has_begun, may_go_on;
static atomic_bool is_amid;       // of the helper's reading
static unsigned settled, meddled; // of the caller's thread

static void wait_for(sem_t *semaphore)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 30; // a test that hangs says nothing
    sem_timedwait(semaphore, &until);
}

// Called by a job, as gp_dwarf_find() is in the same file: the helper has begun with the unit, and stays there.
void __wrap_gp_dwarf_code_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit, const gp_dwarf_wanted_t *wanted)
{
    is_amid = unit == led_to;
    if (unit == led_to) {
        sem_post(&has_begun);
        wait_for(&may_go_on);
    }
    __real_gp_dwarf_code_load(room, unit, wanted);
    is_amid = false;
}

void __wrap_gp_dwarf_settle(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit)
{
    settled += unit == led_to;
    if (unit == led_to)
        sem_post(&may_go_on);
    __real_gp_dwarf_settle(dwarf, unit);
}

bool __wrap_gp_dwarf_abbrevs_load(gp_dwarf_room_t *room, gp_dwarf_unit_t *unit)
{
    if (pthread_equal(pthread_self(), caller) && unit == led_to && is_amid) {
        meddled++;
        sem_post(&may_go_on);
    }
    return __real_gp_dwarf_abbrevs_load(room, unit);
}

static int start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    return pthread_create(thread, NULL, run, argument);
}

static uint64_t address_in(const gp_dwarf_t *dwarf, uint32_t unit)
{
    for (size_t i = 0; i < dwarf->span_count; i++)
        if (dwarf->spans[i].unit == unit)
            return dwarf->spans[i].lo;
    fail_msg("unit %u has no code", unit);
    return 0;
}

static void test_name_in_a_unit_that_is_read(void **state)
{
    (void)state;
    gp_dwarf_place_t places[GP_DWARF_PLACES_MAX];
    gp_elf_t elf;
    caller = pthread_self();
    sem_init(&has_begun, 0, 0);
    sem_init(&may_go_on, 0, 0);
    gp_helpers_use(1, start_thread);
    gp_helpers_t *helpers = gp_helpers_open();
    assert_int_equal(gp_elf_open(&elf, UNITS_APART), 0);
    gp_dwarf_t *dwarf = gp_dwarf_end(gp_dwarf_begin(&elf, UNITS_APART, UNITS_APART, helpers, NULL));
    assert_non_null(dwarf);
    assert_int_equal(dwarf->unit_count, 2);
    led_to = &dwarf->units[1];
    gp_dwarf_expect(dwarf, (uint64_t[]){address_in(dwarf, 1)}, 1);
    wait_for(&has_begun);
    assert_true(is_amid);

    assert_int_equal(gp_dwarf_find(dwarf, address_in(dwarf, 0), places), 1);
    assert_string_equal(places[0].name, "led_to");
    assert_int_equal(places[0].first_line, 42);
    assert_int_equal(meddled, 0);
    assert_int_equal(settled, 1);
    assert_false(is_amid);
    assert_true(led_to->code_loaded); // by the job

    assert_int_equal(gp_dwarf_find(dwarf, address_in(dwarf, 1), places), 1);
    assert_string_equal(places[0].name, "led_to");
    gp_dwarf_close(dwarf);
    gp_elf_close(&elf);
    gp_helpers_close(helpers);
    gp_helpers_use(0, NULL);
    led_to = NULL;
}

static void test_function_in_a_type(void **state)
{
    (void)state;
    enum { BEHIND_LED_TO = 4 };
    gp_dwarf_place_t places[GP_DWARF_PLACES_MAX];
    gp_elf_t elf;
    assert_int_equal(gp_elf_open(&elf, UNITS_APART), 0);
    gp_dwarf_t *dwarf = gp_dwarf_open(&elf, UNITS_APART);
    assert_non_null(dwarf);
    uint64_t led_to_address = address_in(dwarf, 1);
    assert_int_equal(gp_dwarf_find(dwarf, led_to_address, places), 1);
    assert_string_equal(places[0].name, "led_to");
    assert_int_equal(gp_dwarf_find(dwarf, led_to_address + BEHIND_LED_TO, places), 1);
    assert_string_equal(places[0].name, "method");
    assert_int_equal(places[0].first_line, 43);
    gp_dwarf_close(dwarf);
    gp_elf_close(&elf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name_in_a_unit_that_is_read),
        cmocka_unit_test(test_function_in_a_type),
    };
    return cmocka_run_group_tests_name("settle", tests, NULL, NULL);
}
