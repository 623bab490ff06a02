// SPDX-License-Identifier: MIT
// The cost of a runtime's hooks to the program's threads, where above GP_HOOK_SWITCH_NS a switch.
//
// Model: a hook dearer than the switch itself (an interpreter is asked, records are made, caches are cold) times every
// GP_HOOK_TIMED_EVERY-th of its calls by the switch clock, and each time stands for the calls between. A prime number,
// because programs switch in rounds.
//
// Order of calls: gp_hook_cost_begin(), and where it said that this call is timed, gp_hook_cost_end(). Threads: any,
// each with its own count. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "signal/ticks.h"

enum {
    GP_HOOK_SWITCH_NS =
        30, // what a hooked switch takes more, as measured (tools/bench/README.md), where nothing is timed
    GP_HOOK_TIMED_EVERY = 61,
};

extern __thread uint32_t gp_hook_cost_left __attribute__((tls_model("initial-exec"))); // calls until the next timed one

// Another call: is it timed?
static inline bool gp_hook_cost_count(void)
{
    if (__builtin_expect(gp_hook_cost_left-- != 0, 1))
        return false;
    gp_hook_cost_left = GP_HOOK_TIMED_EVERY - 1;
    return true;
}

// Will it be? For what may turn out to be a call of another kind, which counts itself.
static inline bool gp_hook_cost_is_next(void)
{
    return gp_hook_cost_left == 0;
}

// Ticks; 0 = this call is not timed. Cost: a decrement.
static inline uint64_t gp_hook_cost_begin(void)
{
    return gp_hook_cost_count() ? gp_ticks() : 0;
}

void gp_hook_cost_note(uint64_t took_ticks, unsigned switches);

// The same, of what was between two reads of the clock: of that, a read is not the hook's.
void gp_hook_cost_note_read(uint64_t between_ticks, unsigned switches);

// The call is over. begun: what gp_hook_cost_begin() said; later by as much as the program did between. switches: calls
// of gp_switch_to() in it, which are counted anyway.
static inline void gp_hook_cost_end(uint64_t begun, unsigned switches)
{
    if (__builtin_expect(begun != 0, 0)) // the clock is read here: code that is rarely called is not in the caches
        gp_hook_cost_note_read(gp_ticks() - begun, switches);
}

// Sum over all threads since the process began, beyond GP_HOOK_SWITCH_NS a switch; less than 0 where hooks take less.
// Any thread.
int64_t gp_hook_cost_more_ns(void);

// The child of fork() begins anew.
void gp_hook_cost_in_child(void);
