// SPDX-License-Identifier: MIT
// The functions of one ELF file as disjoint address ranges.
//
// Model: an address has a name only where a symbol covers it. Sized symbols cover their size; where they nest, the
// innermost wins. Functions without a size (hand-written assembly, _start) cover up to the next function, the end of
// their section or what .eh_frame knows, their own end or the next function's start, whichever comes first, and only in
// a full .symtab: in .dynsym the next symbol says nothing about where a function ends. A local symbol without a type is
// a label (nasm's "f.loop"): it ends no function and is none, unless no function has its code; it goes on up to the
// next one then. Threads: one at a time while it is built, any number afterwards. Signals: not safe.
#pragma once

#include <stdbool.h>

#include "base/buckets.h"
#include "base/memory.h"
#include "symbol/eh_functions.h"
#include "symbol/elf_file.h"

typedef struct gp_range { // [lo, hi) has this name
    uint64_t lo, hi;
    uint64_t start; // the symbol's own start: identity of the function, also where ranges nest
    const char *name;
    const char *shown; // room for what the owner makes of the name; NULL at first
    const char *made;  // the part of it made ahead (symbol_names.h); NULL = none
    const char *twin;  // a function that a linker has given the same code; NULL = none
} gp_range_t;

typedef struct gp_symbol_table { // zero-initialized = empty
    gp_range_t *ranges;          // sorted, disjoint
    size_t count, capacity;
    gp_buckets_t buckets; // since the ranges were sorted
    gp_arena_t names;     // owns the texts
} gp_symbol_table_t;

enum { GP_SYMBOL_SOURCES_MAX = 4 };

typedef struct gp_symbol_source { // a symbol table
    const gp_elf_t *elf;
    bool dynamic; // .dynsym, else .symtab
} gp_symbol_source_t;

// Fill an empty table with what all of the sources say.
//   functions: of the file that has the code (a debug file has no .eh_frame itself).
// Returns 0, -ENOENT when none of them has symbols, or a negative errno value.
int gp_symbol_table_load(gp_symbol_table_t *table, const gp_symbol_source_t *sources, size_t count,
                         const gp_eh_functions_t *functions);

// Add name@plt for the stubs of .plt, .plt.sec and .plt.got, where nothing else is. Returns 0 or a
// negative errno value.
int gp_symbol_table_add_plt(gp_symbol_table_t *table, const gp_elf_t *elf);

// Add one range; used by the loaders, which sort afterwards. Returns 0 or -ENOMEM.
int gp_symbol_table_add(gp_symbol_table_t *table, uint64_t lo, uint64_t hi, uint64_t start, const char *name,
                        size_t name_len);
void gp_symbol_table_sort(gp_symbol_table_t *table);

// The range that holds `address`, or NULL.
gp_range_t *gp_symbol_table_find(const gp_symbol_table_t *table, uint64_t address);

// The beginning of a range's function: the unlikely part ("name.cold") belongs to the function of its name, if there is
// one.
uint64_t gp_symbol_table_entry(const gp_symbol_table_t *table, const gp_range_t *range);

void gp_symbol_table_free(gp_symbol_table_t *table);
