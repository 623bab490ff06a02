// SPDX-License-Identifier: MIT
// Greenlets as coroutines: eventlet, gevent and greenlet itself.
//
// Model: greenlets of a thread share its stack, so no stack pointer tells them apart. Each has a record without a
// region, made when the greenlet is made (tp_new) and retired when it is freed (tp_dealloc), so that an address that
// comes again is another coroutine. While profiles run, switches are seen in greenlet's own functions
// (greenlet_native.h). Where that cannot be, or GREENPROF_GREENLETS=trace is set, a callable set with
// greenlet.settrace() says which one runs; it calls the program's own tracer and hides from it: settrace() and
// gettrace() show that one only. With GREENPROF_GREENLETS=read, switches cost nothing: the running greenlet is read at
// each sample, times are as good as the samples, and waits are not known. A main greenlet is its thread.
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include "greenlet/greenlet_map.h"
#include "interpreter/api.h"
#include "interpreter/task_step.h"
#include "signal/language.h"

// Hook the module greenlet._greenlet. Idempotent.
void gp_greenlet_hook(gp_py_t *module);

// The same, if it has been imported.
void gp_greenlet_look(void);

// The calling thread is about to use its current coroutine: make sure that it is known. Without the lock it does
// nothing. Returns whether greenlets are hooked.
bool gp_greenlet_enter(void);

// Is that so already, for as long as anything samples or watches?
bool gp_greenlet_is_entered(void);

// Tell the core that the calling thread runs `greenlet`.
void gp_greenlet_switch_to(gp_py_t *greenlet);

// The greenlet that runs on the calling thread; NULL = there are none.
const void *gp_greenlet_current(void);

// What runs on the calling thread, a step of a task in progress being `step`: a task's record, a greenlet's, or {0}.
gp_greenlet_t gp_greenlet_running(const gp_step_t *step);

// The calling thread begins a step of `record`, and ends it. waiting: see gp_step_t.
//   outer: what it did before, for gp_step_end().
void gp_step_begin(gp_step_t *outer, const gp_greenlet_t *record, uintptr_t waiting);
void gp_step_end(const gp_step_t *outer);

// The calling greenlet runs as `record` from now on, until it is given back what it was. False: it is its thread, or
// makes a step.
bool gp_greenlet_lend(const gp_greenlet_t *record, gp_greenlet_t *before);
void gp_greenlet_give_back(const gp_greenlet_t *before);

// The coroutine that runs on the calling thread, its own stack included. NULL when memory is short.
prof_coro_t *gp_greenlet_spawner(void);
