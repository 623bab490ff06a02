// SPDX-License-Identifier: MIT
// A census as text or JSON, on standard output.
#pragma once

#include "census_groups.h"

// rows, members: stacks shown, and coroutines of each; 0 = all.
void gp_census_print(const gp_census_groups_t *groups, const gp_source_t *source, uint64_t rows, uint64_t members);
void gp_census_print_json(const gp_census_groups_t *groups, const gp_source_t *source);

// The innermost frame of a stack, by its number: "function (file:line)"; nothing where it has none.
void gp_census_print_place(const gp_source_t *source, uint32_t stack);
