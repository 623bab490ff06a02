// SPDX-License-Identifier: MIT
#include "base/loaded.h"

#include <stddef.h>
#include <string.h>

typedef struct question {
    const char *name;
    uint32_t hash;
    bool is_defined;
} question_t;

typedef struct table {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;
} table_t;

const ElfW(Dyn) * gp_loaded_dynamic(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

static uint32_t loaded_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

// Source: "GNU Hash ELF Sections" of the binutils list; the filter before the buckets is passed over.
static const ElfW(Sym) * loaded_find(const table_t *table, const question_t *question)
{
    uint32_t buckets = table->hash[0], first = table->hash[1], words = table->hash[2];
    const uint32_t *bucket = table->hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t at = buckets > 0 ? bucket[question->hash % buckets] : 0;
    if (at < first)
        return NULL;
    for (;; at++) {
        const ElfW(Sym) *symbol = &table->symbols[at];
        uint32_t found = chain[at - first];
        if ((found | 1) == (question->hash | 1) && symbol->st_shndx != SHN_UNDEF &&
            strcmp(table->strings + symbol->st_name, question->name) == 0)
            return symbol;
        if (found & 1)
            return NULL;
    }
}

static table_t loaded_table_of(const struct dl_phdr_info *info)
{
    table_t table = {0};
    const ElfW(Dyn) *entry = gp_loaded_dynamic(info);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SYMTAB)
            table.symbols = (const ElfW(Sym) *)gp_loaded_pointer(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_STRTAB)
            table.strings = (const char *)gp_loaded_pointer(info, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_GNU_HASH)
            table.hash = (const uint32_t *)gp_loaded_pointer(info, entry->d_un.d_ptr);
    return table;
}

static bool loaded_answers(const struct dl_phdr_info *info, const question_t *question)
{
    const table_t table = loaded_table_of(info);
    return table.symbols != NULL && table.strings != NULL &&
           (table.hash == NULL || loaded_find(&table, question) != NULL);
}

static int loaded_look(struct dl_phdr_info *info, size_t size, void *argument)
{
    question_t *question = argument;
    (void)size;
    question->is_defined = loaded_answers(info, question);
    return question->is_defined;
}

const void *gp_loaded_one_symbol(const struct dl_phdr_info *info, const char *name)
{
    const question_t question = {.name = name, .hash = loaded_hash_of(name)};
    const table_t table = loaded_table_of(info);
    bool has_all = table.symbols != NULL && table.strings != NULL && table.hash != NULL;
    const ElfW(Sym) *symbol = has_all ? loaded_find(&table, &question) : NULL;
    return symbol != NULL ? (const void *)(info->dlpi_addr + symbol->st_value) : NULL;
}

bool gp_loaded_one_defines(const struct dl_phdr_info *info, const char *name)
{
    const question_t question = {.name = name, .hash = loaded_hash_of(name)};
    return loaded_answers(info, &question);
}

bool gp_loaded_defines(const char *name)
{
    question_t question = {.name = name, .hash = loaded_hash_of(name)};
    dl_iterate_phdr(loaded_look, &question);
    return question.is_defined;
}
