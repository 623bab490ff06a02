// The parts of the DWARF reader: units, their line tables, their functions. Private to
// src/symbol/dwarf*.c.
#ifndef GP_SYMBOL_DWARF_UNIT_H
#define GP_SYMBOL_DWARF_UNIT_H

#include <stdbool.h>

#include <libdwarf/dwarf.h>
#include <libdwarf/libdwarf.h>

#include "symbol/dwarf.h"
#include "symbol/index.h"
#include "symbol/memory.h"

#define GP_DWARF_NO_FILE UINT32_MAX

typedef struct gp_dwarf_line { // holds up to the next row's address
    uint64_t address;
    uint32_t file; // number in the reader's `files`; GP_DWARF_NO_FILE behind a sequence
    uint32_t line; // 0: no code of this unit from here on
} gp_dwarf_line_t;

typedef struct gp_dwarf_function { // disjoint after gp_dwarf_functions_load()
    uint64_t lo, hi;
    uint32_t file;
    uint32_t line;
    uint32_t depth; // nesting, the innermost wins
} gp_dwarf_function_t;

typedef struct gp_dwarf_unit {
    Dwarf_Off die;
    bool loaded;
    gp_dwarf_line_t *lines;
    size_t line_count;
    gp_dwarf_function_t *functions;
    size_t function_count;
} gp_dwarf_unit_t;

typedef struct gp_dwarf_span { // code of a unit
    uint64_t lo, hi;
    uint32_t unit;
} gp_dwarf_span_t;

struct gp_dwarf {
    Dwarf_Debug debug;
    int fd;
    gp_arena_t texts;
    const char **files; // interned
    size_t file_count, file_capacity;
    gp_index_t file_index;
    gp_dwarf_unit_t *units;
    size_t unit_count, unit_capacity;
    gp_dwarf_span_t *spans; // sorted by lo
    size_t span_count, span_capacity;
};

// The files of one unit, by the numbers its line table and its DIEs use.
typedef struct gp_dwarf_files {
    uint32_t *numbers; // into gp_dwarf.files
    size_t count;
    size_t base; // number of the first one: 0 in DWARF 5, 1 before
} gp_dwarf_files_t;

// Call `visit` for every address range [lo, hi) of a DIE. Ranges that the linker threw away (at
// address 0) are left out. Returns 0 or what `visit` returned when it was not 0.
typedef int (*gp_dwarf_range_visit_t)(void *context, uint64_t lo, uint64_t hi);
int gp_dwarf_ranges(gp_dwarf_t *dwarf, Dwarf_Die die, uint64_t unit_base,
                    gp_dwarf_range_visit_t visit, void *context);

// The unit's base address for its range lists, 0 when it has none.
uint64_t gp_dwarf_low_pc(Dwarf_Die die);

// Intern a file name. Returns its number or GP_DWARF_NO_FILE.
uint32_t gp_dwarf_file(gp_dwarf_t *dwarf, const char *path);

// Number in gp_dwarf.files of a unit's file, or GP_DWARF_NO_FILE.
uint32_t gp_dwarf_files_number(const gp_dwarf_files_t *files, uint64_t number);

// Read the line table of a unit, and its file names for gp_dwarf_functions_load();
// free(files->numbers) afterwards. Returns 0 or -ENOMEM; what cannot be read is left out.
int gp_dwarf_lines_load(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit, Dwarf_Die die,
                        gp_dwarf_files_t *files);

// Read the functions of a unit. Returns 0 or -ENOMEM; what cannot be read is left out.
int gp_dwarf_functions_load(gp_dwarf_t *dwarf, gp_dwarf_unit_t *unit, Dwarf_Die die,
                            const gp_dwarf_files_t *files);

// Forget a libdwarf error.
void gp_dwarf_error(gp_dwarf_t *dwarf, Dwarf_Error error);

#endif
