// SPDX-License-Identifier: MIT
#include "process/got_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/arch.h"
#include "base/loaded.h"
#include "unwind/module.h"

enum { NAMES_MAX = 256 };

typedef struct name { // that the core defines
    const char *text;
    uintptr_t address;
} name_t;

typedef struct table { // of a module, as its dynamic section has it
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * relocations[2];
    size_t counts[2];
    uintptr_t relro, relro_end;
} table_t;

static name_t names[NAMES_MAX];
static size_t name_count;
static int got_calls_by_text(const void *a, const void *b)
{
    return strcmp(((const name_t *)a)->text, ((const name_t *)b)->text);
}

static uintptr_t got_calls_address_of(const char *text)
{
    const name_t key = {.text = text}, *found = bsearch(&key, names, name_count, sizeof(names[0]), got_calls_by_text);
    return found != NULL ? found->address : 0;
}

static bool got_calls_read_table(const struct dl_phdr_info *info, table_t *table)
{
    const ElfW(Dyn) *entry = gp_loaded_dynamic(info);
    *table = (table_t){0};
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SYMTAB)
            table->symbols = (const ElfW(Sym) *)gp_loaded_pointer(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_STRTAB)
            table->strings = (const char *)gp_loaded_pointer(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_JMPREL)
            table->relocations[0] = (const ElfW(Rela) *)gp_loaded_pointer(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_PLTRELSZ)
            table->counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
        else if (entry->d_tag == DT_RELA)
            table->relocations[1] = (const ElfW(Rela) *)gp_loaded_pointer(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_RELASZ)
            table->counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
            table->relro = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            table->relro_end = table->relro + info->dlpi_phdr[i].p_memsz;
        }
    return table->symbols != NULL && table->strings != NULL;
}

// How many symbols there are is nowhere said: the last one of the hash table's last chain.
static size_t got_calls_count_symbols(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *entry = gp_loaded_dynamic(info);
    const uint32_t *hash = NULL;
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_GNU_HASH)
            hash = (const uint32_t *)gp_loaded_pointer(info, entry->d_un.d_ptr);
    if (hash == NULL)
        return 0;
    uint32_t buckets = hash[0], first = hash[1], last = 0;
    const uint32_t *bucket = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t)), *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        last = bucket[i] > last ? bucket[i] : last;
    if (last < first)
        return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

// All functions that the core interposes: everything it exports except prof_*.
static void got_calls_learn_names(const struct dl_phdr_info *info)
{
    table_t table;
    if (!got_calls_read_table(info, &table))
        return;
    for (size_t i = 1, count = got_calls_count_symbols(info); i < count && name_count < NAMES_MAX; i++) {
        const ElfW(Sym) *symbol = &table.symbols[i];
        const char *text = table.strings + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
            strncmp(text, "prof_", 5) == 0)
            continue;
        names[name_count++] = (name_t){text, info->dlpi_addr + symbol->st_value};
    }
    qsort(names, name_count, sizeof(names[0]), got_calls_by_text);
}

bool gp_got_holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t lo = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && address >= lo && address < lo + info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

// The core itself; and what defines the names, as the C library and the loader, or may be another core.
static bool got_calls_is_left_alone(const struct dl_phdr_info *info)
{
    const char *name = info->dlpi_name != NULL ? info->dlpi_name : "", *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    return gp_got_holds(info, (uintptr_t)gp_got_calls_each) || strncmp(base, "libc.so", 7) == 0 ||
           strncmp(base, "ld-", 3) == 0 || strncmp(base, "libpthread.so", 13) == 0 ||
           strncmp(base, "libdl.so", 8) == 0 || strncmp(base, "linux-vdso", 10) == 0 ||
           strncmp(base, "libgreenprof", 12) == 0;
}

// glibc 2.36 finds the addresses of a module from when it is relocated.
static bool got_calls_is_ready(const struct dl_phdr_info *info)
{
    gp_location_t where;
    return gp_module_locate((uintptr_t)gp_loaded_dynamic(info), &where);
}

typedef struct visitor {
    gp_got_visit_t *visit;
    size_t first, number; // modules before the first one are passed over; how many were met
    bool is_early;
} visitor_t;

static gp_got_call_t got_calls_call_of(const struct dl_phdr_info *info, const table_t *table,
                                       const ElfW(Rela) * relocation)
{
    const ElfW(Sym) *symbol = &table->symbols[ELF64_R_SYM(relocation->r_info)];
    uintptr_t at = info->dlpi_addr + relocation->r_offset;
    return (gp_got_call_t){.info = info,
                           .at = (uintptr_t *)at,
                           .after = got_calls_address_of(table->strings + symbol->st_name),
                           .is_undefined = symbol->st_shndx == SHN_UNDEF,
                           .is_protected = at >= table->relro && at < table->relro_end};
}

static bool got_calls_is_call(const ElfW(Rela) * relocation)
{
    unsigned type = ELF64_R_TYPE(relocation->r_info);
    return type == GP_ARCH_JUMP_SLOT || type == GP_ARCH_GLOBAL_SLOT;
}

// Visit the slots of names that the core defines.
static int got_calls_visit_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    table_t table;
    visitor_t *visitor = argument;
    (void)size;
    if (visitor->number++ < visitor->first || got_calls_is_left_alone(info) || !got_calls_read_table(info, &table))
        return 0;
    if (!got_calls_is_ready(info)) {
        visitor->is_early = true;
        return 0;
    }
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < table.counts[i] && table.relocations[i] != NULL; j++) {
            const ElfW(Rela) *relocation = &table.relocations[i][j];
            const gp_got_call_t call =
                got_calls_is_call(relocation) ? got_calls_call_of(info, &table, relocation) : (gp_got_call_t){0};
            if (call.after != 0)
                visitor->visit(&call);
        }
    return 0;
}

static int got_calls_learn_own(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (name_count == 0 && gp_got_holds(info, (uintptr_t)gp_got_calls_each))
        got_calls_learn_names(info);
    return name_count > 0;
}

bool gp_got_calls_each(gp_got_visit_t *visit, size_t first)
{
    visitor_t visitor = {.visit = visit, .first = first};
    gp_module_locate_prepare();
    dl_iterate_phdr(got_calls_learn_own, NULL);
    dl_iterate_phdr(got_calls_visit_module, &visitor);
    return visitor.is_early;
}
