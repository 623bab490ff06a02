// SPDX-License-Identifier: MIT
// The rate of samples where none was chosen: as many as keep the whole cost, signals included, within
// GP_DEFAULT_COST_PPM of the program's CPU time, at most what is asked for.
//
// Model: hooks and greenprof's own threads come first, samples have the rest, and a quarter of the whole at least: an
// idle program, or one with little but switches, is still seen. So the rate follows from the price of a sample alone,
// no rate is tried out. Nothing else is left out or comes later: that is what a budget is for (budget.h).
//
// No clock is read. Threads: any, but for gp_default_rate_keep(): the collector. Signals: not safe.
#pragma once

#include <stdbool.h>

typedef struct gp_rate_look {
    double base, hooks, own; // CPU time, ns a second: of the program, of hooks in it, of greenprof's own threads
    double credit_ns;        // what may be taken; below 0: what was taken too much
    double price_ns;         // of a sample: the signal and its handler
} gp_rate_look_t;

// The rate that the look allows. present: the answer where the program does nothing.
double gp_default_rate_of(const gp_rate_look_t *look, double most_hz, double present_hz);

// The rate to begin with, where nothing is known yet.
unsigned gp_default_rate_first(unsigned most_hz, bool is_chosen);

// A recording has begun, with that rate: is it greenprof's to choose?
void gp_default_rate_begin(unsigned most_hz, bool is_chosen);

// Its end. Returns the rate that it has.
unsigned gp_default_rate_end(void);

// Is there a recording; and is its rate greenprof's to choose?
bool gp_default_rate_is_recording(void);
bool gp_default_rate_is_kept(void);

// Change the rate of the recording.
void gp_default_rate_keep(const gp_rate_look_t *look);

// Samples a second at present, 0 = not fewer than asked for, or by choice.
unsigned gp_default_rate_lowered_to(void);
