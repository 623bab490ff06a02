// SPDX-License-Identifier: MIT
// Exact call counts: instrumented functions report when they are entered and left.
//
// Model: a program compiled with -finstrument-functions calls hooks in greenprof; every call of every instrumented
// function is then counted in the profiles of mode PROF_MODE_EXACT that cover its coroutine, with own and cumulative
// CPU and waiting time. prof_enter() and prof_exit() do the same by hand, for single functions or any part to be seen
// as one. Each coroutine has its own stack of calls, whatever switches happen in between. A function left by longjmp()
// or an exception ends when the next event of its coroutine shows that its frame is gone.
//
// Order of calls: prof_enter -> ... -> prof_exit, nested like calls, on one coroutine. An exit without an enter is
// ignored. Any thread, any coroutine, any signal handler of the host (not on a thread that greenprof has never seen).
// Nothing fails. Cost: one load and one branch while no exact profile runs, else some 20 ns each. The first time a
// function reports: ~2 us and 4 KiB of stack.
#ifndef GREENPROF_EXACT_H
#define GREENPROF_EXACT_H

#include <greenprof/prof.h>

#ifdef __cplusplus
extern "C" {
#endif

// Number of exact profiles that run. Read by the functions below; written by greenprof only.
PROF_API extern int prof_exact_active;

// The parts that run while a profile does. Do not call them directly.
PROF_API void prof_enter_hook(void *function);
PROF_API void prof_exit_hook(void *function);

// Begin a call of `function`. Its frame is the caller's: call it from the function itself or an inline function in it.
// (From a helper that returns before prof_exit() it counts as well; what longjmp() then leaves is noticed later.)
//   function: an address in the program, by which it is named; as a rule the function's own.
static inline __attribute__((always_inline)) void prof_enter(void *function)
{
    if (__builtin_expect(__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0, 0))
        prof_enter_hook(function);
}

// End a call of `function`. Calls above it that were not ended end as well.
static inline __attribute__((always_inline)) void prof_exit(void *function)
{
    if (__builtin_expect(__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0, 0))
        prof_exit_hook(function);
    __asm__ volatile(""); // no tail call: the caller's frame must still be there
}

// The hooks of -finstrument-functions.
PROF_API void __cyg_profile_func_enter(void *function, void *call_site);
PROF_API void __cyg_profile_func_exit(void *function, void *call_site);

#ifdef __cplusplus
}
#endif

#endif
