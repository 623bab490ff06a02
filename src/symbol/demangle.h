// SPDX-License-Identifier: MIT
// Names as people write them.
//
// Threads: any. Signals: not safe.
#pragma once

#include "base/memory.h"

// Copy a symbol's name into the arena, a C++ (Itanium), Rust (legacy and v0), D or OCaml name demangled. The copies and
// parts that a compiler makes of a function go under the function's own name where they stand for it, whatever the
// language: ".cold" (its unlikely half), ".constprop", ".isra", ".specialized" (arguments changed), ".lto_priv",
// ".llvm", ".__uniq", ".localalias" (renamed), ".avx2", ".arch_haswell", ".default" (for a processor). ".part" stays:
// it is called from the rest of the function, and would look like recursion. Names that are not mangled, or too long,
// stay as they are. Returns NULL when memory is short.
const char *gp_demangle(gp_arena_t *arena, const char *name);
