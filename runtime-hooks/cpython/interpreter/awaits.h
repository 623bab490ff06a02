// SPDX-License-Identifier: MIT
// Frames of what is suspended: of coroutine objects and what they await, of greenlets that are switched away from.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Copies memory of this process; false where there is none. A thread that holds the interpreter lock uses its own
// function, other threads gp_peek.
typedef bool gp_cpython_read_t(uintptr_t from, void *to, size_t bytes);

bool gp_cpython_read_own(uintptr_t from, void *to, size_t bytes);

// Frames of a suspended coroutine object and of the ones it awaits.
//   object: a coroutine, generator, or a wrapper of these; any other has no frames.
//   frames: uintptr_t[max], innermost first, as gp_language_t.walk() gives them.
// Returns how many. Signals: safe with gp_cpython_read_own() on a thread that holds the interpreter lock.
size_t gp_cpython_walk_awaits(gp_cpython_read_t *read, uintptr_t object, uintptr_t *frames, size_t max);

// The innermost frame of a thread (its PyThreadState); 0 = none.
uintptr_t gp_cpython_leaf_of(gp_cpython_read_t *read, uintptr_t state);

// Frames of a suspended greenlet, from `frame` on outwards.
//   base: the walk ends before it; 0 = at the outermost one.
size_t gp_cpython_walk_frames(gp_cpython_read_t *read, uintptr_t frame, uintptr_t base, uintptr_t *frames, size_t max);

enum { GP_CPYTHON_GREENLET_NATIVE = 32 }; // in a greenlet object: its C++ object. Source: greenlet.h

// Where a greenlet's C++ object has its innermost frame object; 0 = not known.
extern _Atomic size_t gp_cpython_frame_object_at;

// Where a greenlet's C++ object has the words of its native stack; 0 = not known. The words: its start, its end, the
// copy of the part that others have overwritten (from the start on), and the copy's bytes. Source:
// greenlet_greenlet.hpp
extern _Atomic size_t gp_cpython_stack_at;

enum {
    GP_CPYTHON_STACK_START,
    GP_CPYTHON_STACK_END,
    GP_CPYTHON_STACK_COPY,
    GP_CPYTHON_STACK_SAVED,
    GP_CPYTHON_STACK_WORDS
};

// Where the memory at `address` of a suspended greenlet is, to be read by the holder of the interpreter lock: from 3.12
// on some frames are on its native stack.
uintptr_t gp_cpython_of_greenlet(uintptr_t greenlet, uintptr_t address);

// The innermost frame object of a suspended greenlet; 0 = none, or not known.
uintptr_t gp_cpython_frame_object(gp_cpython_read_t *read, uintptr_t greenlet);

// Frames of a greenlet that is suspended, as of gp_cpython_walk_frames().
size_t gp_cpython_walk_greenlet(gp_cpython_read_t *read, uintptr_t greenlet, uintptr_t base, uintptr_t *frames,
                                size_t max);
