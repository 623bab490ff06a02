// SPDX-License-Identifier: MIT
// A census as text or JSON, on standard output.
#pragma once

#include "census_groups.h"

// rows, members: stacks shown, and coroutines of each; 0 = all.
void gp_census_print(const gp_census_groups_t *groups, const gp_input_t *source, uint64_t rows, uint64_t members);
void gp_census_print_json(const gp_census_groups_t *groups, const gp_input_t *source);

typedef struct gp_census_frame {
    char function[256], file[256]; // file: "" where it is not known
    uint32_t line;
} gp_census_frame_t;

// The innermost frame of a stack, by its number. Returns false where there is none.
bool gp_census_innermost(const gp_input_t *source, uint32_t stack, gp_census_frame_t *frame);

// "function (file:line)".
void gp_census_print_frame(const gp_census_frame_t *frame);
