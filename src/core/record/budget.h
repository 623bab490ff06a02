// SPDX-License-Identifier: MIT
// A budget (GREENPROF_BUDGET): samples become fewer until what greenprof costs is within a share of the program's CPU
// time.
//
// Model: twice a second the cost so far (collect/cost.h) is compared with what it may be, and the rate of samples
// changed in proportion; what was taken too much is saved in the seconds that follow. Samples are weighted by the time
// passed: a changing rate changes no weight. Below GP_BUDGET_LEAST_HZ the rate does not fall: there rounds come later,
// up to GP_BUDGET_SLOW_MAX times, unless the user says how soon all is to be written; where hooks still take too much,
// recording rests for a part of the time (duty.h); where it must not, that is counted. Processes with a budget know of
// each other (budget_share.h): what some take too much at their lowest rate, the others save. Collector only, but for
// what says so.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { GP_BUDGET_LEAST_HZ = 10, GP_BUDGET_SLOW_MAX = 8 };

// Called where recording is about to rest, without the drain lock; NULL = nothing is to be said then.
extern void (*_Atomic gp_budget_before_rest)(void);

// Keep to what the environment says. At load.
void gp_budget_begin(void);

// Keep to `ppm` millionths from now on; 0 = to what the environment says. Any thread; before a recording begins.
void gp_budget_set(uint32_t ppm);

// The budget, millionths; 0 = there is none. Any thread.
uint32_t gp_budget_ppm(void);

// A recording begins: from now on it is known what greenprof takes, and where there is no budget the rate is kept as
// default_rate.h says.
//   is_chosen: the user asks for most_hz, or for a budget.
void gp_budget_begin_recording(unsigned most_hz, bool is_chosen);

// Whether rounds may come later. As a recording begins.
void gp_budget_let_slow_down(bool may);

// By how much they do, hundredths; 100 = not at all. Any thread.
unsigned gp_budget_slowness(void);

// Samples a second at present, or 0 where the budget did not make them fewer. Any thread.
unsigned gp_budget_lowered_to(void);

// Do hooks alone take more than the budget, whatever the rate? Then percent: of the CPU time that the program used
// without greenprof; switches_per_s: of CPU time. Since the process began. Caller holds the drain lock.
bool gp_budget_spent_by_hooks(double *percent, double *switches_per_s);
