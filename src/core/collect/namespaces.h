// SPDX-License-Identifier: MIT
// Modules of the namespaces that dlmopen() makes.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// Has any module this address? Of one of the program's own namespace that is not listed, too. Threads: any.
bool gp_namespace_has(uintptr_t pc);

// What dl_iterate_phdr() would say of the module that has `pc`, but for its name, whatever namespace it is in. Returns
// false where there is none. Called while the loader's list is held, which keeps what `info` points to.
bool gp_namespace_module(uintptr_t pc, struct dl_phdr_info *info);
