// SPDX-License-Identifier: MIT
// The few macros of cmocka for these tests, for processors without a cross-built cmocka in Debian.
#ifndef MINI_CMOCKA_H
#define MINI_CMOCKA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define mini_fail(text)              (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, text), exit(1))
#define assert_true(c)               ((c) ? (void)0 : (void)mini_fail(#c))
#define assert_false(c)              assert_true(!(c))
#define assert_null(p)               assert_true((p) == NULL)
#define assert_non_null(p)           assert_true((p) != NULL)
#define assert_int_equal(a, b)       assert_true((long long)(a) == (long long)(b))
#define assert_int_not_equal(a, b)   assert_true((long long)(a) != (long long)(b))
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)

struct CMUnitTest {
    const char *name;
    void (*run)(void **);
};
#define cmocka_unit_test(f)                                                                                            \
    {                                                                                                                  \
#f, f                                                                                                          \
    }
#define skip()                                                                                                         \
    do {                                                                                                               \
        fprintf(stderr, "[ SKIPPED ]\n");                                                                              \
        return;                                                                                                        \
    } while (0)

static inline int mini_run(const struct CMUnitTest *tests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "[ RUN  ] %s\n", tests[i].name);
        tests[i].run(NULL);
    }
    fprintf(stderr, "%zu tests passed\n", count);
    return 0;
}
#define cmocka_run_group_tests(tests, setup, teardown) mini_run(tests, sizeof tests / sizeof *tests)

#endif
