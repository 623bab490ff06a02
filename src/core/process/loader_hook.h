// SPDX-License-Identifier: MIT
// The program's unloading of modules, as seen by the interposed dlclose().
#pragma once

#include <stdint.h>

// How often the program has called dlclose(): what was learned from the loader before it last rose may be out of date.
// Threads: any.
uint32_t gp_loader_unloads(void);

// Close a handle of greenprof's own, which unloads nothing. Signals: not safe.
void gp_loader_put(void *handle);
