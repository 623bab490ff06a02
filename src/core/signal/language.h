// SPDX-License-Identifier: MIT
// Language runtimes inside the process (CPython, Ruby, Lua, PHP): their frames stand for the native ones of their
// interpreters.
//
// Model: a runtime hook adds one gp_language_t to a list. The handler asks each in turn for the frames of the
// interrupted thread, until one has any; a frame is one word, marked by GP_LANGUAGE_FRAME and its language's number,
// and else for the hook alone to understand. The collector has it turned into a location (module GP_MODULE_LANGUAGE,
// see model/location.h) while what it names still exists: the hook puts what dies off until the rings have been drained
// once more, or has copied it before. Where two languages are on one stack, the first one's
// frames are shown.
//
// Order of calls: gp_language_add() once a language, then everything else in any order; never taken back.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "model/location.h"

// The outermost frame of one run of the interpreter's loop: the next one further out belongs to a native frame of the
// loop further out.
#define GP_LANGUAGE_ENTRY (1ull << 62)

// Whose a frame word is. CPython's have 61 bits to themselves; others have this mark, and below it two bits of their
// number less 1: 59 bits are left.
enum gp_language_number {
    GP_LANGUAGE_CPYTHON,
    GP_LANGUAGE_RUBY,
    GP_LANGUAGE_LUA,
    GP_LANGUAGE_PHP,
    GP_LANGUAGE_LOCKS = 4,
    GP_LANGUAGE_NUMBERS_MAX
};
#define GP_LANGUAGE_OTHER           (1ull << 61)
#define GP_LANGUAGE_OWN_BITS        59
#define GP_LANGUAGE_WORD_OF(number) (GP_LANGUAGE_FRAME | GP_LANGUAGE_OTHER | ((number)-1ull) << GP_LANGUAGE_OWN_BITS)

static inline unsigned gp_language_number(uintptr_t word)
{
    return word & GP_LANGUAGE_OTHER ? 1 + (unsigned)(word >> GP_LANGUAGE_OWN_BITS & 3) : GP_LANGUAGE_CPYTHON;
}

typedef struct gp_language_place { // where a signal came in
    uintptr_t pc, sp;
    uintptr_t stack_hi;  // end of the stack that it is on
    bool in_doubt;       // not all of it may be there
    const uintptr_t *gp; // all general registers in DWARF order; NULL = not known
} gp_language_place_t;

struct prof_coro;
struct gp_thread;

// Where a runtime keeps which coroutine runs on a thread: (*place)[1], once *place is an address. NULL = it cannot be
// read.
typedef const void *const *const *gp_language_place_of_running_t;

static inline const void *gp_language_running(gp_language_place_of_running_t place)
{
    enum { ADDRESS_MIN = 4096 }; // below it is none: not made yet, or the thread ends
    const void *const *state = place != NULL ? *place : NULL;
    return (uintptr_t)state >= ADDRESS_MIN ? state[1] : NULL;
}

typedef struct gp_language {
    const char *name;
    enum gp_language_number number;
    struct gp_language *_Atomic next; // added later
    bool
        is_of_stack; // walk() gives the frames of a coroutine with a stack of its own, too, when that is about to go on
    // Frames of the calling thread, interrupted at `place`.
    //   frames: uintptr_t[max], innermost first, each marked; of a stack deeper than `max` the leaf and the root end.
    //   flags:  enum gp_unwind_flag bits are or-ed in.
    // Returns how many were stored; 0 = none of the language's code is on this stack. Signals: safe, bounded work.
    size_t (*walk)(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags);

    // Is this program counter in the interpreter's loop? Signals: safe.
    bool (*is_loop)(uintptr_t pc);
    // Is it elsewhere in the interpreter, and to be left out beside its frames? NULL = nothing is. Signals: safe.
    bool (*is_own)(uintptr_t pc);

    // `greenprof attach` begins again, or `detach` ends: calls are led here, or to where they went. NULL = no call is.
    void (*follow)(bool is_attached);

    // The collector only, drain lock held. NULL = nothing is to be done.
    void (*before_drain)(void);
    void (*after_drain)(void);
    // The location of a frame word at that time; GP_LOC_OWN = a frame that is not to be shown; GP_LOC_CUT = nor are its
    // callers.
    gp_loc_t (*locate)(uintptr_t frame, uint64_t ticks);

    // Below: of gp_language alone, which has coroutines that share a stack.

    // Counts up: with another number, the same frame words may mean something else. Signals: safe.
    uint32_t (*generation)(void);
    // The coroutine that runs on the calling thread, with its id, where the switch to it has not been reported yet;
    // NULL = the one that was reported last, and `*id` is left alone. Signals: safe.
    struct prof_coro *(*unreported)(uint64_t *id);

    // The calling thread, which the registry knows, is about to use its current coroutine. Signals: not safe.
    void (*enter)(void);
    // The coroutine that runs on the calling thread; NULL = its own stack, or not known. While nothing samples, that is
    // not reported. Signals: not safe.
    struct prof_coro *(*current)(void);
    // A recorder of exact mode has started: report the calling thread's calls to it from now on, or (`everywhere`)
    // those of all threads, until no recorder runs. No lock of the core's is held. Signals: not safe.
    void (*count_calls)(bool everywhere);
    // Is something else told of the calling thread's calls instead? Signals: not safe.
    bool (*calls_are_taken)(void);

    // Below: the collector only, drain lock held.

    // Frames, as of walk(), of a coroutine without a stack of its own that waits. Its object may be freed meanwhile:
    // whether the coroutine was left alone is for the caller to find out.
    size_t (*walk_parked)(uintptr_t object, uintptr_t *frames, size_t max, unsigned *flags);
    // The same of a thread that sleeps in a system call.
    size_t (*walk_asleep)(const struct gp_thread *thread, uintptr_t *frames, size_t max, unsigned *flags);
    // The language's name for a thread that the core has not met yet. Returns false: nothing.
    //   name: [GP_CORO_NAME_SIZE]
    bool (*thread_name)(int tid, char *name);
    // A name for a coroutine that has none, from its stack (gp_loc_t[depth], innermost first); NULL = this does not
    // tell.
    const char *(*coro_name)(const uint64_t *locs, size_t depth);
} gp_language_t;

// Set by a hook that can do more once the caller holds its interpreter's lock; NULL = there is none. Returns 0 or
// -ENOTSUP.
extern int (*_Atomic gp_language_attach)(void);

// Has `greenprof detach` left the process? Objects that the language makes meanwhile are not remembered; after the next
// attach they count as older than greenprof.
extern _Atomic bool gp_language_is_left;

// In a process that runs already: have the interpreter do so soon, on a thread of its own, as far as captures need it.
// NULL = there is none.
extern void (*_Atomic gp_language_attach_soon)(void);

// The first of all that are known in this process, from which `next` leads to the others; NULL = there is none.
// Acquire to read.
extern gp_language_t *_Atomic gp_languages;

// The language with coroutines that share a stack; NULL = there is none. Acquire to read.
extern const gp_language_t *_Atomic gp_language;

// Add a language, with a number of its own. Threads: any. Signals: not safe.
void gp_language_add(gp_language_t *language);

// The language of a number, as a frame word gives it; NULL = it is not known here. Signals: safe.
const gp_language_t *gp_language_of(unsigned number);

// All of them, by the thread that attaches or detaches.
void gp_language_follow(bool is_attached);
// All of them. The collector, drain lock held.
void gp_language_before_drain(void);
void gp_language_after_drain(void);

// Switches are not reported: unreported() finds the running coroutine at each sample, and times are as good as the
// samples.
extern _Atomic bool gp_language_reads;

// Recorders of exact mode, which have switches reported all the same.
extern _Atomic int gp_language_recorders;

// Is the running coroutine read, as of now?
static inline bool gp_language_is_read(void)
{
    return atomic_load_explicit(&gp_language_reads, memory_order_relaxed) &&
           atomic_load_explicit(&gp_language_recorders, memory_order_relaxed) == 0;
}
