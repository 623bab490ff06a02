// SPDX-License-Identifier: MIT
// Symbols of loaded modules, without dlsym()'s lock: a thread that loads a library holds this lock for long, and many
// may queue up for it.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// A module's dynamic section; NULL = it has none.
const ElfW(Dyn) * gp_loaded_dynamic(const struct dl_phdr_info *info);

// A pointer of it: glibc has relocated those of loaded modules; those of the vDSO it has not.
static inline uintptr_t gp_loaded_pointer(const struct dl_phdr_info *info, uintptr_t value)
{
    return value >= info->dlpi_addr ? value : info->dlpi_addr + value;
}

// Does any of them define it? True also where one has no table to look it up in (DT_GNU_HASH).
bool gp_loaded_defines(const char *name);

// Does this one? True also where it has no such table. Within dl_iterate_phdr().
bool gp_loaded_one_defines(const struct dl_phdr_info *info, const char *name);

// Where it defines it; NULL = nowhere. Not for what is thread-local. Within dl_iterate_phdr().
const void *gp_loaded_one_symbol(const struct dl_phdr_info *info, const char *name);
