// SPDX-License-Identifier: MIT
#include "symbol/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_stamp.h"
#include "base/memory.h"
#include "base/regular_file.h"
#include "symbol/compressed.h"

int gp_elf_read(const gp_elf_t *elf, uint64_t offset, void *bytes, size_t len)
{
    if (offset > elf->size || len > elf->size - offset)
        return -ENOEXEC;
    if (elf->image != NULL) {
        memcpy(bytes, elf->image + offset, len);
        return 0;
    }
    for (size_t done = 0; done < len;) {
        ssize_t got = pread(elf->fd, (char *)bytes + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENOEXEC;
        done += (size_t)got;
    }
    return 0;
}

static int elf_file_read_sections(gp_elf_t *elf)
{
    const Elf64_Ehdr *header = &elf->header;
    size_t bytes = (size_t)header->e_shnum * sizeof(Elf64_Shdr);
    if (header->e_shnum == 0 || header->e_shentsize != sizeof(Elf64_Shdr))
        return 0; // no sections: no symbols, which is no error
    elf->sections = gp_memory_had(malloc(bytes));
    if (elf->sections == NULL)
        return -ENOMEM;
    int result = gp_elf_read(elf, header->e_shoff, elf->sections, bytes);
    if (result < 0)
        return result;
    elf->section_count = header->e_shnum;
    if (header->e_shstrndx < elf->section_count)
        elf->names = gp_elf_section_read(elf, &elf->sections[header->e_shstrndx], &elf->names_len);
    return 0;
}

static int elf_file_read_headers(gp_elf_t *elf)
{
    int result = gp_elf_read(elf, 0, &elf->header, sizeof(elf->header));
    if (result == 0 && (memcmp(elf->header.e_ident, ELFMAG, SELFMAG) != 0 ||
                        elf->header.e_ident[EI_CLASS] != ELFCLASS64 || elf->header.e_ident[EI_DATA] != ELFDATA2LSB))
        result = -ENOEXEC;
    if (result == 0)
        result = elf_file_read_sections(elf);
    if (result < 0)
        gp_elf_close(elf);
    return result;
}

int gp_elf_open(gp_elf_t *elf, const char *path)
{
    struct stat status;
    memset(elf, 0, sizeof(*elf));
    elf->fd = gp_regular_file_open(AT_FDCWD, path, 0); // a capture may name anything
    if (elf->fd < 0)
        return elf->fd;
    if (fstat(elf->fd, &status) < 0) {
        gp_elf_close(elf);
        return -ENOEXEC;
    }
    elf->size = (uint64_t)status.st_size;
    elf->changed_ns = gp_file_stamp(&status).changed_ns;
    return elf_file_read_headers(elf);
}

int gp_elf_open_image(gp_elf_t *elf, const void *image, size_t size)
{
    memset(elf, 0, sizeof(*elf));
    elf->fd = -1;
    elf->image = image;
    elf->size = size;
    return elf_file_read_headers(elf);
}

int gp_elf_open_debugdata(gp_elf_t *inner, const gp_elf_t *elf)
{
    const Elf64_Shdr *section = gp_elf_section(elf, ".gnu_debugdata");
    size_t packed_len = 0, len = 0;
    if (section == NULL)
        return -ENOENT;
    void *packed = gp_elf_section_read(elf, section, &packed_len);
    void *image = packed ? gp_compressed_xz(packed, packed_len, &len) : NULL;
    int result = image ? 0 : -errno;
    free(packed);
    if (result == 0)
        result = gp_elf_open_image(inner, image, len);
    if (result == 0)
        inner->owned = image;
    else
        free(image);
    return result;
}

void gp_elf_close(gp_elf_t *elf)
{
    free(elf->owned);
    free(elf->sections);
    free(elf->names);
    if (elf->fd >= 0)
        close(elf->fd);
    memset(elf, 0, sizeof(*elf));
    elf->fd = -1;
}

const char *gp_elf_section_name(const gp_elf_t *elf, const Elf64_Shdr *section)
{
    if (elf->names == NULL || section->sh_name >= elf->names_len)
        return "";
    return elf->names + section->sh_name;
}

// Before there was SHF_COMPRESSED, the name said so: ".zdebug_info".
static bool elf_file_is_old_compressed(const char *name)
{
    return strncmp(name, ".zdebug", sizeof(".zdebug") - 1) == 0;
}

static bool elf_file_is_named(const char *found, const char *name)
{
    return strcmp(found, name) == 0 || (elf_file_is_old_compressed(found) && strcmp(found + 2, name + 1) == 0);
}

static const Elf64_Shdr *elf_file_section_from(const gp_elf_t *elf, size_t first, const char *name)
{
    for (size_t i = first; i < elf->section_count; i++)
        if (elf_file_is_named(gp_elf_section_name(elf, &elf->sections[i]), name))
            return elf->sections[i].sh_type == SHT_NOBITS ? NULL : &elf->sections[i];
    return NULL;
}

const Elf64_Shdr *gp_elf_section(const gp_elf_t *elf, const char *name)
{
    return elf_file_section_from(elf, 0, name);
}

const Elf64_Shdr *gp_elf_section_after(const gp_elf_t *elf, const Elf64_Shdr *section, const char *name)
{
    return elf_file_section_from(elf, (size_t)(section - elf->sections) + 1, name);
}

const Elf64_Shdr *gp_elf_section_of_type(const gp_elf_t *elf, uint32_t type)
{
    for (size_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].sh_type == type)
            return &elf->sections[i];
    return NULL;
}

void *gp_elf_section_read(const gp_elf_t *elf, const Elf64_Shdr *section, size_t *len)
{
    if (section->sh_type == SHT_NOBITS || section->sh_offset > elf->size ||
        section->sh_size > elf->size - section->sh_offset) {
        errno = ENOEXEC;
        return NULL;
    }
    char *bytes = gp_memory_whole(section->sh_size + 1);
    if (bytes == NULL)
        return NULL;
    int result = gp_elf_read(elf, section->sh_offset, bytes, section->sh_size);
    if (result < 0) {
        free(bytes);
        errno = -result;
        return NULL;
    }
    bytes[section->sh_size] = '\0';
    *len = section->sh_size;
    bool is_old = elf_file_is_old_compressed(gp_elf_section_name(elf, section));
    if (!is_old && (section->sh_flags & SHF_COMPRESSED) == 0)
        return bytes;
    void *unpacked = is_old ? gp_compressed_old_section(bytes, section->sh_size, len)
                            : gp_compressed_section(bytes, section->sh_size, len);
    free(bytes);
    return unpacked;
}

// Look for NT_GNU_BUILD_ID among the notes of one section.
static size_t elf_file_find_build_id(const uint8_t *notes, size_t len, uint8_t build_id[GP_BUILD_ID_MAX])
{
    Elf64_Nhdr note;
    for (size_t at = 0; at + sizeof(note) <= len;) {
        memcpy(&note, notes + at, sizeof(note));
        size_t name = at + sizeof(note);
        size_t desc = name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
        size_t next = desc + (((size_t)note.n_descsz + 3) & ~(size_t)3);
        if (desc > len || note.n_descsz > len - desc)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0) {
            size_t kept = note.n_descsz < GP_BUILD_ID_MAX ? note.n_descsz : GP_BUILD_ID_MAX;
            memcpy(build_id, notes + desc, kept);
            return kept;
        }
        at = next;
    }
    return 0;
}

size_t gp_elf_build_id(const gp_elf_t *elf, uint8_t build_id[GP_BUILD_ID_MAX])
{
    size_t found = 0;
    for (size_t i = 0; i < elf->section_count && found == 0; i++) {
        size_t len;
        if (elf->sections[i].sh_type != SHT_NOTE)
            continue;
        uint8_t *notes = gp_elf_section_read(elf, &elf->sections[i], &len);
        if (notes != NULL)
            found = elf_file_find_build_id(notes, len, build_id);
        free(notes);
    }
    return found;
}
