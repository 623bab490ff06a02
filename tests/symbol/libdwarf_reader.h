// SPDX-License-Identifier: MIT
// All line rows and inlined functions of a file, as libdwarf reads them: what greenprof's own reader is held against.
//
// Model: everything is read at once. Rows and pieces are sorted; pieces are disjoint, each leads to the innermost
// function there. Threads: one. libdwarf does not follow dwz's supplementary files and knows no zstd sections.
#ifndef GP_TEST_LIBDWARF_READER_H
#define GP_TEST_LIBDWARF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct oracle_row { // holds until the next one
    uint64_t address;
    const char *file; // NULL behind the end of a sequence
    // libdwarf 20210528 starts the sequences of DWARF 5 with file 0, where the standard says file 1 (section 6.2.2): of
    // a row with file 0 this is file 1, which is meant where the program did not set a file; otherwise NULL.
    const char *first_file;
    uint32_t line;
} oracle_row_t;

typedef struct oracle_function { // a function with code, or a place where it is inlined
    const char *name;            // linkage name, else the plain one; NULL = unknown
    const char *file;            // of its declaration, or NULL
    const char *call_file;       // where it is inlined
    uint32_t line, call_line;
    const struct oracle_function *outer; // NULL: it has code of its own
    unsigned depth;
    size_t number; // in the order of the file
} oracle_function_t;

typedef struct oracle_range { // [lo, hi)
    uint64_t lo, hi;
    const oracle_function_t *function;
} oracle_range_t;

typedef struct oracle {
    oracle_row_t *rows;
    size_t row_count;
    size_t rows_read;       // in all line tables
    size_t rows_empty;      // of those, without a byte: the next one is at the same address
    size_t rows_discarded;  // of those, of code that the linker threw away
    oracle_range_t *ranges; // of functions and of what is inlined, as they stand in the file
    size_t range_count;
    size_t inlined_count; // of them
    oracle_range_t *pieces;
    size_t piece_count;
    oracle_range_t *units; // their code
    size_t unit_count;
} oracle_t;

// Read a file that has .debug_info. Returns NULL, with a message on standard error, when libdwarf cannot.
oracle_t *oracle_open(const char *path);

// Does a unit say that it has code at an address?
bool oracle_has_code(const oracle_t *oracle, uint64_t address);

// The row and the innermost function at an address; NULL = none.
const oracle_row_t *oracle_row(const oracle_t *oracle, uint64_t address);
const oracle_function_t *oracle_function(const oracle_t *oracle, uint64_t address);

#endif
