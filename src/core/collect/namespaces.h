// SPDX-License-Identifier: MIT
// Modules of the namespaces that dlmopen() makes.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

// Has any module this address? Unlisted modules of the program's own namespace count, too. Threads: any.
bool gp_namespace_has(uintptr_t pc);

// Like dl_iterate_phdr() for the module around `pc`, in whatever namespace, but without its name. Returns false where
// there is none. Called while the loader's list is held, which keeps what `info` points to.
bool gp_namespace_module(uintptr_t pc, struct dl_phdr_info *info);
