// SPDX-License-Identifier: MIT
// An ELF module: its symbols and its lines, each read when first needed.
//
// Threads: one at a time (the symbolizer's lock). Signals: not safe.
#pragma once

#include <stdbool.h>

#include "symbol/dwarf.h"
#include "symbol/elf_file.h"
#include "symbol/symbol_names.h"
#include "symbol/symbol_table.h"

typedef struct gp_elf_module {
    const char *path;                  // "[vdso]" for the vDSO
    const char *basename;              // in path
    uint8_t build_id[GP_BUILD_ID_MAX]; // or the file's stamp, see gp_symbolizer_module()
    size_t build_id_len;
    struct loading *loading; // by a helper; NULL = it has not begun, or has been taken
    gp_helpers_t *helpers;   // which read it beside the caller's thread; NULL = none
    bool loaded;
    uint64_t most_bytes; // larger files are not read, and `loaded` stays false; 0 = all are
    bool changed;        // the file of that name is another build
    bool unsure;         // or may be: the module has no build-id
    int error;           // why neither it nor its debug file can be read: an errno value; 0 = nothing is wrong
    gp_symbol_table_t symbols;
    gp_symbol_names_t *names;    // that are made ahead, of what was expected first; NULL = none
    gp_eh_functions_t functions; // for code without a symbol
    gp_dwarf_t *dwarf;           // NULL = none
    bool is_asked_much;
    size_t folded;                     // functions that were named and stand for others, too
    const gp_range_t *folded_one;      // the first
    struct gp_expected *expected;      // addresses that will be asked about, once it is loaded
    struct gp_expected *_Atomic *late; // addresses told while a helper loads it; NULL = none can be
} gp_elf_module_t;

// Read the module's symbols and find its DWARF. A file with another build-id than the module's is another file: nothing
// of it is used. An unreadable file leaves the module without names.
void gp_elf_module_load(gp_elf_module_t *module);

// Have a helper begin with that, unless it has begun; gp_elf_module_load() then ends it. The module may move meanwhile.
void gp_elf_module_begin(gp_elf_module_t *module, gp_helpers_t *helpers);

// Say which addresses are going to be asked about, as gp_dwarf_expect() has them; before it is loaded, they are kept,
// those of the last call.
void gp_elf_module_expect(gp_elf_module_t *module, const uint64_t *addresses, size_t count);

void gp_elf_module_free(gp_elf_module_t *module);
