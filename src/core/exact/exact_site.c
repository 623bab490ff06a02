// SPDX-License-Identifier: MIT
#include "exact/exact_site.h"

#include "collect/modules.h"
#include "exact/exact_memory.h"
#include "signal/language.h"

enum {
    CHUNK = 1024,
    CHUNKS_MAX = GP_EXACT_FUNCTIONS_MAX / CHUNK,
    FIRST_SHIFT = 64 - 11, // 2048 slots
    FIRST_INDEX_SLOTS = 512,
    SITES_PER_BLOCK = 256,
};

const gp_exact_site_t gp_exact_no_site = {.object = &gp_exact_no_site};
gp_exact_sites_t *_Atomic gp_exact_sites;

static gp_exact_function_t *_Atomic functions[CHUNKS_MAX];
static _Atomic uint32_t function_count;       // numbers 1..count are in use
static uint32_t located_count;                // under the drain lock
static uint32_t *function_index, index_slots; // numbers by address; open addressing, at most half full
static gp_exact_site_t *spare_sites;
static uint32_t spare_count;
static uint32_t site_count;

gp_exact_function_t *gp_exact_function(uint32_t number)
{
    // Acquire: partner of the release in exact_site_function_of().
    gp_exact_function_t *chunk = atomic_load_explicit(&functions[number / CHUNK], memory_order_acquire);
    return &chunk[number % CHUNK];
}

static size_t exact_site_table_bytes(uint32_t slots)
{
    return sizeof(gp_exact_sites_t) + (size_t)slots * sizeof(gp_exact_site_t *);
}

static gp_exact_sites_t *exact_site_new_table(uint32_t shift)
{
    uint32_t slots = 1u << (64 - shift);
    gp_exact_sites_t *table = gp_exact_alloc(exact_site_table_bytes(slots));
    if (table != NULL) {
        table->shift = shift;
        table->mask = slots - 1;
    }
    return table;
}

static void exact_site_place(gp_exact_sites_t *table, const gp_exact_site_t *site)
{
    uint32_t slot = gp_exact_site_slot(table, site->address, site->pc);
    while (atomic_load_explicit(&table->slots[slot], memory_order_relaxed) != NULL)
        slot = (slot + 1) & table->mask;
    // Release: partner of the acquire in gp_exact_site_find(): the site is complete.
    atomic_store_explicit(&table->slots[slot], site, memory_order_release);
    table->count++;
}

static bool exact_site_is_unloaded(const gp_exact_site_t *site)
{
    return gp_exact_function(site->function)->unloaded;
}

// A larger table with what is still loaded. Old tables are left to their readers: all of them together are as large as
// the last.
static gp_exact_sites_t *exact_site_enlarge(const gp_exact_sites_t *old, uint32_t shift)
{
    gp_exact_sites_t *table = exact_site_new_table(shift);
    for (uint32_t i = 0; table != NULL && old != NULL && i <= old->mask; i++) {
        const gp_exact_site_t *site = atomic_load_explicit(&old->slots[i], memory_order_relaxed);
        if (site != NULL && !exact_site_is_unloaded(site))
            exact_site_place(table, site);
    }
    if (table != NULL)
        atomic_store_explicit(&gp_exact_sites, table, memory_order_release);
    return table;
}

// Trees may have it: no call is found by it any more, whatever is loaded at its address.
static void exact_site_take_out(const gp_exact_site_t *site)
{
    __atomic_store_n(&((gp_exact_site_t *)(uintptr_t)site)->pc, GP_EXACT_GONE, __ATOMIC_RELAXED);
}

// Leave out what is unloaded, in place. A site that a reader without the lock misses meanwhile is looked for again with
// the lock. Where there is no memory, all are left out and met anew.
static void exact_site_clear_unloaded(gp_exact_sites_t *table)
{
    size_t bytes = (size_t)table->count * sizeof(gp_exact_site_t *);
    const gp_exact_site_t **kept = gp_exact_alloc(bytes);
    uint32_t count = 0;
    for (uint32_t i = 0; i <= table->mask; i++) {
        const gp_exact_site_t *site = atomic_load_explicit(&table->slots[i], memory_order_relaxed);
        if (site != NULL && kept != NULL && !exact_site_is_unloaded(site))
            kept[count++] = site;
        else if (site != NULL && site->pc != 0)
            exact_site_take_out(site);
        atomic_store_explicit(&table->slots[i], NULL, memory_order_relaxed);
    }
    table->count = 0;
    for (uint32_t i = 0; i < count; i++)
        exact_site_place(table, kept[i]);
    gp_exact_release(kept, bytes);
}

static uint32_t *exact_site_index_slot(uintptr_t address)
{
    uint32_t slot = (uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 32) & (index_slots - 1);
    for (; function_index[slot] != 0; slot = (slot + 1) & (index_slots - 1)) {
        const gp_exact_function_t *function = gp_exact_function(function_index[slot]);
        if (function->address == address && !function->unloaded)
            break;
    }
    return &function_index[slot];
}

// Room for one function more than `count`; those that were unloaded are left out.
static bool exact_site_grow_index(uint32_t count)
{
    uint32_t slots = index_slots == 0 ? FIRST_INDEX_SLOTS : index_slots;
    if (index_slots != 0 && (count + 1) * 2 < index_slots)
        return true;
    slots *= 2;
    uint32_t *grown = gp_exact_alloc(slots * sizeof(*grown));
    if (grown == NULL)
        return false;
    gp_exact_release(function_index, index_slots * sizeof(*function_index));
    function_index = grown;
    index_slots = slots;
    for (uint32_t number = 1; number <= count; number++)
        if (!gp_exact_function(number)->unloaded)
            *exact_site_index_slot(gp_exact_function(number)->address) = number;
    return true;
}

// A function's number, new if need be. 0 when memory is short.
static uint32_t exact_site_function_of(uintptr_t address)
{
    uint32_t count = atomic_load_explicit(&function_count, memory_order_relaxed), number = count + 1;
    if (!exact_site_grow_index(count))
        return 0;
    uint32_t *slot = exact_site_index_slot(address);
    if (*slot != 0)
        return *slot;
    if (number >= CHUNK * CHUNKS_MAX)
        return 0;
    if (atomic_load_explicit(&functions[number / CHUNK], memory_order_relaxed) == NULL) {
        gp_exact_function_t *chunk = gp_exact_alloc(CHUNK * sizeof(*chunk));
        if (chunk == NULL)
            return 0;
        // Release: partner of the acquire in gp_exact_function().
        atomic_store_explicit(&functions[number / CHUNK], chunk, memory_order_release);
    }
    gp_exact_function(number)->address = address;
    *slot = number;
    // Release: partner of the acquire in gp_exact_functions_locate().
    atomic_store_explicit(&function_count, number, memory_order_release);
    return number;
}

static gp_exact_site_t *exact_site_new_site(void)
{
    if (spare_count == 0) {
        spare_sites = gp_exact_alloc(SITES_PER_BLOCK * sizeof(*spare_sites));
        spare_count = spare_sites != NULL ? SITES_PER_BLOCK : 0;
    }
    if (spare_count == 0 || site_count == GP_EXACT_SITES_MAX)
        return NULL;
    spare_count--;
    site_count++;
    return spare_sites++;
}

static const gp_exact_site_t *exact_site_add_locked(uintptr_t address, uintptr_t pc, bool manual)
{
    const gp_exact_site_t *known = gp_exact_site_find(address, pc);
    if (known != NULL)
        return known; // another thread was faster
    gp_exact_sites_t *table = atomic_load_explicit(&gp_exact_sites, memory_order_relaxed);
    if (table == NULL || table->count >= (table->mask + 1) / 2)
        table = exact_site_enlarge(table, table == NULL ? FIRST_SHIFT : table->shift - 1);
    uint32_t function = table != NULL ? exact_site_function_of(address) : 0;
    gp_exact_site_t *site = function != 0 ? exact_site_new_site() : NULL;
    if (site == NULL)
        return NULL;
    site->address = address;
    site->pc = pc;
    site->function = function;
    site->object = (const void *)address;
    if (pc != 0)
        gp_exact_site_read_frame(site, manual);
    else
        site->manual_inline = true;
    exact_site_place(table, site);
    return site;
}

const gp_exact_site_t *gp_exact_site_add(uintptr_t address, uintptr_t pc, bool manual)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    const gp_exact_site_t *site = exact_site_add_locked(address, pc, manual);
    gp_exact_unlock(&guard);
    return site;
}

const gp_exact_site_t *gp_exact_site_of_language(uint32_t number, uint32_t line, const void *object)
{
    gp_exact_guard_t guard;
    gp_exact_lock(&guard);
    const gp_exact_site_t *site = exact_site_add_locked(GP_LANGUAGE_FRAME | number, 0, true);
    if (site != NULL) {
        ((gp_exact_site_t *)(uintptr_t)site)->object = object;
        gp_exact_function(site->function)->loc = GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(number, line));
    }
    gp_exact_unlock(&guard);
    return site;
}

void gp_exact_site_forget(const gp_exact_site_t *site, const void *object)
{
    if (site->object == object)
        ((gp_exact_site_t *)(uintptr_t)site)->object = NULL;
}

static bool exact_site_is_of_language(const gp_exact_function_t *function)
{
    return GP_LOC_MODULE(function->loc) == GP_MODULE_LANGUAGE;
}

void gp_exact_functions_locate(void)
{
    // Acquire: partner of the release in exact_site_function_of().
    uint32_t count = atomic_load_explicit(&function_count, memory_order_acquire);
    for (; located_count < count; located_count++) {
        gp_exact_function_t *function = gp_exact_function(located_count + 1);
        if (!exact_site_is_of_language(function))
            function->loc = gp_modules_locate(function->address);
    }
}

// The set of modules has changed: forget sites in those that are gone.
static void exact_site_recheck(void)
{
    gp_exact_guard_t guard;
    bool changed = false;
    gp_exact_lock(&guard);
    for (uint32_t number = 1; number <= located_count; number++) {
        gp_exact_function_t *function = gp_exact_function(number);
        if (!function->unloaded && !exact_site_is_of_language(function) &&
            gp_modules_locate(function->address) != function->loc)
            changed = function->unloaded = true;
    }
    gp_exact_sites_t *table = atomic_load_explicit(&gp_exact_sites, memory_order_relaxed);
    if (changed && table != NULL)
        exact_site_clear_unloaded(table);
    gp_exact_unlock(&guard);
}

static void exact_site_refresh(bool changed)
{
    if (changed)
        exact_site_recheck();
    gp_exact_functions_locate();
}

const gp_sink_t gp_exact_sink = {.refresh = exact_site_refresh};
