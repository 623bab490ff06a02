// SPDX-License-Identifier: MIT
// Functions of language runtimes, numbered by what they are called and where they stand.
//
// Model: (name, file, first line) is a function, however often its code object is made anew; its number stays, as
// profiles and captures refer to it. Memory is bounded: where a program compiles functions with ever new names, those
// without room are one, "[other functions]", and are counted. Caller holds the drain lock everywhere.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/location.h"

typedef struct gp_function_name {
    const char *name, *file; // never freed, UTF-8
    uint32_t first_line;
} gp_function_name_t;

enum { GP_FUNCTIONS_MAX = 1 << 18, GP_FUNCTIONS_TEXT_MAX = 64 << 20 }; // how many, and bytes of their texts

// The number of a function, from 1; 0 when memory is short.
uint32_t gp_functions_number(const char *name, size_t name_len, const char *file, size_t file_len, uint32_t first_line);

// A function by number, valid until the next gp_functions_number(); NULL = there is none.
const gp_function_name_t *gp_functions_at(uint32_t number);

// The highest number given out.
uint32_t gp_functions_count(void);

// Is it the number of "[other functions]"?
bool gp_functions_is_other(uint32_t number);

// How often a function found no room. Needs no lock.
uint64_t gp_functions_unnamed(void);
