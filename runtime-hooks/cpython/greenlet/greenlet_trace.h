// SPDX-License-Identifier: MIT
// Switches as greenlet tells them to a callable set with greenlet.settrace(): where they cannot be seen in greenlet's
// own functions, or GREENPROF_GREENLETS=trace is set.
//
// Model: each thread has its callable, which calls the program's own tracer and stays hidden: settrace() and
// gettrace() show the program's own only.
//
// Order of calls: gp_greenlet_trace_hook() once. Caller holds the interpreter lock everywhere.
#pragma once

#include "interpreter/api.h"

// Put our settrace() and gettrace() in the place of the module's. Returns whether switches can be told.
bool gp_greenlet_trace_hook(gp_py_t *module);

// Have the calling thread's switches told, until nothing samples any more.
void gp_greenlet_trace(void);

// Are they?
bool gp_greenlet_is_traced(void);
