// SPDX-License-Identifier: MIT
// Walking CPython's frames from a signal handler.
//
// Model: the frames of a thread form a list, leaf first; those of plain calls lie in the thread's data stack (a list of
// chunks, a bump allocator), those of generators on the heap. A signal may come at any instruction, also while the list
// is being changed, so no pointer is believed: a frame is read where it lies in a live part of the data stack, or where
// the kernel says that the memory is mapped; code objects are never read. Where the list turns out to be torn, the data
// stack is scanned from its bottom instead, which needs no list but does not show generators: that is marked
// incomplete.
#pragma once

#include <stdbool.h>

#include "interpreter/layout.h"
#include "signal/language.h"

typedef struct gp_cpython_runtime { // filled once, before the walker is registered
    gp_cpython_layout_t *layout;    // the trial may still correct it: see layout_trial.h
    bool is_trusted;                // else nothing is read by it
    void *(*thread_state)(void);    // PyGILState_GetThisThreadState: pthread_getspecific() at its heart
    int (*is_finalizing)(void);     // Py_IsFinalizing, which reads one word; NULL = not known
    void *(*interpreter)(void), *(*main_interpreter)(void); // PyInterpreterState_Get, _Main
    uintptr_t code_type;                                    // &PyCode_Type
    uintptr_t loop, loop_end;                               // _PyEval_EvalFrameDefault, half-open
    uintptr_t cold, cold_end;                               // the part of it that a compiler put elsewhere; 0 = none
    uintptr_t generator_types[GP_CPYTHON_GENERATORS];       // 0 = there is none
    uintptr_t generator_frame;                              // in a generator
    _Atomic uintptr_t any_state;                            // some PyThreadState, 0 = none has been seen yet
} gp_cpython_runtime_t;

extern gp_cpython_runtime_t gp_cpython_runtime __attribute__((visibility("hidden")));

// Does the calling thread run the main interpreter? From 3.12 on others have types of their own, and may have their own
// lock, while definitions of methods are shared. Caller holds its interpreter's lock.
static inline bool gp_cpython_is_main(void)
{
    return gp_cpython_runtime.interpreter() == gp_cpython_runtime.main_interpreter();
}

// A frame word: two marks, one of other languages, the instruction's index plus 1 (16 bits, all ones = beyond), the
// code object's address / 8.
enum { GP_CPYTHON_CODE_BITS = 45, GP_CPYTHON_INDEX_MAX = (1 << 16) - 1 };

static inline uintptr_t gp_cpython_word_code(uintptr_t word)
{
    return (word & (((uintptr_t)1 << GP_CPYTHON_CODE_BITS) - 1)) << 3;
}

static inline uintptr_t gp_cpython_word(const gp_cpython_layout_t *layout, uintptr_t code, uintptr_t instruction)
{
    code &= ~(uintptr_t)GP_CPYTHON_REFERENCE_TAGS;
    int64_t index = ((int64_t)(instruction - code) - layout->code_instructions) / 2 + 1;
    if (index < 0 || index > GP_CPYTHON_INDEX_MAX)
        index = GP_CPYTHON_INDEX_MAX;
    return GP_LANGUAGE_FRAME | (uintptr_t)index << GP_CPYTHON_CODE_BITS | code >> 3;
}

// Index of the instruction, in units of two bytes; -1 = none has run yet; -2 = unknown.
static inline int gp_cpython_word_index(uintptr_t word)
{
    int index = (int)(word >> GP_CPYTHON_CODE_BITS & GP_CPYTHON_INDEX_MAX);
    return index == GP_CPYTHON_INDEX_MAX ? -2 : index - 1;
}

// The calling thread's innermost frame; 0 = none. Caller holds the interpreter lock.
uintptr_t gp_cpython_leaf(void);

// The calling thread's frames, as gp_language_t.walk() gives them, by a hook: the list is whole there, and nothing in
// it needs to be doubted. Caller holds the interpreter lock. Signals: not safe.
size_t gp_cpython_walk_own(uintptr_t *frames, size_t max, unsigned *flags);

// See gp_language_t.is_loop.
bool gp_cpython_is_loop(uintptr_t pc);

// See gp_language_t.walk.
size_t gp_cpython_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags);
