// SPDX-License-Identifier: MIT
// Source files, lines and inlined functions of one ELF file, from its DWARF (versions 2 to 5).
//
// Model: opening reads the sections into memory and finds out which unit has which addresses; the line table and the
// functions of a unit are read when the first address of it is asked for, what is inlined into a function when the
// first address of that is, and kept as sorted arrays. A unit that cannot be read has no lines. Where units are split,
// the .dwp is opened at once, and a .dwo when it is needed. Threads: one at a time. Signals: not safe. Cost: opening ~6
// ms for each MB of compressed sections; the first address of a unit ~0.1-5 ms, the next ~200 ns. Source: DWARF 5
// (dwarfstd.org); "GNU Extensions" for dwz, gcc wiki "DwarfDWZ".
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/helpers.h"
#include "symbol/debug_file.h"

typedef struct gp_dwarf gp_dwarf_t;

enum { GP_DWARF_PLACES_MAX = 64 };

typedef struct gp_dwarf_memo { // room for what the caller makes of something; NULL at first
    const void *key, *value;
} gp_dwarf_memo_t;

// A function that an address is in. Texts live as long as the gp_dwarf_t.
typedef struct gp_dwarf_place {
    const char *name;       // as the linker knows it (mangled), else as in the source; NULL = unknown
    const char *file;       // of the code at the address, or NULL. Equal names are equal pointers
    uint32_t line;          // 0 = unknown
    const char *first_file; // where the function is declared, or NULL
    uint32_t first_line;    // 0 = unknown
    const char **shown;     // room for what the caller makes of the name, kept with the function;
                            // NULL at first. The pointer itself is NULL where `name` is
    // The same for this place and all around it, where another function is inlined into this one;
    // stored with the inner function; valid for its addresses. NULL in the innermost place.
    gp_dwarf_memo_t *memo;
} gp_dwarf_place_t;

// Open a file that has .debug_info.
//   elf:      only read here.
//   elf_path: the file's path; a supplementary file (dwz) is looked for beside it, and so are .dwo and .dwp.
// Returns NULL and errno (ENOENT: no DWARF there).
gp_dwarf_t *gp_dwarf_open(const gp_elf_t *elf, const char *elf_path);

typedef struct gp_dwarf_asked {
    // Returns the addresses that are going to be looked up, as far as known, ascending; they stay until gp_dwarf_end()
    // returns. `*count` becomes how many there are; 0 = not known. A helper calls it, at most once.
    const uint64_t *(*addresses)(void *owner, size_t *count);
    void *owner;
} gp_dwarf_asked_t;

// The same in two steps, which read the sections on helpers meanwhile. In between, nothing else is called, and the file
// stays open.
//   module_path: of the module, whose debug file this may be; a .dwp may be beside either.
//   helpers: live as long as the gp_dwarf_t; NULL = there are none.
//   asked:   many expected look-ups: their data are read while nothing else can be done.
//            NULL = few.
// Returns the argument of the second step, which frees it where it fails; NULL and errno.
gp_dwarf_t *gp_dwarf_begin(const gp_elf_t *elf, const char *elf_path, const char *module_path, gp_helpers_t *helpers,
                           const gp_dwarf_asked_t *asked);
gp_dwarf_t *gp_dwarf_end(gp_dwarf_t *dwarf); // NULL is allowed

// Say which addresses are going to be looked up, so that helpers begin to read for them. Results are the same as
// without.
//   addresses: uint64_t[count], ascending; not needed afterwards.
void gp_dwarf_expect(gp_dwarf_t *dwarf, const uint64_t *addresses, size_t count);

// Look up an address as in the ELF file.
//   places: the innermost inlined function first; the last one is the function that has the code.
// Returns how many there are. With a line but no function there is one place without a name.
size_t gp_dwarf_find(gp_dwarf_t *dwarf, uint64_t address, gp_dwarf_place_t places[GP_DWARF_PLACES_MAX]);

// How many units with addresses that were looked up are split, and their DIEs could not be found.
//   place: where the first one's .dwo should be.
size_t gp_dwarf_missing(const gp_dwarf_t *dwarf, char place[GP_DEBUG_PATH_SIZE]);

void gp_dwarf_close(gp_dwarf_t *dwarf);
