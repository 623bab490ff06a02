// SPDX-License-Identifier: MIT
// Code objects that die while sampling runs: each is freed by its own interpreter.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/functions.h"
#include "cpython/interpreter/api.h"
#include "cpython/interpreter/code_objects.h"
#include "cpython/interpreter/frame_walk.h"
#include "signal/handler.h"
#include "signal/ticks.h"

enum { CODES = 9, MAIN, OTHER };

typedef struct code { // stands for a code object
    uint64_t made_by, freed_by, times;
} code_t;

static code_t codes[CODES];
static uintptr_t current = MAIN;
static int is_ending;
static void (*dealloc)(void *code), (*told_dealloc)(void *code);

static void *interpreter(void)
{
    return (void *)current; // NOLINT(performance-no-int-to-ptr)
}

static void *main_interpreter(void)
{
    return (void *)(uintptr_t)MAIN; // NOLINT(performance-no-int-to-ptr)
}

static gp_py_t *current_state(void)
{
    return (gp_py_t *)(void *)&codes[0];
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
    die(8, OTHER); // which it ends
    assert_int_equal(codes[8].times, 1);
    is_ending = 0;
    die(6, MAIN); // of the next
    drain();
    die(7, MAIN);
    assert_int_equal(codes[4].times + codes[5].times, 0);
    assert_int_equal(codes[6].times, 1);
}

// Stand-ins for texts, bytes and code objects with names.
typedef struct text {
    uint64_t references;
    void *type;
    char data[16];
} text_t;

typedef struct bytes {
    uint64_t references;
    void *type;
    uint64_t length, hash;
    uint8_t data[8];
} bytes_t;

typedef struct told {
    uint64_t references;
    void *type;
    uint64_t first_line;
    text_t *name, *file;
    bytes_t *lines;
    uint64_t instructions[2];
} told_t;

static const char *utf8_of(gp_py_t *text, ptrdiff_t *length)
{
    const char *data = ((text_t *)(void *)text)->data;
    *length = (ptrdiff_t)strlen(data);
    return data;
}

static void fetch(gp_py_t **type, gp_py_t **value, gp_py_t **traceback)
{
    *type = *value = *traceback = NULL;
}

static void restore(gp_py_t *type, gp_py_t *value, gp_py_t *traceback)
{
    (void)type, (void)value, (void)traceback;
}

static const char *name_at(uintptr_t word, uint64_t ticks)
{
    uint64_t loc = gp_cpython_code_locate(word, ticks);
    bool is_function = GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE;
    return is_function ? gp_functions_at(GP_LANGUAGE_FUNCTION(GP_LOC_OFFSET(loc)))->name : NULL;
}

static void free_told(void *freed)
{
    (void)freed;
}

// An address is two functions of another interpreter in turn: a sample means the function of its time.
static void test_another_is_known_by_its_time(void **unused)
{
    static gp_cpython_layout_t layout = {.code_first_line = offsetof(told_t, first_line),
                                         .code_name = offsetof(told_t, name),
                                         .code_file = offsetof(told_t, file),
                                         .code_lines = offsetof(told_t, lines),
                                         .code_instructions = offsetof(told_t, instructions)};
    static char text_type;
    static text_t first = {1, &text_type, "first"}, second = {1, &text_type, "second"},
                  file = {1, &text_type, "file.py"};
    static bytes_t lines = {.references = 1, .length = 2, .data = {0x80, 0}};
    static told_t told = {.first_line = 7, .file = &file, .lines = &lines};
    (void)unused;
    gp_py.utf8 = utf8_of;
    gp_py.text_type = (gp_py_t *)(void *)&text_type;
    gp_py.error_fetch = fetch;
    gp_py.error_restore = restore;
    gp_cpython_runtime.layout = &layout;
    gp_cpython_code_watch(&told_dealloc);
    gp_cpython_code_before_drain();
    current = OTHER;
    uintptr_t word = gp_cpython_word(&layout, (uintptr_t)&told, (uintptr_t)told.instructions);
    uint64_t begin = gp_ticks_counter();
    told.name = &first;
    told_dealloc(&told);
    uint64_t between = gp_ticks_counter();
    told.name = &second;
    told_dealloc(&told);
    assert_string_equal(name_at(word, begin), "first"); // of deaths since the round began, too
    assert_string_equal(name_at(word, between), "second");
    assert_null(name_at(word, gp_ticks_counter()));
    gp_cpython_code_after_drain();
    gp_cpython_code_before_drain();
    assert_string_equal(name_at(word, begin), "first"); // in the round after, too: it may be in a ring
    assert_string_equal(name_at(word, between), "second");
    gp_cpython_code_after_drain();
    assert_null(name_at(word, begin));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_main_interpreter_waits),
        cmocka_unit_test(test_another_does_not),
        cmocka_unit_test(test_main_interpreter_ends),
        cmocka_unit_test(test_another_is_known_by_its_time),
    };
    gp_cpython_runtime.interpreter = interpreter;
    gp_cpython_runtime.main_interpreter = main_interpreter;
    gp_cpython_runtime.is_finalizing = is_finalizing;
    gp_py.current_state = current_state;
    dealloc = free_code;
    told_dealloc = free_told;
    gp_cpython_code_watch(&dealloc);
    atomic_store_explicit(&gp_handler_sampling, true, memory_order_release);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
