// SPDX-License-Identifier: MIT
// The calls of modules that were bound before the core was loaded: their slots in the global offset tables.
//
// Model: what the core interposes (core.map.in) is found first by the dynamic linker where the core is preloaded. Where
// it comes into a program that runs already, the slots of all modules lead to the functions themselves. Each such slot
// gets the core's function, and its former value when all is given back. A module that the loader is still relocating
// is left for a later look: its slots hold addresses as in its file, to which the loader is about to add. The C library
// and the loader are left as they are, as they do not call themselves through names that can be interposed. Slots under
// the loader's protection are written through /proc/self/mem, with their protection as it is; a slot that cannot be
// written counts as GP_COUNTER_UNPATCHED.
//
// A module loaded with RTLD_DEEPBIND finds the C library's functions before the core's, however early the core came:
// its slots are taken as its dlopen() returns (loader_open.c), for good.
//
// Threads: any; one at a time does it. Signals: not safe. Cost: ~1 ms for 10,000 slots; nothing where no module was
// loaded since.
#pragma once

#include <stddef.h>

// Take the slots of all modules, or of those that were loaded since.
void gp_got_take(void);

// How many modules there are.
size_t gp_got_modules(void);

// Take the slots of modules that have been loaded with RTLD_DEEPBIND since there were `first`.
void gp_got_take_deep(size_t first);

// Give back what was taken, but for slots that something else has changed meanwhile.
void gp_got_give_back(void);
