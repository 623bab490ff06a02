// SPDX-License-Identifier: MIT
// Locate modules in a snapshot, for C libraries without a lock-free lookup.
//
// Two tables take turns: gp_module_locate_prepare() fills the one that is not current, then makes it current. A handler
// that still reads the older one sees modules as they were; it is filled again by the second refresh from then on at
// the earliest. A row of a module that is gone is refused as long as the snapshot lacks it, so refresh after dlclose().
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>

#include "unwind/module.h"

enum { SNAPSHOT_MAX = 1024 };

typedef struct snapshot {
    size_t count;
    gp_location_t modules[SNAPSHOT_MAX];
} snapshot_t;

static snapshot_t tables[2];
static _Atomic(snapshot_t *) current;
static _Atomic unsigned preparing;

bool gp_module_locate(uintptr_t pc, gp_location_t *where)
{
    // Acquire: pairs with gp_module_locate_prepare()'s release.
    const snapshot_t *snapshot = atomic_load_explicit(&current, memory_order_acquire);
    for (size_t i = 0; snapshot != NULL && i < snapshot->count; i++) {
        if (pc >= snapshot->modules[i].lo && pc < snapshot->modules[i].hi) {
            *where = snapshot->modules[i];
            return true;
        }
    }
    return false;
}

// The loader's record of the module, by which the startup set knows it (module_fixed.c).
static const void *module_snapshot_identity(const struct dl_phdr_info *info)
{
    const struct link_map *map = _r_debug.r_map;
    while (map != NULL && map->l_addr != info->dlpi_addr)
        map = map->l_next;
    return map != NULL ? (const void *)map : info->dlpi_phdr;
}

static int module_snapshot_add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
    snapshot_t *snapshot = arg;
    gp_location_t module = {.lo = UINTPTR_MAX, .link_map = module_snapshot_identity(info)};
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + phdr->p_vaddr, end = start + phdr->p_memsz;
        if (phdr->p_type == PT_LOAD) {
            start &= ~(uintptr_t)4095;
            module.lo = start < module.lo ? start : module.lo;
            module.hi = end > module.hi ? end : module.hi;
        } else if (phdr->p_type == PT_GNU_EH_FRAME) {
            module.hdr = (const uint8_t *)start;
        }
    }
    if (module.lo < module.hi && snapshot->count < SNAPSHOT_MAX)
        snapshot->modules[snapshot->count++] = module;
    return 0;
}

void gp_module_locate_prepare(void)
{
    unsigned idle = 0;
    // The second caller finds a snapshot that is being taken: as good as its own.
    if (!atomic_compare_exchange_strong_explicit(&preparing, &idle, 1, memory_order_acquire, memory_order_relaxed))
        return;
    snapshot_t *was = atomic_load_explicit(&current, memory_order_relaxed);
    snapshot_t *next = was == &tables[0] ? &tables[1] : &tables[0];
    next->count = 0;
    dl_iterate_phdr(module_snapshot_add_module, next);
    // Release: pairs with gp_module_locate()'s acquire.
    atomic_store_explicit(&current, next, memory_order_release);
    atomic_store_explicit(&preparing, 0, memory_order_release);
}
