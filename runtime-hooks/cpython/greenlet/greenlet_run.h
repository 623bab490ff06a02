// SPDX-License-Identifier: MIT
// The greenlet, or step of a task, that runs on the calling thread, and the change to another. Caller holds the
// interpreter lock everywhere.
#pragma once

#include "greenlet/greenlet_map.h"
#include "interpreter/api.h"
#include "interpreter/task_step.h"
#include "signal/language.h"

// The calling thread is about to use its current coroutine: make sure that it is known. Without the lock it does
// nothing. Returns whether greenlets are hooked.
bool gp_greenlet_enter(void);

// Is that so already, for as long as anything samples or watches?
bool gp_greenlet_is_entered(void);

// Tell the core that the calling thread runs `greenlet`.
void gp_greenlet_switch_to(gp_py_t *greenlet);

// The greenlet that runs on the calling thread; NULL = there are none.
const void *gp_greenlet_current(void);

// The record of the task (by `step`, if one is in progress) or greenlet that runs on the calling thread, or {0}.
gp_greenlet_t gp_greenlet_running(const gp_task_step_t *step);

// The calling thread begins a step of `record`, and ends it. waiting: see gp_task_step_t.
//   outer: what it did before, for gp_step_end().
void gp_step_begin(gp_task_step_t *outer, const gp_greenlet_t *record, uintptr_t waiting);
void gp_step_end(const gp_task_step_t *outer);

// The frames of the step in progress end before another one; 0 = at the outermost.
void gp_step_rebase(uintptr_t base);

// The calling greenlet runs as `record` from now on, until it is given back what it was. False: it is its thread, or
// makes a step.
bool gp_greenlet_lend(const gp_greenlet_t *record, gp_greenlet_t *before);
void gp_greenlet_give_back(const gp_greenlet_t *before);

// The coroutine that runs on the calling thread, its own stack included. NULL when memory is short.
prof_coro_t *gp_greenlet_spawner(void);
