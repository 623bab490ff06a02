// SPDX-License-Identifier: MIT
// The append-only table of module descriptors.
#include "unwind/module.h"

#include <stdatomic.h>
#include <string.h>

#include "unwind/arch.h"

enum descriptor_state { FREE, BUSY, READY };

typedef struct descriptor {
    _Atomic unsigned state; // enum descriptor_state, only ever rises
    gp_module_t module;
} descriptor_t;

static descriptor_t table[GP_MODULE_TABLE_LEN];

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

static unsigned start_of(const gp_location_t *where)
{
    return (unsigned)((where->lo >> 12) * 0x9e3779b97f4a7c15u >> 40) % GP_MODULE_TABLE_LEN;
}

static bool same_module(const gp_module_t *module, const gp_location_t *where)
{
    const gp_location_t *was = &module->where;
    if (was->lo != where->lo || was->hi != where->hi || was->link_map != where->link_map || was->hdr != where->hdr)
        return false;
    // A rebuilt plugin may reload with the same size at the same address: its build id tells.
    return module->fixed || module->id_at == NULL || memcmp(module->id_at, module->id, GP_MODULE_ID_BYTES) == 0;
}

// Copy a parsed module into the table. The release pairs with find_listed()'s acquire.
static bool publish(descriptor_t *slot, const gp_module_t *module)
{
    unsigned expected = FREE;
    if (!atomic_compare_exchange_strong_explicit(&slot->state, &expected, BUSY, memory_order_relaxed,
                                                 memory_order_relaxed))
        return false;
    slot->module = *module;
    atomic_store_explicit(&slot->state, READY, memory_order_release);
    return true;
}

// Returns the descriptor's number, or GP_MODULE_NONE with `*free_slot` where it could go.
static int find_listed(const gp_location_t *where, unsigned *free_slot)
{
    unsigned start = start_of(where);
    for (unsigned i = 0; i < GP_MODULE_TABLE_LEN; i++) {
        unsigned number = (start + i) % GP_MODULE_TABLE_LEN;
        // Acquire: pairs with publish()'s release.
        unsigned state = atomic_load_explicit(&table[number].state, memory_order_acquire);
        if (state == FREE) {
            *free_slot = number;
            return GP_MODULE_NONE;
        }
        if (state == READY && same_module(&table[number].module, where))
            return (int)number;
    }
    *free_slot = GP_MODULE_TABLE_LEN;
    return GP_MODULE_NONE;
}

int gp_module_find(uintptr_t pc, gp_module_t *storage, const gp_module_t **module)
{
    gp_location_t where;
    if (!gp_module_locate(pc, &where))
        return GP_MODULE_NONE;
    unsigned free_slot;
    int number = find_listed(&where, &free_slot);
    if (number >= 0) {
        *module = &table[number].module;
    } else {
        if (!gp_module_parse(&where, storage))
            return GP_MODULE_NONE;
        *module = storage;
        bool listed = free_slot < GP_MODULE_TABLE_LEN && publish(&table[free_slot], storage);
        number = listed ? (int)free_slot : GP_MODULE_UNLISTED;
    }
    bool code = pc >= (*module)->text_lo && pc < (*module)->text_hi;
    return code ? number : GP_MODULE_NONE;
}

bool gp_module_check(unsigned number, uintptr_t pc)
{
    gp_location_t where;
    if (number >= GP_MODULE_TABLE_LEN || atomic_load_explicit(&table[number].state, memory_order_acquire) != READY)
        return false;
    return gp_module_locate(pc, &where) && same_module(&table[number].module, &where);
}
