// SPDX-License-Identifier: MIT
// Code objects that die while sampling runs: each is freed by its own interpreter.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpython/interpreter/code_objects.h"
#include "cpython/interpreter/frame_walk.h"
#include "signal/handler.h"

enum { CODES = 8, MAIN, OTHER };

typedef struct code { // stands for a code object
    uint64_t made_by, freed_by, times;
} code_t;

static code_t codes[CODES];
static uintptr_t current = MAIN;
static int is_ending;
static void (*dealloc)(void *code);

static void *interpreter(void)
{
    return (void *)current; // NOLINT(performance-no-int-to-ptr)
}

static void *main_interpreter(void)
{
    return (void *)(uintptr_t)MAIN; // NOLINT(performance-no-int-to-ptr)
}

static int is_finalizing(void)
{
    return is_ending;
}

static void free_code(void *freed)
{
    code_t *code = freed;
    code->freed_by = current;
    code->times++;
}

// A code object dies in the interpreter that made it.
static void die(size_t index, uintptr_t in)
{
    current = in;
    codes[index].made_by = in;
    dealloc(&codes[index]);
}

static void drain(void)
{
    gp_cpython_code_before_drain();
    gp_cpython_code_after_drain();
}

static void test_main_interpreter_waits(void **unused)
{
    (void)unused;
    die(0, MAIN);
    assert_int_equal(codes[0].times, 0);
    drain();
    die(1, MAIN);
    assert_int_equal(codes[0].times, 1);
    assert_int_equal(codes[1].times, 0);
}

static void test_another_does_not(void **unused)
{
    (void)unused;
    drain();
    die(2, OTHER);
    assert_int_equal(codes[2].times, 1);
    assert_int_equal(codes[1].times, 0); // the main one's, which may be freed now, but not here
    drain();
    die(3, MAIN);
    assert_int_equal(codes[1].times, 1);
    assert_int_equal(codes[2].times, 1);
}

static void test_main_interpreter_ends(void **unused)
{
    (void)unused;
    drain();
    die(4, MAIN);
    assert_int_equal(codes[3].times, 1);
    is_ending = 1;
    die(5, MAIN); // kept for samples of it
    assert_int_equal(codes[4].times + codes[5].times, 0);
    is_ending = 0;
    die(6, MAIN); // of the next
    drain();
    die(7, MAIN);
    assert_int_equal(codes[4].times + codes[5].times, 0);
    assert_int_equal(codes[6].times, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_main_interpreter_waits),
        cmocka_unit_test(test_another_does_not),
        cmocka_unit_test(test_main_interpreter_ends),
    };
    gp_cpython_runtime.interpreter = interpreter;
    gp_cpython_runtime.main_interpreter = main_interpreter;
    gp_cpython_runtime.is_finalizing = is_finalizing;
    dealloc = free_code;
    gp_cpython_code_watch(&dealloc);
    atomic_store_explicit(&gp_handler_sampling, true, memory_order_release);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
