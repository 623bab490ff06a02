// SPDX-License-Identifier: MIT
// Loaded modules as the walker sees them: where their code is and where their unwind tables are.
//
// Model: gp_module_locate() asks the loader (lock-free) which mapping holds an address. Parsed headers of modules are
// kept in a table of descriptors: a row can name its module by a number. A module of the startup set is never unloaded
// ("fixed"); the rows of any other are trusted only after gp_module_check() found the very same module still in place.
// The descriptor of a gone module gives its slot to a new one, with another number: a process that loads and unloads
// plugins for ever needs room only for those loaded at once.
//
// Descriptor table: each thread that parses a new module produces (handlers too); each slot is a sequence lock, tried
// and never waited for, and a reader copies its content. Signals: everything here is safe unless it says otherwise.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GP_MODULE_ID_BYTES = 16,
    GP_MODULE_UNLISTED = -1, // found, but its slots are taken or busy: its rows must not be cached
    GP_MODULE_NONE = -2,
};

// The loader's answer about an address.
typedef struct gp_location {
    uintptr_t lo, hi;     // the module's mapping
    const void *link_map; // identifies the load, as far as the allocator lets it
    const uint8_t *hdr;   // .eh_frame_hdr or NULL
} gp_location_t;

// .eh_frame_hdr, decoded.
typedef struct gp_eh_index {
    const uint8_t *hdr;      // base of datarel pointers
    const uint8_t *table;    // sorted pairs (pc, FDE), int32 each relative to hdr; NULL: none
    uint32_t count;          // pairs
    const uint8_t *eh_frame; // first CIE or FDE
    const uint8_t *eh_end;   // readable up to here
} gp_eh_index_t;

typedef struct gp_unwind_module {
    gp_location_t where;
    uintptr_t text_lo, text_hi; // the executable segment that was asked for, or the only one
    gp_eh_index_t eh;
    const uint8_t *id_at; // build id inside the first page, or NULL
    uint8_t id[GP_MODULE_ID_BYTES];
    bool fixed;
    bool has_more_text; // other executable segments, each with a descriptor
} gp_unwind_module_t;

typedef struct gp_image { // its program headers
    const void *headers;  // ElfW(Phdr)[count]
    size_t count;
    uintptr_t bias; // what is added to their addresses
} gp_image_t;

// The main program. Where there are gaps between its segments the loader has a mapping for each, with the program's
// headers in one of them: here the program is one location. Written by gp_module_fixed_prepare(), once.
typedef struct gp_program {
    const void *link_map; // NULL: not known
    gp_image_t image;
    uintptr_t lo, hi;
} gp_program_t;

extern gp_program_t gp_program __attribute__((visibility("hidden")));

// Find the mapping that holds `pc`. Returns false where no module is. Source: _dl_find_object(3),
// glibc 2.35 (module_dlfo.c), or the latest dl_iterate_phdr snapshot (module_snapshot.c).
bool gp_module_locate(uintptr_t pc, gp_location_t *where);

// Look at the modules again where they cannot be asked for lock-free. Signals: not safe.
void gp_module_locate_prepare(void);

// Find the module with `pc` in its executable segments, and copy its descriptor. Returns the descriptor's number,
// GP_MODULE_UNLISTED or GP_MODULE_NONE. Cost: ~60 ns once it is listed.
int gp_module_find(uintptr_t pc, gp_unwind_module_t *module);

// Is descriptor `number` still the module that is mapped at `pc`? Cost: ~30 ns.
bool gp_module_check(uint32_t number, uintptr_t pc);

// Note which modules can never be unloaded. Called before walks, once. Signals: not safe.
void gp_module_fixed_prepare(void);

// The set itself, filled by gp_module_fixed_prepare() and read-only afterwards. A full set takes no more.
void gp_module_fixed_add(const void *link_map);
const void *gp_module_fixed_get(size_t index); // NULL past the last
bool gp_module_is_fixed(const void *link_map);

// Decode the ELF and .eh_frame_hdr headers of the mapping `where`. `pc`: whose text, where there are several. Returns
// false for a mapping without readable ELF headers.
bool gp_module_parse(const gp_location_t *where, uintptr_t pc, gp_unwind_module_t *module);

// The headers of the module that is mapped at `where`. Returns false where they cannot be read.
bool gp_module_image(const gp_location_t *where, gp_image_t *image);

// Is [at, at + len) in a segment of the module `where` that can be read?
bool gp_module_reads(const gp_location_t *where, uintptr_t at, size_t len);
