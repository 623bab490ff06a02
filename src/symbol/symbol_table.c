// SPDX-License-Identifier: MIT
#include "symbol/symbol_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct candidate {
    uint64_t lo, hi; // hi == lo: no size
    bool dynamic;    // of a .dynsym: without a size it covers nothing
    bool label;      // local, without a type and a size
    bool foldable;   // strong and of a size, in a file whose linker folds identical code
    uint64_t section_end;
    const char *name, *twin; // see gp_range_t
    uint32_t rank;           // smaller is the better of several names for one range
} candidate_t;

typedef struct candidates {
    candidate_t *items;
    size_t count, capacity;
} candidates_t;

// Which of several names for the same code a reader would expect: the one with the fewest leading
// underscores, then the global one, then the shortest.
static uint32_t symbol_table_name_rank(const Elf64_Sym *symbol, const char *name)
{
    uint32_t underscores = (uint32_t)strspn(name, "_");
    uint32_t bind = ELF64_ST_BIND(symbol->st_info);
    uint32_t local = bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;
    size_t len = strlen(name);
    if (underscores >= 2 && name[underscores] == 'Z')
        underscores = 0;
    else if (underscores == 1 && name[1] == 'Z') // a mangled C++ name
        underscores = 0;
    return (underscores < 15 ? underscores : 15) << 24 | local << 20 | (uint32_t)(len < 0xfffff ? len : 0xfffff);
}

static bool symbol_table_is_function(const gp_elf_t *elf, const Elf64_Sym *symbol, const char *name)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC)
        return false;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= elf->section_count)
        return false;
    if ((elf->sections[symbol->st_shndx].sh_flags & SHF_EXECINSTR) == 0)
        return false;
    return name[0] != '\0' && name[0] != '@' && name[0] != '$'; // "$x": mapping symbols of aarch64
}

// Does the linker that made the file fold identical code, if it is asked to? Two names of one address are aliases else.
static bool symbol_table_may_fold(const gp_elf_t *elf)
{
    const Elf64_Shdr *comment = gp_elf_section(elf, ".comment");
    size_t len = 0;
    if (gp_elf_section(elf, ".note.gnu.gold-version") != NULL)
        return true;
    char *text = comment != NULL ? gp_elf_section_read(elf, comment, &len) : NULL;
    bool found = text != NULL && (memmem(text, len, "LLD ", 4) != NULL || memmem(text, len, "mold ", 5) != NULL);
    free(text);
    return found;
}

// Is one name made of the other ("__read", "read"), or are both of one constructor ("...C1Ev", "...C2Ev")?
static bool symbol_table_are_related(const char *a, const char *b)
{
    a += strspn(a, "_");
    b += strspn(b, "_");
    size_t same = 0;
    while (a[same] != '\0' && a[same] == b[same])
        same++;
    bool copies = same > 0 && (a[same - 1] == 'C' || a[same - 1] == 'D') && strlen(a) == strlen(b) &&
                  strcmp(a + same + 1, b + same + 1) == 0;
    return copies || strstr(a, b) != NULL || strstr(b, a) != NULL;
}

static int symbol_table_collect(candidates_t *all, const gp_symbol_source_t *source, const Elf64_Sym *symbols,
                                size_t count, const char *names, size_t names_len)
{
    const gp_elf_t *elf = source->elf;
    bool folds = symbol_table_may_fold(elf);
    for (size_t i = 0; i < count; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        const char *name = symbol->st_name < names_len ? names + symbol->st_name : "";
        if (!symbol_table_is_function(elf, symbol, name))
            continue;
        const Elf64_Shdr *section = &elf->sections[symbol->st_shndx];
        uint64_t end = section->sh_addr + section->sh_size;
        if (symbol->st_value < section->sh_addr || symbol->st_value >= end)
            continue;
        if (gp_grow(&all->items, &all->capacity, all->count, sizeof(*all->items)) < 0)
            return -ENOMEM;
        uint64_t size = symbol->st_size < end - symbol->st_value ? symbol->st_size : end - symbol->st_value;
        all->items[all->count++] = (candidate_t){
            .lo = symbol->st_value,
            .hi = symbol->st_value + size,
            .dynamic = source->dynamic,
            .foldable = folds && size > 0 && ELF64_ST_BIND(symbol->st_info) != STB_WEAK,
            .label = size == 0 && symbol->st_info == ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE),
            .section_end = end,
            .name = name,
            .rank = symbol_table_name_rank(symbol, name),
        };
    }
    return 0;
}

// The texts stay until the table is made.
static int symbol_table_collect_source(candidates_t *all, const gp_symbol_source_t *source, char **names)
{
    const gp_elf_t *elf = source->elf;
    const Elf64_Shdr *section = gp_elf_section_of_type(elf, source->dynamic ? SHT_DYNSYM : SHT_SYMTAB);
    size_t symbols_len = 0, names_len = 0;
    if (section == NULL || section->sh_link >= elf->section_count)
        return -ENOENT;
    Elf64_Sym *symbols = gp_elf_section_read(elf, section, &symbols_len);
    *names = gp_elf_section_read(elf, &elf->sections[section->sh_link], &names_len);
    int result = symbols != NULL && *names != NULL
                     ? symbol_table_collect(all, source, symbols, symbols_len / sizeof(*symbols), *names, names_len)
                     : -ENOEXEC;
    free(symbols);
    return result;
}

// By start, then the larger first (it is the outer one), functions before labels, then the better name.
static int symbol_table_compare_candidates(const void *left, const void *right)
{
    const candidate_t *a = left, *b = right;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    if (a->hi != b->hi)
        return a->hi > b->hi ? -1 : 1;
    if (a->label != b->label)
        return a->label - b->label;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return strcmp(a->name, b->name);
}

// Where what begins at all->items[number] meets the next that ends it: labels do so among themselves, nasm's "f.loop"
// not even to f.
static uint64_t symbol_table_next_start(const candidates_t *all, size_t number)
{
    const candidate_t *item = &all->items[number];
    size_t len = strlen(item->name);
    for (size_t i = number + 1; i < all->count; i++) {
        const candidate_t *next = &all->items[i];
        bool within =
            next->label && (!item->label || (strncmp(next->name, item->name, len) == 0 && next->name[len] == '.'));
        if (next->lo > item->lo && !within)
            return next->lo;
    }
    return UINT64_MAX;
}

// Give symbols without a size the code up to whatever comes next, unless they are inside another one.
static void symbol_table_extend_unsized(candidates_t *all, const gp_eh_functions_t *functions)
{
    uint64_t covered = 0;
    for (size_t i = 0; i < all->count; i++) {
        candidate_t *item = &all->items[i];
        if (item->hi > item->lo) {
            covered = item->hi > covered ? item->hi : covered;
            continue;
        }
        if (item->lo < covered || item->dynamic)
            continue;
        uint64_t next = symbol_table_next_start(all, i);
        item->hi = gp_eh_functions_limit(functions, item->lo, next < item->section_end ? next : item->section_end);
        covered = item->hi;
    }
}

static int symbol_table_emit(gp_symbol_table_t *table, uint64_t *position, uint64_t end, const candidate_t *candidate)
{
    int result = 0;
    if (*position < end)
        result = gp_symbol_table_add(table, *position, end, candidate->lo, candidate->name,
                                     strcspn(candidate->name, "@")); // "memcpy@@GLIBC_2.14"
    if (*position < end && result == 0 && candidate->twin != NULL)
        table->ranges[table->count - 1].twin = gp_arena_text(&table->names, candidate->twin, strlen(candidate->twin));
    if (*position < end)
        *position = end;
    return result;
}

// Note in the first of several names for the same code, the best one, that another function has the code, too.
static void symbol_table_find_twins(candidates_t *all)
{
    for (size_t i = 1, best = 0; i < all->count; i++) {
        candidate_t *first = &all->items[best], *other = &all->items[i];
        if (first->lo != other->lo || first->hi != other->hi)
            best = i;
        else if (first->twin == NULL && first->foldable && other->foldable &&
                 !symbol_table_are_related(first->name, other->name))
            first->twin = other->name;
    }
}

// Cut nested ranges into disjoint ones: a sweep with the stack of those that are open.
static int symbol_table_flatten(gp_symbol_table_t *table, const candidates_t *all)
{
    size_t *open = gp_memory_had(calloc(all->count + 1, sizeof(*open)));
    size_t depth = 0;
    uint64_t position = 0;
    int result = open ? 0 : -ENOMEM;
    for (size_t i = 0; result == 0 && i <= all->count; i++) {
        const candidate_t *item = i < all->count ? &all->items[i] : NULL;
        if (item != NULL && item->hi == item->lo)
            continue;
        // cppcheck-suppress nullPointerRedundantCheck ; `item` is an element of an array here, i counts those before it
        if (item != NULL && i > 0 && item->lo == item[-1].lo && item->hi == item[-1].hi)
            continue; // another name for the same code; the best came first
        for (; result == 0 && depth > 0; depth--) {
            const candidate_t *top = &all->items[open[depth - 1]];
            if (item != NULL && top->hi > item->lo)
                break;
            result = symbol_table_emit(table, &position, top->hi, top);
        }
        if (result < 0 || item == NULL)
            break;
        if (depth > 0)
            result = symbol_table_emit(table, &position, item->lo, &all->items[open[depth - 1]]);
        position = item->lo > position ? item->lo : position;
        open[depth++] = i;
    }
    free(open);
    return result;
}

int gp_symbol_table_load(gp_symbol_table_t *table, const gp_symbol_source_t *sources, size_t count,
                         const gp_eh_functions_t *functions)
{
    char *names[GP_SYMBOL_SOURCES_MAX] = {NULL};
    candidates_t all = {0};
    int result = 0;
    size_t found = 0;
    for (size_t i = 0; i < count && i < GP_SYMBOL_SOURCES_MAX && result != -ENOMEM; i++) {
        result = symbol_table_collect_source(&all, &sources[i], &names[i]);
        found += result == 0;
    }
    if (result != -ENOMEM)
        result = found > 0 ? 0 : -ENOENT;
    if (result == 0 && all.count > 0) {
        gp_sort(all.items, all.count, sizeof(*all.items), symbol_table_compare_candidates);
        symbol_table_extend_unsized(&all, functions);
        symbol_table_find_twins(&all);
        result = symbol_table_flatten(table, &all);
        gp_symbol_table_sort(table);
    }
    for (size_t i = 0; i < GP_SYMBOL_SOURCES_MAX; i++)
        free(names[i]);
    free(all.items);
    return result;
}

int gp_symbol_table_add(gp_symbol_table_t *table, uint64_t lo, uint64_t hi, uint64_t start, const char *name,
                        size_t name_len)
{
    const char *copy = gp_arena_text(&table->names, name, name_len);
    if (copy == NULL || gp_grow(&table->ranges, &table->capacity, table->count, sizeof(*table->ranges)) < 0)
        return -ENOMEM;
    table->ranges[table->count++] = (gp_range_t){.lo = lo, .hi = hi, .start = start, .name = copy};
    gp_buckets_free(&table->buckets); // of fewer ranges
    return 0;
}

static int symbol_table_compare_ranges(const void *left, const void *right)
{
    const gp_range_t *a = left, *b = right;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

void gp_symbol_table_sort(gp_symbol_table_t *table)
{
    gp_sort(table->ranges, table->count, sizeof(*table->ranges), symbol_table_compare_ranges);
    gp_buckets_free(&table->buckets);
    gp_buckets_make(&table->buckets, table->ranges, table->count, sizeof(*table->ranges));
}

gp_range_t *gp_symbol_table_find(const gp_symbol_table_t *table, uint64_t address)
{
    size_t upto = gp_buckets_upto(&table->buckets, table->ranges, table->count, sizeof(*table->ranges), address);
    return upto > 0 && address < table->ranges[upto - 1].hi ? &table->ranges[upto - 1] : NULL;
}

uint64_t gp_symbol_table_entry(const gp_symbol_table_t *table, const gp_range_t *range)
{
    const char *suffix = strstr(range->name, ".cold");
    size_t len = suffix != NULL ? (size_t)(suffix - range->name) : 0;
    uint64_t entry = range->start;
    for (size_t i = 0; i < table->count && len > 0; i++) {
        const gp_range_t *other = &table->ranges[i];
        if (strncmp(other->name, range->name, len) != 0 || other->name[len] != '\0' || other->start == entry)
            continue;
        if (entry != range->start)
            return range->start; // there are several
        entry = other->start;
    }
    return entry;
}

void gp_symbol_table_free(gp_symbol_table_t *table)
{
    free(table->ranges);
    gp_buckets_free(&table->buckets);
    gp_arena_free(&table->names);
    memset(table, 0, sizeof(*table));
}
