// Source files and lines of one ELF file, from its DWARF through libdwarf.
//
// Model: opening reads the compilation units' address ranges; the line table and the functions of a
// unit are read when the first address of it is asked for, and kept as sorted arrays. A unit that
// cannot be read has no lines. Threads: one at a time. Signals: not safe. Cost: the first address
// of a unit ~1-100 ms, the next ~100 ns.
#ifndef GP_SYMBOL_DWARF_H
#define GP_SYMBOL_DWARF_H

#include <stddef.h>
#include <stdint.h>

typedef struct gp_dwarf gp_dwarf_t;

// What DWARF says about an address. Texts live as long as the gp_dwarf_t.
typedef struct gp_dwarf_place {
    const char
        *file; // of the code at the address (that of an inlined function, where one is), or NULL
    uint32_t line;          // 0 = unknown
    const char *first_file; // where the function is declared, or NULL
    uint32_t first_line;    // 0 = unknown
} gp_dwarf_place_t;

// Open a file that has .debug_info. Returns NULL and errno (ENOENT: no DWARF there).
gp_dwarf_t *gp_dwarf_open(const char *path);

// Look up an address as in the ELF file. Unknown fields are 0.
void gp_dwarf_find(gp_dwarf_t *dwarf, uint64_t address, gp_dwarf_place_t *place);

void gp_dwarf_close(gp_dwarf_t *dwarf);

#endif
