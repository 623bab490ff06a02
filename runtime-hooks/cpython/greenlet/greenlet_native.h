// SPDX-License-Identifier: MIT
// greenlet's own C++ side: where its stacks begin, where it keeps the running greenlet, and the virtual functions
// through which every switch goes.
//
// Model: a switch is g_switch(), called on the target's C++ object; it returns, or throws, on whichever greenlet has
// been switched to. A greenlet that is switched to for the first time begins in g_initialstub(), called by g_switch().
// Both are replaced in the tables of virtual functions. So no trace callable is needed, for which greenlet makes two
// tuples and parses a format (56 ns a switch), and which is one a thread only. A switch is reported before it is made:
// a greenlet that was suspended before switches were seen goes on like all others, and a switch costs no frame of the
// hook's (which every return on another stack than it was called on would have the processor mispredict). Where
// greenlet refuses a switch after all, the next one finds that another greenlet runs than was reported. Where the
// tables are not as expected (other processors, other versions of greenlet), nothing is changed.
//
// Caller holds the interpreter lock.
#pragma once

#include "interpreter/api.h"

// Find greenlet's state of the calling thread: gp_greenlet_here.state.
//   current: the greenlet that runs.
void gp_greenlet_find_state(gp_py_t *current);

// Find the functions. in_module: any address in greenlet's module; main, other: a main greenlet, and one that is not.
// Returns whether they can be replaced. Once.
bool gp_greenlet_find_switch(const void *in_module, gp_py_t *main, gp_py_t *other);

// Replace them, where they are not. Returns whether they are now. They are put back by themselves after a thousand
// switches that nothing watches.
bool gp_greenlet_see_switches(void);

// Called by what replaces them, while profiles run (greenlet_switch.c).
// `from`, which runs, is about to switch to `to`, which has begun; NULL: to what begins, or to nothing.
void gp_greenlet_leaving(gp_py_t *from, bool is_over, gp_py_t *to);
void gp_greenlet_starting(gp_py_t *to); // `to` is about to begin
void gp_greenlet_switched(void);        // some greenlet runs, and it may be another one than was reported

// Let native stacks of greenlets end where greenlet starts them: what lies beyond is whatever else was on the shared
// stack.
void gp_greenlet_mark_bootstrap(const void *in_module);
