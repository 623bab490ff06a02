// SPDX-License-Identifier: MIT
// The live coroutines of a capture's latest census, those that stand at the same place together.
#pragma once

#include "report/input.h"

typedef struct gp_census_entry {
    const gp_census_record_t *record;
    uint32_t coro, trace, stack; // numbers in the dataset's tables; 0 = no trace, no stack
} gp_census_entry_t;

typedef struct gp_census_group {      // same stack, and all of them run or none does; without one, same state
    const gp_census_entry_t *entries; // [count], the longest in their state first
    size_t count;
} gp_census_group_t;

typedef struct gp_census_groups {
    gp_census_entry_t *entries;
    size_t entry_count;
    gp_census_group_t *groups; // the one with the oldest entry first
    size_t group_count;
    size_t states[GP_CENSUS_STATES]; // how many coroutines are in each; threads' own stacks left out
    size_t threads;                  // how many of the entries are those
} gp_census_groups_t;

// Group what is chosen. Returns 0 or -ENOMEM. Free in both cases.
int gp_census_groups_make(gp_census_groups_t *groups, const gp_input_t *source);
void gp_census_groups_free(gp_census_groups_t *groups);
