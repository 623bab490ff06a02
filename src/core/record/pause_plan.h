// SPDX-License-Identifier: MIT
// When a recording rests, and for how long: the last resort of a budget (budget.h).
//
// Model: a cycle is a window that is recorded, its end, in which accounts are settled, and a rest (signal/rest.h) until
// what the window took too much is saved. A window lasts as long a part of WINDOW_CYCLE_S as the budget is of what
// recording takes, within bounds; older debt is saved bit by bit, so that no rest is long. A program that has become
// idle has nothing to save with, and what hooks take at rest may be too much as well: such a rest ends all the same.
//
// No clock is read and nothing is changed here. Threads: the collector. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum gp_duty_phase {
    GP_DUTY_RECORDS,
    GP_DUTY_ENDS, // a window: threads are sampled once more, as far as they come to run soon
    GP_DUTY_RESTS,
} gp_duty_phase_t;

typedef struct gp_duty { // zeros: a window begins with the first look
    gp_duty_phase_t phase;
    uint64_t since_ns;       // of the phase, CLOCK_MONOTONIC
    double goal_ns, from_ns; // of a rest: credit with which it ends, and began
} gp_duty_t;

typedef struct gp_duty_look {
    uint64_t now_ns;     // CLOCK_MONOTONIC
    bool is_last_resort; // nothing else is left to save with, and sampling may rest
    bool is_unsettled;   // a thread has used more than it was sampled since; asked for in GP_DUTY_ENDS only
    double credit_ns;    // what may be taken; below 0: what was taken too much
    double cost, hooks;  // of greenprof, and of that its hooks: ns a second while recorded
    double may;          // of these, what greenprof may take
} gp_duty_look_t;

// The phase that begins now, or goes on.
gp_duty_phase_t gp_duty_next(gp_duty_t *duty, const gp_duty_look_t *look);

// Until when it is to be looked again, CLOCK_MONOTONIC; 0 = there is no hurry.
uint64_t gp_duty_look_by(const gp_duty_t *duty, const gp_duty_look_t *look);
