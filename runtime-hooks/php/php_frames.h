// SPDX-License-Identifier: MIT
// PHP's frames: read by the handler, named by the collector.
//
// Model: the engine has one thread, and its frames in a list, on stacks of its own and in objects of generators; a
// variable leads to the innermost one. The handler walks the list on that thread. A function is what a frame runs: a
// zend_op_array, or a function written in C. Closures are copies, and a script's functions are made anew by each
// request, so a function is known by what it is called, by its class, its file and its lines; the handler compares
// these, and copies them at first sight (signal/met.h). A frame word is a function's number and a line, and never
// means something else.
//   A Fiber's list ends at a frame without a name; the frames behind that are its resumer's.
//
// Source: PHP 8.2, Zend/zend_compile.h (zend_op_array, zend_internal_function, zend_execute_data, ZEND_CALL_*),
// zend_globals.h (zend_executor_globals), zend_types.h (zend_string), zend.h (zend_class_entry), zend_fibers.c
// (zend_fiber_execute), zend_generators.h (zend_generator), zend_generators.c (zend_generator_resume,
// zend_generator_check_placeholder_frame), zend_execute.c (ZEND_VM_FP_GLOBAL_REG, ZEND_VM_IP_GLOBAL_REG).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal/language.h"
#include "signal/look.h"
#include "signal/met.h"

enum {
    GP_PHP_NAME_SIZE = 96,
    GP_PHP_CLASS_SIZE = 96,
    GP_PHP_FILE_SIZE = 256,
    GP_PHP_LINE_BITS = 24,
};

enum gp_php_kind {
    GP_PHP_FUNCTION,
    GP_PHP_MAIN,    // code of a script outside of functions
    GP_PHP_INCLUDE, // the same of a file, or a text, that a script includes
    GP_PHP_C,
};

typedef struct gp_php_text {
    uintptr_t at;
    size_t len;
} gp_php_text_t;

typedef struct gp_php_place { // what a function is known by
    enum gp_php_kind kind;
    uint32_t first_line, last_line;
    gp_php_text_t name, class, file; // no bytes = none
} gp_php_place_t;

typedef struct gp_php_function {
    enum gp_php_kind kind;
    uint32_t first_line, last_line;
    size_t name_len, class_len, file_len; // of the whole texts; what there is room for is kept, of a file the end
    char name[GP_PHP_NAME_SIZE], class[GP_PHP_CLASS_SIZE], file[GP_PHP_FILE_SIZE];
} gp_php_function_t;

typedef struct gp_php_table {
    gp_met_t met;
    gp_php_function_t functions[GP_MET_FUNCTIONS];
} gp_php_table_t;

typedef struct gp_php_code {
    uintptr_t lo, hi;
} gp_php_code_t;

typedef struct gp_php_runtime {
    gp_php_table_t *table;
    uintptr_t thread;                 // the engine's, by its thread pointer; 0 = not known yet
    uintptr_t current;                // where the innermost frame is kept
    gp_php_code_t loop, resume, code; // of execute_ex(), of zend_generator_resume(), and of all; empty = not known
    // Of the thread's last switch of Fibers: the innermost frame left, and a place on the machine stack left. While a
    // switch is told: the innermost frame to go on with, else 0.
    uintptr_t left_frame, left_sp, next_frame;
} gp_php_runtime_t;

extern gp_php_runtime_t gp_php_runtime __attribute__((visibility("hidden")));

static inline uint32_t gp_php_word_line(uintptr_t word)
{
    return (uint32_t)(word >> GP_MET_NUMBER_BITS & ((1u << GP_PHP_LINE_BITS) - 1));
}

static inline bool gp_php_is_in(const gp_php_code_t *code, uintptr_t pc)
{
    return pc - code->lo < code->hi - code->lo;
}

// Read the text of a zend_string, 0 = none. False: it cannot be read. Signals: safe.
bool gp_php_read_text(gp_peeks_t *look, uintptr_t string, gp_php_text_t *text);

// The number of a function, 0 = there is no room. Signals: safe. Cost: ~10 ns where it was met.
uint32_t gp_php_number(const gp_php_place_t *place);

// The engine's thread, at `sp` on its stack, is about to switch to the Fiber that was left at `to_sp`.
void gp_php_note_switch(uintptr_t sp, uintptr_t to_sp);

// See gp_language_t.
size_t gp_php_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags);
bool gp_php_is_loop(uintptr_t pc);
bool gp_php_is_own(uintptr_t pc);
gp_loc_t gp_php_locate(uintptr_t frame, uint64_t ticks);
