// SPDX-License-Identifier: MIT
#include "process/got.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loaded.h"
#include "model/counters.h"
#include "signal/thread.h"
#include "unwind/module.h"

#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOBAL_SLOT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { JUMP_SLOT = R_AARCH64_JUMP_SLOT, GLOBAL_SLOT = R_AARCH64_GLOB_DAT };
#endif

// A weak name's slot tells nothing of whether it is relocated: as many looks after its module came.
enum { LOOKS = 20, NAMES_MAX = 256 };

typedef struct name { // that the core defines
    const char *text;
    uintptr_t address;
} name_t;

typedef struct slot { // one for each place
    uintptr_t *at;
    uintptr_t before, after;
    bool is_there; // at the present look
} slot_t;

typedef struct table { // of a module, as its dynamic section has it
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * relocations[2];
    size_t counts[2];
    uintptr_t relro, relro_end;
} table_t;

static name_t names[NAMES_MAX];
static size_t name_count;
static slot_t *slots; // the first `sorted_count` by place
static size_t slot_count, slot_room, sorted_count;
static bool is_short; // of room: nothing is allocated while the loader's lock is held
static bool is_early; // there is a module that is not relocated yet
static unsigned long long seen_adds;
static unsigned looks_left;
static int memory = -1; // /proc/self/mem, while slots are written

static int by_text(const void *a, const void *b)
{
    return strcmp(((const name_t *)a)->text, ((const name_t *)b)->text);
}

static uintptr_t address_of(const char *text)
{
    const name_t key = {.text = text}, *found = bsearch(&key, names, name_count, sizeof(names[0]), by_text);
    return found != NULL ? found->address : 0;
}

static bool read_table(const struct dl_phdr_info *info, table_t *table)
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
static size_t count_symbols(const struct dl_phdr_info *info)
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

// What the core defines, but for its own interface, which only those call who mean it.
static void learn_names(const struct dl_phdr_info *info)
{
    table_t table;
    if (!read_table(info, &table))
        return;
    for (size_t i = 1, count = count_symbols(info); i < count && name_count < NAMES_MAX; i++) {
        const ElfW(Sym) *symbol = &table.symbols[i];
        const char *text = table.strings + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
            strncmp(text, "prof_", 5) == 0)
            continue;
        names[name_count++] = (name_t){text, info->dlpi_addr + symbol->st_value};
    }
    qsort(names, name_count, sizeof(names[0]), by_text);
}

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t lo = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && address >= lo && address < lo + info->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

// The core itself; and what defines the names, as the C library and the loader, or may be another core.
static bool is_left_alone(const struct dl_phdr_info *info)
{
    const char *name = info->dlpi_name != NULL ? info->dlpi_name : "", *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    return holds(info, (uintptr_t)gp_got_take) || strncmp(base, "libc.so", 7) == 0 || strncmp(base, "ld-", 3) == 0 ||
           strncmp(base, "libpthread.so", 13) == 0 || strncmp(base, "libdl.so", 8) == 0 ||
           strncmp(base, "linux-vdso", 10) == 0 || strncmp(base, "libgreenprof", 12) == 0;
}

static bool write_slot(const table_t *table, uintptr_t *at, uintptr_t before, uintptr_t value)
{
    uintptr_t place = (uintptr_t)at;
    if (place >= table->relro && place < table->relro_end)
        return memory >= 0 && pwrite(memory, &value, sizeof(value), (off_t)place) == (ssize_t)sizeof(value);
    // Another thread may be binding it: what that found stays, until the next look.
    is_early |= !__atomic_compare_exchange_n(at, &before, value, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return true;
}

static int by_place(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const slot_t *)a)->at, y = (uintptr_t)((const slot_t *)b)->at;
    return (x > y) - (x < y);
}

static void sort_slots(void)
{
    if (slot_count > 0)
        qsort(slots, slot_count, sizeof(slots[0]), by_place);
    sorted_count = slot_count;
}

static slot_t *find_slot(uintptr_t *at)
{
    const slot_t key = {.at = at};
    return sorted_count > 0 ? bsearch(&key, slots, sorted_count, sizeof(slots[0]), by_place) : NULL;
}

// Is it the address of code, or as the file has it: of code in the module as if that were loaded at 0?
static bool is_relocated(const struct dl_phdr_info *info, uintptr_t value)
{
    gp_module_t module;
    bool as_in_file = false;
    for (int i = 0; i < info->dlpi_phnum && info->dlpi_addr != 0; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        as_in_file |=
            header->p_type == PT_LOAD && (header->p_flags & PF_X) && value - header->p_vaddr < header->p_memsz;
    }
    is_early |= as_in_file;
    return !as_in_file && gp_module_find(value, &module) != GP_MODULE_NONE;
}

typedef void got_visit_t(const struct dl_phdr_info *info, const table_t *table, uintptr_t *at, uintptr_t after);

// after: the core's function of that name
static void take_slot(const struct dl_phdr_info *info, const table_t *table, uintptr_t *at, uintptr_t after)
{
    uintptr_t before = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    slot_t *slot = find_slot(at);
    if (slot != NULL)
        slot->is_there = true;
    // A weak name that nothing defines stays so.
    if (before == 0 || before == after || !is_relocated(info, before))
        return;
    is_short |= slot == NULL && slot_count == slot_room;
    if (slot == NULL && slot_count == slot_room)
        return;
    if (slot == NULL)
        slot = &slots[slot_count++];
    *slot = (slot_t){at, before, after, true};
    if (!write_slot(table, at, before, after))
        atomic_fetch_add_explicit(&gp_thread_orphan_counters[GP_COUNTER_UNPATCHED], 1, memory_order_relaxed);
}

static void give_slot_back(const struct dl_phdr_info *info, const table_t *table, uintptr_t *at, uintptr_t after)
{
    const slot_t *slot = find_slot(at);
    (void)info;
    if (slot != NULL && __atomic_load_n(at, __ATOMIC_ACQUIRE) == after)
        write_slot(table, at, after, slot->before);
}

// glibc 2.36 finds the addresses of a module from when it is relocated.
static bool is_ready(const struct dl_phdr_info *info)
{
    gp_location_t where;
    return gp_module_locate((uintptr_t)gp_loaded_dynamic(info), &where);
}

// Visit the slots of names that the core defines.
static int visit_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    table_t table;
    got_visit_t *visit = *(got_visit_t **)argument;
    (void)size;
    if (is_left_alone(info) || !read_table(info, &table))
        return 0;
    if (!is_ready(info)) {
        is_early = true;
        return 0;
    }
    for (int i = 0; i < 2; i++)
        for (size_t j = 0; j < table.counts[i] && table.relocations[i] != NULL; j++) {
            const ElfW(Rela) *relocation = &table.relocations[i][j];
            unsigned type = ELF64_R_TYPE(relocation->r_info);
            if (type != JUMP_SLOT && type != GLOBAL_SLOT)
                continue;
            uintptr_t after = address_of(table.strings + table.symbols[ELF64_R_SYM(relocation->r_info)].st_name);
            if (after != 0)
                visit(info, &table, (uintptr_t *)(info->dlpi_addr + relocation->r_offset), after);
        }
    return 0;
}

static void visit_all(got_visit_t *visit)
{
    memory = open("/proc/thread-self/mem", O_RDWR | O_CLOEXEC);
    dl_iterate_phdr(visit_module, &visit);
    if (memory >= 0)
        close(memory);
}

static int learn_own(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    if (name_count == 0 && holds(info, (uintptr_t)gp_got_take))
        learn_names(info);
    return name_count > 0;
}

static int read_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
    (void)size;
    *(unsigned long long *)adds = info->dlpi_adds;
    return 1;
}

// Modules that are unloaded took their slots with them.
static void forget_gone(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i].is_there)
            slots[kept++] = slots[i];
    slot_count = sorted_count = kept;
}

// Returns false where memory is short.
static bool make_room(void)
{
    size_t room = slot_room > 0 ? 2 * slot_room : 1024;
    slot_t *grown = realloc(slots, room * sizeof(*grown));
    if (grown == NULL)
        return false;
    slots = grown;
    slot_room = room;
    return true;
}

void gp_got_take(void)
{
    unsigned long long adds = 0;
    dl_iterate_phdr(read_adds, &adds);
    if (adds == seen_adds && looks_left == 0)
        return;
    looks_left = adds == seen_adds && !is_early ? looks_left - 1 : LOOKS;
    seen_adds = adds;
    gp_module_locate_prepare();
    dl_iterate_phdr(learn_own, NULL);
    for (size_t i = 0; i < slot_count; i++)
        slots[i].is_there = false;
    do {
        is_short = is_early = false;
        visit_all(take_slot);
        sort_slots();
    } while (is_short && make_room());
    forget_gone();
}

void gp_got_give_back(void)
{
    visit_all(give_slot_back);
    free(slots);
    slots = NULL;
    slot_count = slot_room = sorted_count = 0;
    seen_adds = 0;
    looks_left = 0;
}
