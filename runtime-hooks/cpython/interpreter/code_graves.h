// SPDX-License-Identifier: MIT
// What is known of code objects, and of those that could not wait for their samples to be resolved: code of a
// sub-interpreter, which frees what it has made itself or not at all. What is asked of it is copied as it dies.
//
// Model: the dying thread makes a grave; the collector buries it for a round, in which samples that are no younger than
// the death mean it, and younger ones what is at the address by then.
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

// What an address meant at that time, as far as those that are buried say; NULL = they do not.
gp_code_t *gp_code_graves_find(uintptr_t address, uint64_t ticks);

// All samples that mean those of deaths before `upto` have been resolved.
void gp_code_graves_clear(uint64_t upto);
