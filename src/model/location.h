// SPDX-License-Identifier: MIT
// Where a frame is, as both halves write it down.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// A location: where a frame is, independent of where its module was loaded.
//   bits 63..48  module id; 0 = no module, the low bits are the absolute address;
//                GP_MODULE_PSEUDO = a pseudo-frame, the low bits are an enum gp_pseudo;
//                GP_MODULE_LANGUAGE = code of a language runtime, the low bits are GP_LANGUAGE_OFFSET(function, line)
//   bits 47..0   address as in the module's ELF file (program counter - bias)
typedef uint64_t gp_loc_t;
#define GP_LOC(module, offset) (((uint64_t)(module) << 48) | ((uint64_t)(offset)&0xffffffffffffull))
#define GP_LOC_MODULE(loc)     ((uint32_t)((loc) >> 48))
#define GP_LOC_OFFSET(loc)     ((loc)&0xffffffffffffull)
#define GP_MODULE_PSEUDO       0xffffu
#define GP_MODULE_LANGUAGE     0xfffeu

// No location, as no module has id 0 at these addresses: a frame of greenprof's own; one that is not to be shown, nor
// are its callers.
enum { GP_LOC_OWN = 0, GP_LOC_CUT = 1 };

// A frame not located yet is a word: a program counter, below this mark; or, with the mark, a word that only its
// language understands.
#define GP_LANGUAGE_FRAME (1ull << 63)

static inline bool gp_language_is_frame(uintptr_t word)
{
    return (word & GP_LANGUAGE_FRAME) != 0;
}

// Function number (gp_function_record_t) and line, 0 = unknown, in the low bits of a location.
#define GP_LANGUAGE_LINE_MAX      0xfffffu
#define GP_LANGUAGE_FUNCTIONS_MAX 0xfffffffu
#define GP_LANGUAGE_OFFSET(function, line)                                                                             \
    ((uint64_t)(function) << 20 | ((line) <= GP_LANGUAGE_LINE_MAX ? (uint64_t)(line) : 0))
#define GP_LANGUAGE_FUNCTION(offset) ((uint32_t)((offset) >> 20))
#define GP_LANGUAGE_LINE(offset)     ((uint32_t)((offset)&GP_LANGUAGE_LINE_MAX))

enum gp_pseudo {
    GP_PSEUDO_SWITCHING = 1, // leaf: inside a switch routine that cannot be walked: "[switching]"
    GP_PSEUDO_TRUNCATED = 2, // stands for the frames left out of a stack that was too deep: "[truncated]"
    GP_PSEUDO_UNKNOWN = 3,   // outermost: the walk gave up here: "[incomplete]"
    // Leaves that say what else than running on the CPU took the time:
    GP_PSEUDO_PARKED = 4,    // "[parked]"
    GP_PSEUDO_READY = 5,     // "[ready]"
    GP_PSEUDO_WAITING = 6,   // ready or parked, unknown which: "[waiting]"
    GP_PSEUDO_PREEMPTED = 7, // its thread could run but did not: "[preempted]"
    GP_PSEUDO_BLOCKED = 8,   // its thread was asleep in the kernel: "[blocked]"
    GP_PSEUDO_TREE_FULL = 9, // stands for what there was no room for in a profile's call tree: "[tree full]"
    // Stands for "[ready]" where there is nothing but an entry function below it: "[not started]"
    GP_PSEUDO_NOT_STARTED = 10,
    GP_PSEUDO_SIGNAL_BLOCKED = 11, // the only frame: no sample could be taken where the time went: "[signal blocked]"
    GP_PSEUDO_GIL = 12,            // it waited for the lock of its language's interpreter: "[gil]"
    GP_PSEUDO_QUEUED = 14,         // a call was in the queue of a pool of threads: "[queued]"
};
