// SPDX-License-Identifier: MIT
// The function of a code object's address: while it lives, and until every sample that names it has been resolved.
//
// Model: the collector reads an unknown code object once and keeps what it says. A code object that dies while sampling
// runs is put into limbo by CPython's thread: its memory stays as it is until the collector has drained all rings and
// forgotten the address. So an address never means two functions, however fast the allocator reuses it, and neither
// side waits. An object of a sub-interpreter cannot wait and is freed at once: its address is put into limbo with a
// copy (code_graves.h); without a copy, its samples are of an unknown function. The limbo is a
// ring: CPython's thread (which holds the interpreter lock) puts in and frees, the collector moves `scanned`.
#pragma once

#include "interpreter/layout.h"
#include "signal/language.h"

// Take over PyCode_Type's tp_dealloc. Threads: any; once.
//   slot: address of the slot.
void gp_cpython_code_watch(void (**slot)(void *code));

// See gp_language_t; the collector, drain lock held.
void gp_cpython_code_before_drain(void);
void gp_cpython_code_after_drain(void);
uint64_t gp_cpython_code_locate(uintptr_t frame, uint64_t ticks);
const char *gp_cpython_coro_name(const uint64_t *locs, size_t depth);

// Is a file one of the package greenprof, which is not shown?
bool gp_cpython_is_own_file(const char *file);

// Raised where a code object that a site of creation names is gone: the same frame words may mean another one from then
// on.
extern _Atomic uint32_t gp_cpython_code_generation;
