// Names as people write them.
#ifndef GP_SYMBOL_DEMANGLE_H
#define GP_SYMBOL_DEMANGLE_H

#include "symbol/memory.h"

// Copy a symbol's name into the arena, a C++ name demangled. The ".cold" part of a function goes
// under the function's own name: it is the same call. Returns NULL when memory is short.
const char *gp_demangle(gp_arena_t *arena, const char *name);

#endif
