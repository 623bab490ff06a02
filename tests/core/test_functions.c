// SPDX-License-Identifier: MIT
// Functions of language runtimes: one number each, and a bound on how many there are.
#include <stdio.h>
#include <string.h>

#include "cmocka_all.h"
#include "collect/functions.h"

static uint32_t number_of(const char *name, const char *file, uint32_t line)
{
    return gp_functions_number(name, strlen(name), file, strlen(file), line);
}

static void a_function_keeps_its_number(void **state)
{
    (void)state;
    uint32_t one = number_of("f", "a.py", 1), two = number_of("f", "a.py", 2), three = number_of("f", "b.py", 1);
    assert_int_not_equal(one, two);
    assert_int_not_equal(one, three);
    assert_int_equal(number_of("f", "a.py", 1), one);
    assert_string_equal(gp_functions_at(three)->file, "b.py");
    assert_int_equal(gp_functions_count(), 3);
    assert_int_equal(gp_functions_unnamed(), 0);
}

// exec() of generated sources: the same function in ever new files.
static void those_that_find_no_room_are_one(void **state)
{
    (void)state;
    enum { MANY = 3 * GP_FUNCTIONS_MAX };
    uint32_t last = 0, first = number_of("f", "a.py", 1);
    for (uint32_t i = 0; i < MANY; i++) {
        char file[32];
        snprintf(file, sizeof(file), "<generated %u>", i);
        last = number_of("generated", file, 1);
        assert_int_not_equal(last, 0);
    }
    assert_int_equal(gp_functions_count(), GP_FUNCTIONS_MAX);
    assert_true(gp_functions_is_other(last));
    assert_string_equal(gp_functions_at(last)->name, "[other functions]");
    assert_int_equal(gp_functions_unnamed(), MANY - (GP_FUNCTIONS_MAX - 1 - 3));
    assert_int_equal(number_of("f", "a.py", 1), first); // known functions keep their numbers
    assert_false(gp_functions_is_other(first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_keeps_its_number),
        cmocka_unit_test(those_that_find_no_room_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
