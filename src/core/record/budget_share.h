// SPDX-License-Identifier: MIT
// Processes with a budget know of each other: each has a row in a file in the user's directory (live/census_place.h).
//
// Model: a row says what its process uses, may take and takes. A process above its share at its lowest rate has no
// means left; the others make up for the excess, in proportion to their shares. So the sum stays within the sum of what
// all may take. A row that was not written for GP_BUDGET_SHARE_STALE_MS is free: its process ended, was killed or
// samples no more. The file is read and written under its lock, which ends with its holder, and never mapped. Where it
// cannot be had, each process keeps to its own budget. Collector only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/engines.h"

enum { GP_BUDGET_SHARE_STALE_MS = 5000, GP_BUDGET_SHARE_ROWS = 4096 };

typedef struct gp_budget_part { // ns a second
    uint64_t base, cost, may;   // the program's use; greenprof's cost; its limit
    bool is_at_least;           // its rate is the lowest
} gp_budget_part_t;

// Say what this process does, and what a signal of the engine takes. Returns what it may take, ns a second: part->may
// or less.
uint64_t gp_budget_share(const gp_budget_part_t *part, uint64_t now_ns, enum gp_engine engine);

// A signal's cost with the engine, as another process has measured it in the last hour; 0 = none has.
uint64_t gp_budget_share_delivery(enum gp_engine engine);

// Say what a signal of the engine takes, for an hour.
void gp_budget_share_tell_delivery(enum gp_engine engine);

// Processes with a budget at the latest look, this one included. Any thread.
unsigned gp_budget_share_count(void);
