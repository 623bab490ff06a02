// SPDX-License-Identifier: MIT
// greenlet's own facts of greenlets, and their records as coroutines: shared by the files of this room.
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include "greenlet/greenlet_map.h"
#include "greenprof/coro.h"
#include "interpreter/api.h"
#include "interpreter/task_step.h"
#include "signal/language.h"

// Functions of greenlet's own, by its C interface.
typedef struct gp_greenlet_api {
    gp_py_t *(*current)(void); // a new reference
    int (*is_main)(gp_py_t *), (*is_active)(gp_py_t *);
    bool is_hooked; // all is in place
    bool sees;      // switches are seen in greenlet's own functions: nothing is set with settrace()
} gp_greenlet_api_t;

extern gp_greenlet_api_t gp_greenlet_api;

static inline bool gp_greenlet_is_sampling(void)
{
    return __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) != 0;
}

// Make a greenlet's record, where there is memory for it.
//   spawner: NULL = none is known.
void gp_greenlet_add(gp_py_t *greenlet, prof_coro_t *spawner);

// The record of a greenlet, or of the task that steps in it; {0}: it is its thread, or memory is short. A greenlet
// older than the hook gets its record now.
gp_greenlet_t gp_greenlet_record(const gp_task_step_t *step, gp_py_t *greenlet);

static inline gp_greenlet_t gp_greenlet_record_here(gp_py_t *greenlet)
{
    return gp_greenlet_record(&gp_step_here, greenlet);
}
