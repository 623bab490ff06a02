// SPDX-License-Identifier: MIT
// Functions and variables of an ELF file by name: of .dynsym, else of .symtab, which a program that was not stripped
// has besides. Or by the bytes they begin with.
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_ELF_WORDS_MAX = 64 };

typedef struct gp_elf_image {
    const unsigned char *bytes; // the whole file
    size_t size;
    // After gp_elf_scan(), of each word of patch_words.gperf: the function of that name; whether any symbol has it.
    bool is_scanned;
    const Elf64_Sym *functions[GP_ELF_WORDS_MAX];
    bool is_mentioned[GP_ELF_WORDS_MAX];
} gp_elf_image_t;

typedef struct gp_elf_function {
    uint64_t address;          // as linked
    size_t size;               // 0 = not known
    const unsigned char *code; // in the image: the file's bytes from its start on
    size_t code_size;          // number of these bytes in the segment
} gp_elf_function_t;

// Map a file to read. Returns 0 or a negative errno value; -ENOEXEC where it is no ELF file of this machine.
int gp_elf_map(const char *path, gp_elf_image_t *image);

// The same of a file that is open, or of none (a negative errno value, which is returned); it is closed.
int gp_elf_map_descriptor(int fd, gp_elf_image_t *image);
void gp_elf_unmap(gp_elf_image_t *image);

// Look through all symbols once for the names of what can be patched: many of them cost what one does.
void gp_elf_scan(gp_elf_image_t *image);

// Find the function `name` that the file defines. Signals: safe. Cost: ~10 ms for a million symbols.
bool gp_elf_function(const gp_elf_image_t *image, const char *name, gp_elf_function_t *out);

typedef struct gp_elf_variable {
    uint64_t address;     // as linked
    bool is_thread_local; // then of a program: from the thread pointer on
} gp_elf_variable_t;

// Find the variable `name`, a pointer, that the file defines. Cost: as above.
bool gp_elf_variable(const gp_elf_image_t *image, const char *name, gp_elf_variable_t *out);

// Does the file define `name` for others, as the dynamic linker sees it?
bool gp_elf_exports(const gp_elf_image_t *image, const char *name);

// The file's bytes at an address as linked, of a loaded segment; NULL where it has fewer than `bytes` there.
const void *gp_elf_at(const gp_elf_image_t *image, uint64_t address, size_t bytes);

// The first bytes of the object `name` that the file defines; NULL where it has not as many. Cost: as above.
const void *gp_elf_object(const gp_elf_image_t *image, const char *name, size_t bytes);

// Has the file this name among its symbols, defined or not?
bool gp_elf_mentions(const gp_elf_image_t *image, const char *name);

// How often do these bytes stand in executable code? `out`: the last place.
size_t gp_elf_count_code(const gp_elf_image_t *image, const unsigned char *code, size_t size, gp_elf_function_t *out);

// Find the one place of executable code that is these bytes. False where there is none, or more than one.
bool gp_elf_find_code(const gp_elf_image_t *image, const unsigned char *code, size_t size, gp_elf_function_t *out);
