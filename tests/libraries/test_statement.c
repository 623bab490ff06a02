// SPDX-License-Identifier: MIT
// Statements without what may be secret, and the first words of commands.
#include "../core/cmocka_all.h"

#include <string.h>

#include "libraries/call_span.h"

static void test_statements(void **state)
{
    (void)state;
    static const struct {
        const char *sql, *plain;
    } cases[] = {
        {"", ""},
        {"SELECT 1", "SELECT ?"},
        {"SELECT a1, b2c FROM t3", "SELECT a1, b2c FROM t3"},
        {"select *\n\t from t  where x=12.5e3", "select * from t where x=?"},
        {"INSERT INTO t VALUES ('it''s', 7, -3)", "INSERT INTO t VALUES (?, ?, -?)"},
        {"WHERE a='x' AND b='y'", "WHERE a=? AND b=?"},
        {"WHERE a = $1 AND b = ?2 AND c = :3", "WHERE a = $1 AND b = ?2 AND c = :3"},
        {"'never ends", "?"},
        {"'", "?"},
        {"SELECT \"Name 1\"", "SELECT \"Name ?\""},
        {"SELECT x'00ff'", "SELECT x?"},
        {"0x1F", "?"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char plain[64];
        gp_call_statement(cases[i].sql, plain, sizeof(plain));
        assert_string_equal(plain, cases[i].plain);
    }
}

static void test_long_ones_are_cut(void **state)
{
    (void)state;
    char plain[8];
    gp_call_statement("SELECT abcdefgh", plain, sizeof(plain));
    assert_string_equal(plain, "SELECT ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statements),
        cmocka_unit_test(test_long_ones_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
