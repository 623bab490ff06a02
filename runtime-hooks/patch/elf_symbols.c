// SPDX-License-Identifier: MIT
#include "patch/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "patch_words.h" // generated

_Static_assert((int)patch_word_count <= (int)GP_ELF_WORDS_MAX, "words");

static bool elf_symbols_is_known(const gp_elf_image_t *image)
{
    const Elf64_Ehdr *header = (const void *)image->bytes;
    return image->size >= sizeof(*header) && memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == EM_X86_64;
}

int gp_elf_map(const char *path, gp_elf_image_t *image)
{
    int fd = gp_descriptor_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0); // may be a pipe by now
    return gp_elf_map_descriptor(fd >= 0 ? fd : -errno, image);
}

int gp_elf_map_descriptor(int fd, gp_elf_image_t *image)
{
    struct stat status;
    int error = 0;
    if (fd < 0)
        return fd;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0) {
        close(fd);
        return -ENOEXEC;
    }
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        error = -errno;
    close(fd);
    if (error != 0)
        return error;
    *image = (gp_elf_image_t){.bytes = bytes, .size = (size_t)status.st_size};
    if (!elf_symbols_is_known(image)) {
        gp_elf_unmap(image);
        return -ENOEXEC;
    }
    return 0;
}

void gp_elf_unmap(gp_elf_image_t *image)
{
    munmap((void *)(uintptr_t)image->bytes, image->size);
    *image = (gp_elf_image_t){0};
}

// `count` elements of `size` bytes at `offset`, or NULL where the file has no such place.
static const void *elf_symbols_table(const gp_elf_image_t *image, uint64_t offset, uint64_t count, size_t size)
{
    if (offset > image->size || count > (image->size - offset) / size || offset % 8 != 0)
        return NULL;
    return image->bytes + offset;
}

static const Elf64_Phdr *elf_symbols_segments(const gp_elf_image_t *image, size_t *count)
{
    const Elf64_Ehdr *header = (const void *)image->bytes;
    const Elf64_Phdr *found = header->e_phentsize == sizeof(Elf64_Phdr)
                                  ? elf_symbols_table(image, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr))
                                  : NULL;
    *count = found != NULL ? header->e_phnum : 0;
    return found;
}

static bool elf_symbols_is_code(const gp_elf_image_t *image, const Elf64_Phdr *segment)
{
    return segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && segment->p_offset <= image->size &&
           segment->p_filesz <= image->size - segment->p_offset;
}

static bool elf_symbols_find_bytes(const gp_elf_image_t *image, uint64_t address, gp_elf_function_t *out)
{
    size_t count;
    const Elf64_Phdr *segment = elf_symbols_segments(image, &count);
    for (size_t i = 0; i < count; i++, segment++) {
        if (!elf_symbols_is_code(image, segment) || address < segment->p_vaddr ||
            address - segment->p_vaddr >= segment->p_filesz)
            continue;
        uint64_t within = address - segment->p_vaddr;
        out->code = image->bytes + segment->p_offset + within;
        out->code_size = segment->p_filesz - within;
        return true;
    }
    return false;
}

typedef struct symbols {
    const Elf64_Sym *at;
    size_t count;
    const char *strings;
    size_t strings_size;
} symbols_t;

static bool elf_symbols_read_table(const gp_elf_image_t *image, uint32_t type, symbols_t *out)
{
    const Elf64_Ehdr *header = (const void *)image->bytes;
    const Elf64_Shdr *sections = header->e_shentsize == sizeof(Elf64_Shdr)
                                     ? elf_symbols_table(image, header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr))
                                     : NULL;
    for (size_t i = 0; sections != NULL && i < header->e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];
        if (section->sh_type != type || section->sh_link >= header->e_shnum)
            continue;
        const Elf64_Shdr *strings = &sections[section->sh_link];
        out->count = section->sh_size / sizeof(Elf64_Sym);
        out->at = elf_symbols_table(image, section->sh_offset, out->count, sizeof(Elf64_Sym));
        bool fits = strings->sh_offset <= image->size && strings->sh_size <= image->size - strings->sh_offset;
        out->strings = fits ? (const char *)image->bytes + strings->sh_offset : NULL;
        out->strings_size = fits ? strings->sh_size : 0;
        return out->at != NULL && out->strings != NULL;
    }
    return false;
}

typedef unsigned kinds_t; // of symbols that are defined: 1 << STT_...; 0 = any, defined or not
enum { FUNCTIONS = 1u << STT_FUNC | 1u << STT_NOTYPE };

// A name is looked for among the strings first: most programs do not have it.
static const Elf64_Sym *elf_symbols_find_symbol(const symbols_t *symbols, const char *name, kinds_t kinds)
{
    size_t size = strlen(name) + 1;
    if (memmem(symbols->strings, symbols->strings_size, name, size) == NULL)
        return NULL;
    for (size_t i = 0; i < symbols->count; i++) {
        const Elf64_Sym *symbol = &symbols->at[i];
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        bool wanted = kinds == 0 || (symbol->st_shndx != SHN_UNDEF && (kinds >> type & 1));
        if (wanted && symbol->st_name < symbols->strings_size && symbols->strings_size - symbol->st_name >= size &&
            memcmp(symbols->strings + symbol->st_name, name, size) == 0)
            return symbol;
    }
    return NULL;
}

static const Elf64_Sym *elf_symbols_find(const gp_elf_image_t *image, const char *name, kinds_t kinds)
{
    symbols_t symbols;
    const Elf64_Sym *found = NULL;
    if (elf_symbols_read_table(image, SHT_DYNSYM, &symbols))
        found = elf_symbols_find_symbol(&symbols, name, kinds);
    if (found == NULL && elf_symbols_read_table(image, SHT_SYMTAB, &symbols))
        found = elf_symbols_find_symbol(&symbols, name, kinds);
    return found;
}

static bool elf_symbols_is_function(const Elf64_Sym *symbol)
{
    return symbol->st_shndx != SHN_UNDEF && (FUNCTIONS >> ELF64_ST_TYPE(symbol->st_info) & 1);
}

static void elf_symbols_scan_table(gp_elf_image_t *image, const symbols_t *symbols)
{
    for (size_t i = 0; i < symbols->count; i++) {
        const Elf64_Sym *symbol = &symbols->at[i];
        if (symbol->st_name >= symbols->strings_size)
            continue;
        const char *name = symbols->strings + symbol->st_name;
        size_t room = symbols->strings_size - symbol->st_name, len = strnlen(name, room);
        const struct patch_word *word = len < room ? patch_word_find(name, len) : NULL;
        if (word == NULL)
            continue;
        image->is_mentioned[word->place] = true;
        if (image->functions[word->place] == NULL && elf_symbols_is_function(symbol))
            image->functions[word->place] = symbol;
    }
}

void gp_elf_scan(gp_elf_image_t *image)
{
    symbols_t symbols;
    if (elf_symbols_read_table(image, SHT_DYNSYM, &symbols))
        elf_symbols_scan_table(image, &symbols);
    if (elf_symbols_read_table(image, SHT_SYMTAB, &symbols))
        elf_symbols_scan_table(image, &symbols);
    image->is_scanned = true;
}

static const struct patch_word *elf_symbols_scanned(const gp_elf_image_t *image, const char *name)
{
    return image->is_scanned ? patch_word_find(name, strlen(name)) : NULL;
}

bool gp_elf_function(const gp_elf_image_t *image, const char *name, gp_elf_function_t *out)
{
    const struct patch_word *word = elf_symbols_scanned(image, name);
    const Elf64_Sym *symbol = word != NULL ? image->functions[word->place] : elf_symbols_find(image, name, FUNCTIONS);
    if (symbol == NULL)
        return false;
    *out = (gp_elf_function_t){.address = symbol->st_value, .size = symbol->st_size};
    return elf_symbols_find_bytes(image, symbol->st_value, out);
}

bool gp_elf_variable(const gp_elf_image_t *image, const char *name, gp_elf_variable_t *out)
{
    const Elf64_Sym *symbol = elf_symbols_find(image, name, 1u << STT_OBJECT | 1u << STT_TLS);
    size_t count;
    const Elf64_Phdr *segment = elf_symbols_segments(image, &count);
    if (symbol == NULL || symbol->st_size != sizeof(void *))
        return false;
    *out = (gp_elf_variable_t){symbol->st_value, ELF64_ST_TYPE(symbol->st_info) == STT_TLS};
    if (!out->is_thread_local)
        return true;
    for (size_t i = 0; i < count; i++, segment++) {
        if (segment->p_type != PT_TLS)
            continue;
        // Source: Drepper, "ELF Handling For Thread-Local Storage", variant II: the program's lies right below the
        // thread pointer.
        uint64_t align = segment->p_align > 1 ? segment->p_align : 1;
        out->address -= (segment->p_memsz + align - 1) / align * align;
        return true;
    }
    return false;
}

bool gp_elf_exports(const gp_elf_image_t *image, const char *name)
{
    symbols_t symbols;
    return elf_symbols_read_table(image, SHT_DYNSYM, &symbols) && elf_symbols_find_symbol(&symbols, name, ~0u) != NULL;
}

const void *gp_elf_at(const gp_elf_image_t *image, uint64_t address, size_t bytes)
{
    size_t count;
    const Elf64_Phdr *segment = elf_symbols_segments(image, &count);
    for (size_t i = 0; i < count; i++, segment++) {
        uint64_t within = address - segment->p_vaddr;
        if (segment->p_type != PT_LOAD || address < segment->p_vaddr || segment->p_filesz < bytes ||
            within > segment->p_filesz - bytes || segment->p_offset > image->size ||
            segment->p_filesz > image->size - segment->p_offset)
            continue;
        return image->bytes + segment->p_offset + within;
    }
    return NULL;
}

const void *gp_elf_object(const gp_elf_image_t *image, const char *name, size_t bytes)
{
    const Elf64_Sym *symbol = elf_symbols_find(image, name, 1u << STT_OBJECT);
    return symbol != NULL && symbol->st_size >= bytes ? gp_elf_at(image, symbol->st_value, bytes) : NULL;
}

bool gp_elf_mentions(const gp_elf_image_t *image, const char *name)
{
    const struct patch_word *word = elf_symbols_scanned(image, name);
    return word != NULL ? image->is_mentioned[word->place] : elf_symbols_find(image, name, 0) != NULL;
}

size_t gp_elf_count_code(const gp_elf_image_t *image, const unsigned char *code, size_t size, gp_elf_function_t *out)
{
    size_t count, found = 0;
    const Elf64_Phdr *segment = elf_symbols_segments(image, &count);
    for (size_t i = 0; i < count; i++, segment++) {
        const unsigned char *at = image->bytes + segment->p_offset, *end = at + segment->p_filesz;
        if (!elf_symbols_is_code(image, segment))
            continue;
        for (; (at = memmem(at, (size_t)(end - at), code, size)) != NULL; at++, found++)
            *out = (gp_elf_function_t){
                .address = segment->p_vaddr + (uint64_t)(at - image->bytes) - segment->p_offset,
                .size = size,
                .code = at,
                .code_size = (size_t)(end - at),
            };
    }
    return found;
}

bool gp_elf_find_code(const gp_elf_image_t *image, const unsigned char *code, size_t size, gp_elf_function_t *out)
{
    return gp_elf_count_code(image, code, size, out) == 1;
}
