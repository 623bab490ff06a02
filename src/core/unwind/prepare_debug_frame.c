// SPDX-License-Identifier: MIT
// Read .debug_frame sections from files and index them.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/main_file.h"
#include "unwind/cfi.h"
#include "unwind/debug_frame.h"
#include "unwind/module.h"

enum { SEEN_MAX = 1024, FILES_A_TURN = 256 };

// Modules that were looked at: one prepare at a time, so no lock (see gp_unwind_refresh()).
static const void *seen[SEEN_MAX];
static size_t seen_count;

typedef struct module_file {
    gp_location_t where;
    uintptr_t bias;
    char path[GP_MAIN_FILE_SIZE];
} module_file_t;

typedef struct collection {
    module_file_t *files;
    size_t count;
} collection_t;

static bool prepare_debug_frame_is_new(const void *link_map)
{
    for (size_t i = 0; i < seen_count; i++)
        if (seen[i] == link_map)
            return false;
    if (seen_count < SEEN_MAX) {
        seen[seen_count++] = link_map;
        return true;
    }
    return false;
}

// Under the loader's lock only names are noted; files are opened afterwards.
static int prepare_debug_frame_collect(struct dl_phdr_info *info, size_t size, void *arg)
{
    collection_t *all = arg;
    module_file_t *file = &all->files[all->count];
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && all->count < FILES_A_TURN; i++) {
        const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
        if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
            continue;
        if (gp_module_locate(info->dlpi_addr + phdr->p_vaddr, &file->where) &&
            prepare_debug_frame_is_new(file->where.link_map)) {
            bool is_named = info->dlpi_name != NULL && *info->dlpi_name != '\0';
            const char *name = is_named ? info->dlpi_name : gp_main_file(file->path);
            file->bias = info->dlpi_addr;
            if (name != file->path)
                snprintf(file->path, sizeof file->path, "%s", name);
            all->count++;
        }
        break;
    }
    return 0;
}

static const uint8_t *prepare_debug_frame_map_file(const char *path, size_t *len)
{
    struct stat st;
    const uint8_t *bytes = NULL;
    int fd = gp_descriptor_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof(ElfW(Ehdr))) {
        *len = (size_t)st.st_size;
        void *map = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
        bytes = map == MAP_FAILED ? NULL : map;
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

static bool prepare_debug_frame_inside(size_t len, uint64_t at, uint64_t count)
{
    return at <= len && count <= len - at;
}

// The uncompressed .debug_frame of a mapped file, or NULL.
static const ElfW(Shdr) * prepare_debug_frame_find_section(const uint8_t *file, size_t len)
{
    const ElfW(Ehdr) *ehdr = (const ElfW(Ehdr) *)file;
    if (memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 || ehdr->e_shentsize != sizeof(ElfW(Shdr)) ||
        !prepare_debug_frame_inside(len, ehdr->e_shoff, (uint64_t)ehdr->e_shnum * sizeof(ElfW(Shdr))) ||
        ehdr->e_shstrndx >= ehdr->e_shnum || ehdr->e_shoff % sizeof(uintptr_t) != 0)
        return NULL;
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(file + ehdr->e_shoff);
    const ElfW(Shdr) *names = &sections[ehdr->e_shstrndx];
    static const char name[] = ".debug_frame";
    for (unsigned i = 0; i < ehdr->e_shnum; i++) {
        const ElfW(Shdr) *section = &sections[i];
        if (section->sh_type == SHT_PROGBITS && !(section->sh_flags & SHF_COMPRESSED) &&
            prepare_debug_frame_inside(len, section->sh_offset, section->sh_size) &&
            prepare_debug_frame_inside(len, names->sh_offset + section->sh_name, sizeof name) &&
            memcmp(file + names->sh_offset + section->sh_name, name, sizeof name) == 0)
            return section;
    }
    return NULL;
}

static int prepare_debug_frame_by_start(const void *a, const void *b)
{
    const gp_debug_range_t *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

// Fill `ranges` where not NULL. Returns how many FDEs there are.
static size_t prepare_debug_frame_list_ranges(const gp_cfi_section_t *section, gp_debug_range_t *ranges)
{
    size_t count = 0;
    const uint8_t *at = section->start;
    while (at != NULL && at < section->end) {
        gp_fde_t fde;
        const uint8_t *next;
        if (gp_cfi_decode(section, at, &fde, &next)) {
            if (ranges != NULL) {
                ranges[count] =
                    (gp_debug_range_t){.start = fde.start, .end = fde.end, .fde = (uint32_t)(at - section->start)};
            }
            count++;
        }
        at = next;
    }
    return count;
}

static bool prepare_debug_frame_index_section(const module_file_t *file, const uint8_t *start, size_t len)
{
    gp_cfi_section_t section = {.start = start, .end = start + len, .bias = file->bias, .debug_frame = true};
    size_t count = prepare_debug_frame_list_ranges(&section, NULL);
    gp_debug_range_t *ranges = count > 0 ? malloc(count * sizeof *ranges) : NULL;
    if (ranges == NULL)
        return false;
    prepare_debug_frame_list_ranges(&section, ranges);
    qsort(ranges, count, sizeof *ranges, prepare_debug_frame_by_start);
    gp_debug_frame_publish(&(gp_debug_frame_t){
        .lo = file->where.lo,
        .link_map = file->where.link_map,
        .bias = file->bias,
        .section = start,
        .section_end = start + len,
        .ranges = ranges,
        .count = count,
    });
    return true;
}

static void prepare_debug_frame_read_module(const module_file_t *file)
{
    size_t len = 0;
    const uint8_t *bytes = prepare_debug_frame_map_file(file->path, &len);
    if (bytes == NULL)
        return;
    const ElfW(Shdr) *section = prepare_debug_frame_find_section(bytes, len);
    // An indexed file stays mapped for good: a handler may be reading it.
    if (section == NULL || !prepare_debug_frame_index_section(file, bytes + section->sh_offset, section->sh_size))
        munmap((void *)(uintptr_t)bytes, len);
}

void gp_debug_frame_prepare(void)
{
    collection_t all = {.files = calloc(FILES_A_TURN + 1, sizeof *all.files)};
    if (all.files == NULL)
        return;
    dl_iterate_phdr(prepare_debug_frame_collect, &all);
    for (size_t i = 0; i < all.count; i++)
        prepare_debug_frame_read_module(&all.files[i]);
    free(all.files);
}
