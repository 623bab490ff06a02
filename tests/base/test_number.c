// SPDX-License-Identifier: MIT
// Numbers are read as strtod() reads them in the locale "C", and written so that they are read again.
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"

enum { ROUNDS = 20000 };

static void check(const char *text)
{
    const char *end;
    char *other;
    double number = gp_number_read(text, &end), expected = strtod(text, &other);
    assert_int_equal(end - text, other - text);
    assert_true(fabs(number - expected) <= 1e-15 * fabs(expected) || number == expected);
}

static void test_texts(void **state)
{
    static const char *const texts[] = {
        "",
        "0",
        "1",
        "1.5",
        ".5",
        "5.",
        "-1.25",
        "+2",
        "1e3",
        "1e",
        "1e+",
        "1.e-2x",
        ".",
        "-",
        "e5",
        "1,5",
        "1.5ms",
        "1..5",
        "00012.500",
        "1e400",
        "1e-400",
        "0e999999999999",
        "12345678901234567890123",
        "0.000000000000000000001234",
        "1e99999999999",
        "1700000000.123456789",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        check(texts[i]);
}

static void test_random(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < ROUNDS; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%.*f", rand() % 12, (double)rand() / (1 + rand() % 100000));
        check(text);
    }
}

static void test_written(void **state)
{
    static const struct {
        uint64_t value;
        unsigned decimals;
        const char *text;
    } cases[] = {{0, 0, "0"},    {0, 6, "0"},        {12500, 4, "1.25"}, {5, 3, "0.005"},
                 {1000, 3, "1"}, {1001, 3, "1.001"}, {42, 0, "42"},      {UINT64_MAX, 19, "1.8446744073709551615"}};
    char out[GP_NUMBER_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(gp_number_write(out, cases[i].value, cases[i].decimals), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
