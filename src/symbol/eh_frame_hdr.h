// Where functions start, by the search table of .eh_frame_hdr.
// Source: LSB Core, "Exception Frames"; the one encoding linkers write (sdata4, relative to the
// section) is read.
#ifndef GP_SYMBOL_EH_FRAME_HDR_H
#define GP_SYMBOL_EH_FRAME_HDR_H

#include "symbol/elf_file.h"

typedef struct gp_eh_starts { // zero-initialized = none
    uint64_t *starts;         // ascending
    size_t count;
} gp_eh_starts_t;

// Load the table; without one, or with one that cannot be read, there are no starts.
void gp_eh_starts_load(gp_eh_starts_t *starts, const gp_elf_t *elf);

// The first start in (address, end), else `end`.
uint64_t gp_eh_starts_next(const gp_eh_starts_t *starts, uint64_t address, uint64_t end);

void gp_eh_starts_free(gp_eh_starts_t *starts);

#endif
