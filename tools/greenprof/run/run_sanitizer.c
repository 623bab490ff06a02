// SPDX-License-Identifier: MIT
#include "run_sanitizer.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_checks.h"

enum { SEGMENTS_MAX = 256, ENTRIES_MAX = 4096 };

typedef struct image { // of a program's file
    int fd;
    Elf64_Ehdr header;
} image_t;

static bool read_at(const image_t *image, void *data, size_t bytes, uint64_t offset)
{
    return pread(image->fd, data, bytes, (off_t)offset) == (ssize_t)bytes;
}

// The segment of this type that has `address` in it; any address where it is 0.
static bool find_segment(const image_t *image, uint32_t type, uint64_t address, Elf64_Phdr *segment)
{
    for (unsigned i = 0; i < image->header.e_phnum && i < SEGMENTS_MAX; i++) {
        if (!read_at(image, segment, sizeof(*segment), image->header.e_phoff + (uint64_t)i * sizeof(*segment)))
            return false;
        if (segment->p_type == type && (address == 0 || address - segment->p_vaddr < segment->p_filesz))
            return true;
    }
    return false;
}

static bool find_entry(const image_t *image, const Elf64_Phdr *dynamic, Elf64_Sxword tag, unsigned *from,
                       uint64_t *value)
{
    Elf64_Dyn entry;
    for (; *from < ENTRIES_MAX && (*from + 1) * sizeof(entry) <= dynamic->p_filesz; ++*from) {
        if (!read_at(image, &entry, sizeof(entry), dynamic->p_offset + *from * sizeof(entry)) || entry.d_tag == DT_NULL)
            return false;
        *value = entry.d_un.d_val;
        if (entry.d_tag == tag)
            return true;
    }
    return false;
}

// Does the program name a library of this name among those that it needs?
static bool needs(const image_t *image, const char *prefix)
{
    char name[16] = "";
    Elf64_Phdr dynamic, strings;
    uint64_t table, offset;
    unsigned first = 0;
    if (!find_segment(image, PT_DYNAMIC, 0, &dynamic) || !find_entry(image, &dynamic, DT_STRTAB, &first, &table) ||
        !find_segment(image, PT_LOAD, table, &strings))
        return false;
    for (unsigned i = 0; find_entry(image, &dynamic, DT_NEEDED, &i, &offset); i++)
        if (read_at(image, name, strlen(prefix), strings.p_offset + (table - strings.p_vaddr) + offset) &&
            strcmp(name, prefix) == 0)
            return true;
    return false;
}

void gp_run_prepare_sanitizer(const char *program)
{
    char path[PATH_MAX], *options = NULL;
    const char *given = getenv("ASAN_OPTIONS");
    image_t image;
    if ((given != NULL && strstr(given, "verify_asan_link_order") != NULL) || gp_run_find_program(program, path) != 0)
        return;
    image.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (image.fd < 0)
        return;
    if (read_at(&image, &image.header, sizeof(image.header), 0) && memcmp(image.header.e_ident, ELFMAG, SELFMAG) == 0 &&
        needs(&image, "libasan.so") &&
        asprintf(&options, "%s%sverify_asan_link_order=0", given != NULL ? given : "", given != NULL ? ":" : "") >= 0)
        setenv("ASAN_OPTIONS", options, 1);
    free(options);
    close(image.fd);
}
