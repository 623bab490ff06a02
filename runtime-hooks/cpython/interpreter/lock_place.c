// SPDX-License-Identifier: MIT
#include "interpreter/lock_place.h"

#include <stdatomic.h>
#include <string.h>

#include "interpreter/api.h"
#include "interpreter/awaits.h"
#include "interpreter/frame_walk.h"
#include "interpreter/peek_text.h"

enum { MET = 2048, OUTWARDS = 6, KEPT_MAX = 512, TEXT_SIZE = 512, CALLER_BITS = 3, IS_KEPT = 1 << CALLER_BITS };

static _Atomic uintptr_t met[MET]; // address of a code object << 16 (it has 47 bits), and what it is

// A frozen program has no folders in front.
static bool lock_place_ends(const char *file, const char *end)
{
    size_t length = strlen(file), tail = strlen(end);
    return strcmp(file, end + 1) == 0 || (length >= tail && strcmp(file + length - tail, end) == 0);
}

// The name of a code object is the qualified one.
static enum gp_lock_caller lock_place_read(uintptr_t code, bool *is_read)
{
    static const struct {
        const char *name;
        enum gp_lock_caller caller;
    } known[] = {{"Condition.wait", GP_LOCK_OF_CONDITION},
                 {"Semaphore.acquire", GP_LOCK_OF_SEMAPHORE},
                 {"Thread._wait_for_tstate_lock", GP_LOCK_OF_JOIN},
                 {"Thread.join", GP_LOCK_OF_JOIN},
                 {"_shutdown", GP_LOCK_OF_JOIN}};
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    char name[TEXT_SIZE], file[TEXT_SIZE];
    uintptr_t of_name = 0, of_file = 0;
    *is_read = gp_peek(code + layout->code_name, &of_name, sizeof(of_name)) &&
               gp_peek(code + layout->code_file, &of_file, sizeof(of_file)) &&
               gp_cpython_peek_text(layout, of_name, name, sizeof(name)) >= 0 &&
               gp_cpython_peek_text(layout, of_file, file, sizeof(file)) >= 0;
    if (!*is_read)
        return GP_LOCK_OF_PROGRAM;
    if (lock_place_ends(file, "/concurrent/futures/thread.py") && strcmp(name, "_worker") == 0)
        return GP_LOCK_OF_WORKER;
    if (!lock_place_ends(file, "/threading.py"))
        return GP_LOCK_OF_PROGRAM;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].caller;
    return GP_LOCK_OF_LIBRARY;
}

static _Atomic uintptr_t *lock_place_met(uintptr_t code)
{
    return &met[code * 0x9e3779b97f4a7c15ull >> 53]; // the upper 11 bits
}

enum gp_lock_caller gp_lock_place_caller(uintptr_t word)
{
    uintptr_t code = gp_cpython_word_code(word);
    uintptr_t seen = atomic_load_explicit(lock_place_met(code), memory_order_relaxed);
    bool is_read = false;
    if (seen >> 16 != code) {
        seen = code << 16 | lock_place_read(code, &is_read);
        if (is_read)
            atomic_store_explicit(lock_place_met(code), seen, memory_order_relaxed);
    }
    return seen & (IS_KEPT - 1);
}

// A module's code ends once it is imported, and its locks do not.
static void lock_place_keep(uintptr_t word)
{
    static uint32_t kept; // under the interpreter lock
    uintptr_t code = gp_cpython_word_code(word);
    _Atomic uintptr_t *slot = lock_place_met(code);
    uintptr_t seen = atomic_load_explicit(slot, memory_order_relaxed);
    if (seen >> 16 != code || seen & IS_KEPT || kept == KEPT_MAX)
        return;
    kept++;
    gp_py.incref((gp_py_t *)code); // NOLINT(performance-no-int-to-ptr)
    atomic_store_explicit(slot, seen | IS_KEPT, memory_order_relaxed);
}

static bool lock_place_is_program(uintptr_t word)
{
    enum gp_lock_caller caller = gp_lock_place_caller(word);
    return caller == GP_LOCK_OF_PROGRAM || caller == GP_LOCK_OF_WORKER;
}

uintptr_t gp_lock_place_of(const uintptr_t *frames, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        if (lock_place_is_program(frames[i]))
            return frames[i];
    return depth > 0 ? frames[0] : 0;
}

uintptr_t gp_lock_place_own(bool is_kept)
{
    uintptr_t frames[OUTWARDS], leaf = gp_cpython_leaf();
    size_t depth = leaf != 0 ? gp_cpython_walk_frames(gp_cpython_read_own, leaf, 0, frames, 1) : 0;
    if (depth > 0 && !lock_place_is_program(frames[0]))
        depth = gp_cpython_walk_frames(gp_cpython_read_own, leaf, 0, frames, OUTWARDS);
    uintptr_t place = gp_lock_place_of(frames, depth);
    if (place != 0 && is_kept)
        lock_place_keep(place);
    return place;
}
