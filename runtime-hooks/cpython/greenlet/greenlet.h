// SPDX-License-Identifier: MIT
// Greenlets as coroutines: eventlet, gevent and greenlet itself.
//
// Model: greenlets of a thread share its stack, so no stack pointer tells them apart. Each has a record without a
// region, made when the greenlet is made (tp_new) and retired when it is freed (tp_dealloc), so that a reused address
// is another coroutine. While profiles run, switches are seen in greenlet's own functions (greenlet_native.h). Where
// they cannot be seen, or GREENPROF_GREENLETS=trace is set, a callable set with greenlet.settrace() says which one
// runs; it calls the program's own tracer and hides from it: settrace() and gettrace() show the program's only. With
// GREENPROF_GREENLETS=read, switches cost nothing: the running greenlet is read at each sample, times are as good as
// the samples, and waits are not known. A main greenlet is its thread.
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include "interpreter/api.h"

// Hook the module greenlet._greenlet. Idempotent.
void gp_greenlet_hook(gp_py_t *module);

// The same, if it has been imported.
void gp_greenlet_look(void);
