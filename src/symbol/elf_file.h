// SPDX-License-Identifier: MIT
// An ELF file (64-bit, little-endian) on disk, or an image of one in memory (the vDSO): its sections, safely.
//
// Model: nothing is mapped, sections are read into memory when asked for: a file that shrinks under
// us is a short read, not a SIGBUS in the host. Every offset and size is checked against the file.
// Threads: one at a time. Signals: not safe.
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_BUILD_ID_MAX = 20 }; // bytes that the capture keeps

typedef struct gp_elf {
    int fd; // -1 for an image in memory
    const uint8_t *image;
    void *owned; // the image, where it is to be freed
    uint64_t size;
    int64_t changed_ns; // 0 = of an image
    Elf64_Ehdr header;
    Elf64_Shdr *sections;
    size_t section_count;
    char *names; // the section names' string table, NUL-terminated
    size_t names_len;
} gp_elf_t;

// Returns 0; -ENOEXEC for what is no ELF file that can be read here; or the error of open() and read().
int gp_elf_open(gp_elf_t *elf, const char *path);
int gp_elf_open_image(gp_elf_t *elf, const void *image, size_t size);

// Open what .gnu_debugdata holds: a small ELF file with the symbols that .dynsym has not. Returns
// as gp_elf_open(), -ENOENT when there is none.
int gp_elf_open_debugdata(gp_elf_t *inner, const gp_elf_t *elf);

void gp_elf_close(gp_elf_t *elf);

// Read bytes [offset, offset + len). Returns 0 or a negative errno value.
int gp_elf_read(const gp_elf_t *elf, uint64_t offset, void *bytes, size_t len);

// First section of that name / type; NULL when there is none, or when it has no bytes in the file (NOBITS).
const Elf64_Shdr *gp_elf_section(const gp_elf_t *elf, const char *name);
// The same behind another section, where there are several of that name.
const Elf64_Shdr *gp_elf_section_after(const gp_elf_t *elf, const Elf64_Shdr *section, const char *name);
const Elf64_Shdr *gp_elf_section_of_type(const gp_elf_t *elf, uint32_t type);

// Read a section whole, unpacked where it is compressed. Returns malloc()ed bytes with a NUL behind
// them, *len without it; NULL and errno on failure.
void *gp_elf_section_read(const gp_elf_t *elf, const Elf64_Shdr *section, size_t *len);

// The section's name, "" when it has none.
const char *gp_elf_section_name(const gp_elf_t *elf, const Elf64_Shdr *section);

// Read the build-id. Returns its length (at most GP_BUILD_ID_MAX are stored), 0 when there is none.
size_t gp_elf_build_id(const gp_elf_t *elf, uint8_t build_id[GP_BUILD_ID_MAX]);
