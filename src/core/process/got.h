// SPDX-License-Identifier: MIT
// The calls of modules that were bound before the core was loaded: their slots in the global offset tables.
//
// Model: what the core interposes (core.map.in) is found first by the dynamic linker where the core is preloaded. Where
// it comes into a program that runs already, the slots of all modules lead to the functions themselves. Each such slot
// gets the core's function, and its former value when all is given back. A module that the loader is still relocating
// is left for a later look: its slots hold addresses as in its file, to which the loader is about to add. The C library
// and the loader are left as they are, as they do not call themselves through names that can be interposed. Slots that
// the loader has protected are written through /proc/self/mem, which changes no protection; one that cannot be written
// counts as GP_COUNTER_UNPATCHED.
//
// Threads: one at a time. Signals: not safe. Cost: ~1 ms for 10,000 slots; nothing where no module was loaded since.
#pragma once

// Take the slots of all modules, or of those that were loaded since.
void gp_got_take(void);

// Give back what was taken, but for slots that something else has changed meanwhile.
void gp_got_give_back(void);
