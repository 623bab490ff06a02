// SPDX-License-Identifier: MIT
// The startup set: the program, what it needs by DT_NEEDED, and what LD_PRELOAD added. The loader never unloads these,
// so their rows never expire. A module that is missed here is only checked more often.
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/module.h"

enum { PAGE_BYTES = 4096 };

static uintptr_t module_fixed_dynamic_value(const struct link_map *map, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *dyn = map->l_ld; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
        if (dyn->d_tag == tag)
            return dyn->d_un.d_ptr;
    return 0;
}

// glibc relocates DT_STRTAB in place, except where the dynamic section is read-only (the vDSO).
static const char *module_fixed_string_table(const struct link_map *map)
{
    uintptr_t at = module_fixed_dynamic_value(map, DT_STRTAB);
    return (const char *)(at < map->l_addr ? at + map->l_addr : at);
}

static const char *module_fixed_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool module_fixed_is_called(const struct link_map *map, const char *name)
{
    uintptr_t soname = module_fixed_dynamic_value(map, DT_SONAME);
    return (soname != 0 && strcmp(module_fixed_string_table(map) + soname, name) == 0) ||
           (map->l_name != NULL && strcmp(module_fixed_base_name(map->l_name), module_fixed_base_name(name)) == 0);
}

static void module_fixed_add_called(const struct link_map *first, const char *name)
{
    for (const struct link_map *map = first; map != NULL; map = map->l_next) {
        if (map->l_ld != NULL && module_fixed_is_called(map, name)) {
            gp_module_fixed_add(map);
            return;
        }
    }
}

static void module_fixed_add_preloads(const struct link_map *first)
{
    char name[256];
    const char *list = getenv("LD_PRELOAD");
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, " :");
        if (len > 0 && len < sizeof name) {
            memcpy(name, list, len);
            name[len] = '\0';
            module_fixed_add_called(first, name);
        }
        list += len + (list[len] != '\0');
    }
}

static void module_fixed_note_program(const struct link_map *map, const struct dl_phdr_info *info)
{
    gp_program = (gp_program_t){.image = {info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr}, .lo = UINTPTR_MAX};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + header->p_vaddr, hi = lo + header->p_memsz;
        if (header->p_type != PT_LOAD)
            continue;
        lo &= ~(uintptr_t)(PAGE_BYTES - 1);
        gp_program.lo = lo < gp_program.lo ? lo : gp_program.lo;
        gp_program.hi = hi > gp_program.hi ? hi : gp_program.hi;
    }
    gp_program.link_map = gp_program.hi != 0 ? map : NULL;
}

// The loader's first module is the program. The list itself is walked by hand, because DT_NEEDED is not in what the
// callback gets.
static int module_fixed_collect(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    const struct link_map *first = _r_debug.r_map;
    if (first == NULL)
        return 1;
    module_fixed_note_program(first, info);
    gp_module_fixed_add(first);
    module_fixed_add_preloads(first);
    // The set grows while it is gone through: what the needed ones need is needed too.
    const struct link_map *map;
    for (size_t i = 0; (map = gp_module_fixed_get(i)) != NULL; i++) {
        const ElfW(Dyn) *dyn = map->l_ld;
        for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
            if (dyn->d_tag == DT_NEEDED)
                module_fixed_add_called(first, module_fixed_string_table(map) + dyn->d_un.d_val);
    }
    return 1;
}

void gp_module_fixed_prepare(void)
{
    if (gp_module_fixed_get(0) == NULL)
        dl_iterate_phdr(module_fixed_collect, NULL);
}
