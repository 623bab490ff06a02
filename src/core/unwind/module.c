// SPDX-License-Identifier: MIT
// The table of module descriptors.
#include "unwind/module.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "unwind/arch.h"

enum {
    SLOTS = 4096, // a power of two
    WAYS = 8,     // slots that a module may be in
    MODULE_WORDS = sizeof(gp_unwind_module_t) / sizeof(uintptr_t),
};

static_assert(sizeof(gp_unwind_module_t) % sizeof(uintptr_t) == 0, "copied by words");

// A sequence lock: odd while a descriptor is being written, 0 before the first one. A writer takes it with a
// compare-and-swap, so there is one at a time; none waits for it.
typedef struct slot {
    _Atomic uint32_t version;
    _Atomic uintptr_t words[MODULE_WORDS]; // a gp_module_t
} slot_t;

static slot_t table[SLOTS];

gp_program_t gp_program;

enum { FIXED_MAX = 512 };

static const void *fixed[FIXED_MAX];
static size_t fixed_count;

bool gp_module_is_fixed(const void *link_map)
{
    for (size_t i = 0; i < fixed_count; i++)
        if (fixed[i] == link_map)
            return true;
    return false;
}

void gp_module_fixed_add(const void *link_map)
{
    if (fixed_count < FIXED_MAX && !gp_module_is_fixed(link_map))
        fixed[fixed_count++] = link_map;
}

const void *gp_module_fixed_get(size_t index)
{
    return index < fixed_count ? fixed[index] : NULL;
}

// The number of a descriptor in a slot: the next one there has another number, so a row with the former one is not
// taken for its own.
static int module_number_of(uint32_t at, uint32_t version)
{
    return (int)((at | version / 2 * SLOTS) & INT32_MAX);
}

static uint32_t module_first_way(const gp_location_t *where)
{
    return (uint32_t)((where->lo >> 12) * 0x9e3779b97f4a7c15u >> 40) % (SLOTS / WAYS) * WAYS;
}

// Copy a slot's descriptor. Returns its version, 0 where there is none or it is being written. Acquire: pairs with
// module_publish()'s release; the fence keeps the words before the version's second look.
static uint32_t module_read_slot(const slot_t *slot, gp_unwind_module_t *module)
{
    uint32_t version = atomic_load_explicit(&slot->version, memory_order_acquire);
    uintptr_t words[MODULE_WORDS];
    if (version == 0 || version % 2 != 0)
        return 0;
    for (size_t i = 0; i < MODULE_WORDS; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    memcpy(module, words, sizeof words);
    return atomic_load_explicit(&slot->version, memory_order_relaxed) == version ? version : 0;
}

static bool module_same_place(const gp_location_t *a, const gp_location_t *b)
{
    return a->lo == b->lo && a->hi == b->hi && a->link_map == b->link_map && a->hdr == b->hdr;
}

//   where: what is mapped now, so that the build id may be read if it is the same
static bool module_same_module(const gp_unwind_module_t *module, const gp_location_t *where)
{
    // A rebuilt plugin may reload with the same size at the same address: its build id tells.
    return module_same_place(&module->where, where) &&
           (module->fixed || module->id_at == NULL || memcmp(module->id_at, module->id, GP_MODULE_ID_BYTES) == 0);
}

// Nothing of `module` itself is read: it may be on its way out.
//   next: the module there now, at the same place
static bool module_is_gone(const gp_unwind_module_t *module, const gp_unwind_module_t *next)
{
    gp_location_t now;
    return !module->fixed && ((module_same_place(&module->where, &next->where) && module->text_lo == next->text_lo) ||
                              !gp_module_locate(module->where.lo, &now) || !module_same_place(&module->where, &now));
}

// Put a parsed module into an empty slot, or into that of an unloaded module. The release pairs with
// module_read_slot()'s acquire. Returns the descriptor's number or GP_MODULE_UNLISTED.
static int module_publish(const gp_unwind_module_t *module)
{
    uint32_t way = module_first_way(&module->where);
    uintptr_t words[MODULE_WORDS];
    memcpy(words, module, sizeof words);
    for (uint32_t at = way; at < way + WAYS; at++) {
        slot_t *slot = &table[at];
        gp_unwind_module_t was;
        uint32_t version = atomic_load_explicit(&slot->version, memory_order_relaxed);
        if (version != 0 && (module_read_slot(slot, &was) != version || !module_is_gone(&was, module)))
            continue;
        if (!atomic_compare_exchange_strong_explicit(&slot->version, &version, version + 1, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        atomic_thread_fence(memory_order_release); // an odd version is seen by a reader that sees one of the new words
        for (size_t i = 0; i < MODULE_WORDS; i++)
            atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
        atomic_store_explicit(&slot->version, version + 2, memory_order_release);
        return module_number_of(at, version + 2);
    }
    return GP_MODULE_UNLISTED;
}

static bool module_is_text(const gp_unwind_module_t *module, uintptr_t pc)
{
    return pc >= module->text_lo && pc < module->text_hi;
}

static int module_find_listed(const gp_location_t *where, uintptr_t pc, gp_unwind_module_t *module)
{
    uint32_t way = module_first_way(where);
    for (uint32_t at = way; at < way + WAYS; at++) {
        uint32_t version = module_read_slot(&table[at], module);
        if (version != 0 && (!module->has_more_text || module_is_text(module, pc)) && module_same_module(module, where))
            return module_number_of(at, version);
    }
    return GP_MODULE_UNLISTED;
}

int gp_module_find(uintptr_t pc, gp_unwind_module_t *module)
{
    gp_location_t where;
    if (!gp_module_locate(pc, &where))
        return GP_MODULE_NONE;
    int number = module_find_listed(&where, pc, module);
    if (number < 0) {
        if (!gp_module_parse(&where, pc, module) || (module->has_more_text && !module_is_text(module, pc)))
            return GP_MODULE_NONE;
        number = module_publish(module);
    }
    return module_is_text(module, pc) ? number : GP_MODULE_NONE;
}

bool gp_module_check(uint32_t number, uintptr_t pc)
{
    gp_location_t where;
    gp_unwind_module_t module;
    uint32_t version = module_read_slot(&table[number % SLOTS], &module);
    return version != 0 && (uint32_t)module_number_of(number % SLOTS, version) == number &&
           gp_module_locate(pc, &where) && module_same_module(&module, &where);
}
