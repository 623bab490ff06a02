// SPDX-License-Identifier: MIT
// PLT stubs: which function a stub jumps to is read from its code (jmp *slot(%rip)) and the slot's
// relocation, which holds for .plt, .plt.sec (IBT) and .plt.got alike, whatever the linker.
#include "symbol/symbol_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STUB_BYTES = 16, NAME_MAX_BYTES = 4096 };

typedef struct slot {
    uint64_t address;
    uint32_t symbol;   // in .dynsym; 0 where `resolver` counts
    uint64_t resolver; // of an IFUNC of this module, which has no symbol in its relocation
} slot_t;

typedef struct plt {
    slot_t *slots;
    size_t count, capacity;
    Elf64_Sym *symbols;
    size_t symbols_len;
    char *names;
    size_t names_len;
} plt_t;

static int plt_compare_slots(const void *left, const void *right)
{
    const slot_t *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static int plt_add_slots(plt_t *plt, const gp_elf_t *elf, const Elf64_Shdr *section)
{
    size_t len;
    Elf64_Rela *relocations = gp_elf_section_read(elf, section, &len);
    int result = 0;
    if (relocations == NULL)
        return -errno;
    for (size_t i = 0; i < len / sizeof(*relocations) && result == 0; i++) {
        uint32_t symbol = (uint32_t)ELF64_R_SYM(relocations[i].r_info);
        if (symbol == 0 && ELF64_R_TYPE(relocations[i].r_info) != R_X86_64_IRELATIVE)
            continue;
        result = gp_grow(&plt->slots, &plt->capacity, plt->count, sizeof(*plt->slots));
        if (result == 0)
            plt->slots[plt->count++] = (slot_t){relocations[i].r_offset, symbol, (uint64_t)relocations[i].r_addend};
    }
    free(relocations);
    return result;
}

static int plt_load_slots(plt_t *plt, const gp_elf_t *elf)
{
    const Elf64_Shdr *dynsym = gp_elf_section_of_type(elf, SHT_DYNSYM);
    int result = 0;
    if (dynsym == NULL || dynsym->sh_link >= elf->section_count)
        return -ENOENT;
    plt->symbols = gp_elf_section_read(elf, dynsym, &plt->symbols_len);
    plt->names = gp_elf_section_read(elf, &elf->sections[dynsym->sh_link], &plt->names_len);
    if (plt->symbols == NULL || plt->names == NULL)
        return -ENOENT;
    for (size_t i = 0; i < elf->section_count && result == 0; i++)
        if (elf->sections[i].sh_type == SHT_RELA && (elf->sections[i].sh_flags & SHF_ALLOC) != 0)
            result = plt_add_slots(plt, elf, &elf->sections[i]);
    gp_sort(plt->slots, plt->count, sizeof(*plt->slots), plt_compare_slots);
    return result;
}

// `known`: the module's symbols; a resolver bears the name of its function.
static const char *plt_slot_name(const plt_t *plt, const gp_symbol_table_t *known, uint64_t address)
{
    slot_t wanted = {.address = address};
    const slot_t *slot =
        plt->count ? bsearch(&wanted, plt->slots, plt->count, sizeof(wanted), plt_compare_slots) : NULL;
    if (slot != NULL && slot->symbol == 0) {
        const gp_range_t *range = gp_symbol_table_find(known, slot->resolver);
        return range != NULL && range->start == slot->resolver ? range->name : NULL;
    }
    if (slot == NULL || slot->symbol >= plt->symbols_len / sizeof(*plt->symbols))
        return NULL;
    uint32_t name = plt->symbols[slot->symbol].st_name;
    return name < plt->names_len && plt->names[name] != '\0' ? plt->names + name : NULL;
}

// The address of the slot that a stub jumps through; 0 when it is no such stub.
static uint64_t plt_stub_slot(const uint8_t *code, uint64_t address)
{
    for (size_t at = 0; at + 6 <= STUB_BYTES; at++) {
        int32_t displacement;
        if (code[at] != 0xff || code[at + 1] != 0x25) // jmp *displacement(%rip)
            continue;
        memcpy(&displacement, code + at + 2, sizeof(displacement));
        return address + at + 6 + (uint64_t)(int64_t)displacement;
    }
    return 0;
}

// New ranges go behind those that are sorted.
static int plt_name_stubs(gp_symbol_table_t *table, size_t sorted, const plt_t *plt, const gp_elf_t *elf,
                          const char *section_name)
{
    const Elf64_Shdr *section = gp_elf_section(elf, section_name);
    char text[NAME_MAX_BYTES];
    size_t len = 0;
    int result = 0;
    if (section == NULL)
        return 0;
    // .plt.got without IBT has stubs of 8 bytes; everything else on x86-64 has 16.
    size_t stub = section->sh_entsize == 8 ? 8 : STUB_BYTES;
    uint8_t *code = gp_elf_section_read(elf, section, &len);
    for (size_t at = 0; code != NULL && at + stub <= len && result == 0; at += stub) {
        uint8_t padded[STUB_BYTES] = {0};
        uint64_t address = section->sh_addr + at;
        memcpy(padded, code + at, stub);
        const gp_symbol_table_t before = {.ranges = table->ranges, .count = sorted};
        const char *name = plt_slot_name(plt, &before, plt_stub_slot(padded, address));
        if (name == NULL || gp_symbol_table_find(&before, address) != NULL)
            continue;
        snprintf(text, sizeof(text), "%s@plt", name);
        result = gp_symbol_table_add(table, address, address + stub, address, text, strlen(text));
    }
    free(code);
    return result;
}

int gp_symbol_table_add_plt(gp_symbol_table_t *table, const gp_elf_t *elf)
{
    static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
    plt_t plt = {0};
    int result = elf->header.e_machine == EM_X86_64 ? plt_load_slots(&plt, elf) : -ENOENT;
    size_t sorted = table->count;
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]) && result == 0; i++)
        result = plt_name_stubs(table, sorted, &plt, elf, sections[i]);
    if (table->count > sorted)
        gp_symbol_table_sort(table);
    free(plt.slots);
    free(plt.symbols);
    free(plt.names);
    return result == -ENOENT ? 0 : result;
}
