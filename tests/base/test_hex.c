// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hex.h"

static void decodes_percent(void **state)
{
    static const struct {
        const char *text, *decoded;
        size_t bad;
    } cases[] = {
        {"", "", 0},
        {"plain", "plain", 0},
        {"%41", "A", 0},
        {"a%20b%2fc%2F", "a b/c/", 0},
        {"%e6%97", "\xe6\x97", 0},
        {"%25%32%35", "%25", 0},
        {"%", "%", 1},
        {"%4", "%4", 1},
        {"a%4", "a%4", 1},
        {"%zz", "%zz", 1},
        {"%4z%41", "%4zA", 1},
        {"%00", "%00", 1},
        {"%%41", "%A", 1},
        {"%-1", "%-1", 1},
        {"%%%", "%%%", 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[32];
        strcpy(text, cases[i].text);
        assert_int_equal(gp_hex_decode_percent(text, strlen(text)), cases[i].bad);
        assert_string_equal(text, cases[i].decoded);
    }
}

// No more than `len` bytes are looked at: two digits behind are none of the text's.
static void ends_where_it_is_said(void **state)
{
    char text[] = "ab%41";
    (void)state;
    assert_int_equal(gp_hex_decode_percent(text, 4), 1);
    assert_string_equal(text, "ab%4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decodes_percent), cmocka_unit_test(ends_where_it_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
