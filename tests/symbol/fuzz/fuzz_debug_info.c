// SPDX-License-Identifier: MIT
// Any bytes as DWARF sections. The input is a list of (section's number: 1 byte, length: 2 bytes,
// bytes), which become an ELF file; then every address that the units claim is looked up. The file is its own .dwo and
// .dwp, too.
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "symbol/dwarf_unit.h"

static const char names[] = "\0.debug_info\0.debug_abbrev\0.debug_line\0.debug_str\0.debug_line_str"
                            "\0.debug_ranges\0.debug_rnglists\0.debug_addr\0.debug_str_offsets"
                            "\0.debug_info.dwo\0.debug_abbrev.dwo\0.debug_str.dwo\0.debug_str_offsets.dwo"
                            "\0.debug_rnglists.dwo\0.debug_cu_index\0.shstrtab";

enum { OF_DWARF = GP_DEBUG_SECTIONS + GP_DEBUG_SPLIT_SECTIONS + 1, SECTIONS = OF_DWARF + 2 };

typedef struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    char names[sizeof(names)];
    uint8_t data[];
} image_t;

static uint32_t name_offset(unsigned number) // of the number-th name behind the empty one
{
    const char *at = names;
    while (number-- > 0)
        at += strlen(at) + 1;
    return (uint32_t)(at - names);
}

static void add_section(image_t *image, unsigned number, uint64_t offset, uint64_t size)
{
    image->sections[number] = (Elf64_Shdr){
        .sh_name = name_offset(number),
        .sh_type = SHT_PROGBITS,
        .sh_offset = offset,
        .sh_size = size,
    };
}

static image_t *make_image(const uint8_t *data, size_t size)
{
    image_t *image = calloc(1, sizeof(*image) + size);
    if (image == NULL)
        abort();
    memcpy(image->header.e_ident, ELFMAG "\2\1\1", 7);
    image->header.e_shoff = offsetof(image_t, sections);
    image->header.e_shentsize = sizeof(Elf64_Shdr);
    image->header.e_shnum = SECTIONS;
    image->header.e_shstrndx = SECTIONS - 1;
    memcpy(image->names, names, sizeof(names));
    memcpy(image->data, data, size);
    add_section(image, SECTIONS - 1, offsetof(image_t, names), sizeof(names));
    for (size_t at = 0; at + 3 <= size;) {
        unsigned number = 1 + data[at] % OF_DWARF;
        size_t len = (size_t)(data[at + 1] | data[at + 2] << 8);
        at += 3;
        len = len < size - at ? len : size - at;
        add_section(image, number, offsetof(image_t, data) + at, len);
        at += len;
    }
    return image;
}

static const void *every_file;
static size_t every_size;

int __wrap_gp_elf_open(gp_elf_t *elf, const char *path);

int __wrap_gp_elf_open(gp_elf_t *elf, const char *path)
{
    (void)path;
    return gp_elf_open_image(elf, every_file, every_size);
}

static void look_up(gp_dwarf_t *dwarf, uint64_t address)
{
    gp_dwarf_place_t places[GP_DWARF_PLACES_MAX];
    size_t count = gp_dwarf_find(dwarf, address, places);
    size_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += places[i].name ? strlen(places[i].name) : 0;
        sum += places[i].file ? strlen(places[i].file) : 0;
        sum += places[i].first_file ? strlen(places[i].first_file) : 0;
    }
    if (count > GP_DWARF_PLACES_MAX || sum > (size_t)1 << 30)
        abort();
}

static void check_ranges(const gp_dwarf_ranges_t *ranges, size_t numbers)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (ranges->items[i].lo >= ranges->items[i].hi || (i > 0 && ranges->items[i - 1].hi > ranges->items[i].lo) ||
            ranges->items[i].number >= numbers)
            abort();
}

static void check(const gp_dwarf_unit_t *unit)
{
    check_ranges(&unit->ranges, unit->function_count);
    for (size_t i = 0; i < unit->function_count; i++)
        check_ranges(&unit->functions[i].ranges, SIZE_MAX);
    for (size_t i = 1; i < unit->line_count; i++)
        if (unit->lines[i - 1].address > unit->lines[i].address)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gp_elf_t elf;
    image_t *image = make_image(data, size);
    every_file = image;
    every_size = sizeof(*image) + size;
    if (gp_elf_open_image(&elf, image, every_size) < 0)
        abort();
    gp_dwarf_t *dwarf = gp_dwarf_open(&elf, "file");
    for (size_t i = 0; dwarf != NULL && i < dwarf->span_count && i < 64; i++) {
        look_up(dwarf, dwarf->spans[i].lo);
        look_up(dwarf, dwarf->spans[i].hi - 1);
        gp_dwarf_unit_t *unit = &dwarf->units[dwarf->spans[i].unit];
        check(unit);
        for (size_t k = 0; k < unit->ranges.count && k < 64; k++)
            look_up(dwarf, unit->ranges.items[k].lo);
    }
    gp_dwarf_close(dwarf);
    gp_elf_close(&elf);
    free(image);
    return 0;
}
