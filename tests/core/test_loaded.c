// SPDX-License-Identifier: MIT
// Symbols of loaded modules, as dlsym() would find them.
#include "base/loaded.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_defined_or_not(void **state)
{
    static const char *const names[] = {"malloc", "dlopen", "cmocka_set_message_output",
                                        "main",   "",       "no_such_function"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (dlsym(RTLD_DEFAULT, names[i]) != NULL)
            assert_true(gp_loaded_defines(names[i]));
    assert_true(gp_loaded_defines("malloc"));
    assert_false(gp_loaded_defines("no_such_function"));
    assert_false(gp_loaded_defines(""));
}

static void test_comes_and_goes(void **state)
{
    (void)state;
    assert_false(gp_loaded_defines("zlibVersion"));
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (library == NULL)
        skip();
    assert_true(gp_loaded_defines("zlibVersion"));
    dlclose(library);
    assert_false(gp_loaded_defines("zlibVersion"));
}

// A used symbol is not a defined one.
static void test_used_only(void **state)
{
    (void)state;
    assert_false(gp_loaded_defines("__gmon_start__"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defined_or_not),
        cmocka_unit_test(test_comes_and_goes),
        cmocka_unit_test(test_used_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
