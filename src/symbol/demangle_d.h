// SPDX-License-Identifier: MIT
// Names of the language D.
//
// Threads: any. Signals: not safe.
#pragma once

#include "base/memory.h"

// Returns the demangled name, in the arena, or NULL: it is none of D's, too long, or memory is short.
const char *gp_demangle_d(gp_arena_t *arena, const char *name);
