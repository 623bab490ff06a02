// SPDX-License-Identifier: MIT
// Copies of dead code objects with samples that are not resolved yet: code of a sub-interpreter, which frees its
// objects itself or not at all. The dying thread copies name, file and lines.
//
// Model: the dying thread makes a grave; the collector buries it for a round, in which samples from before the
// death mean it, and later ones the address's next object.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_code {
    uintptr_t address;
    uint32_t function, first_line; // function: 0 of a grave = it has not been asked for, see `name`
    uint64_t fixed;                // what is answered whatever the line is; 0 = nothing
    bool hidden;
    bool in_site; // of creation: see gp_spawn_locate()
    uint8_t *lines;
    size_t lines_len;
    struct gp_code *next; // in the bucket of its address; of graves, those of earlier deaths first
    uint64_t died;        // of a grave: ticks
    uint64_t at;          // likewise: which of all deaths
    char *name;           // likewise; behind it comes the file
    size_t name_len, file_len;
} gp_code_t;

// Copy a code object that is being freed.
//   Returns NULL: it cannot be read, or there is no memory. Threads: the one that frees it, in its interpreter.
gp_code_t *gp_code_grave_make(const void *code);

void gp_code_grave_free(gp_code_t *grave);

// The collector, drain lock held. Buried are those of a round, earlier deaths first.
void gp_code_graves_bury(gp_code_t *grave, uint64_t at);
bool gp_code_graves_are_any(void);

// The grave of the object at an address at that time; NULL = none.
gp_code_t *gp_code_graves_find(uintptr_t address, uint64_t ticks);

// All samples that mean those of deaths before `upto` have been resolved.
void gp_code_graves_clear(uint64_t upto);
