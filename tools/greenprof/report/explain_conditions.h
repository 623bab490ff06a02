// SPDX-License-Identifier: MIT
// --fail-on: "victim>1s,p99>250ms".
#pragma once

#include "report/explain.h"

enum { GP_CONDITIONS_MAX = 64 };

typedef struct gp_condition_outcome {
    char text[64]; // as it was given
    bool is_known, holds;
    char why[128]; // what it is, or why that is not known; "" where it does not hold
} gp_condition_outcome_t;

// Check the form. Returns 0 or EXIT_USAGE, with a message.
int gp_explain_conditions_check(const char *conditions);

// Judge them, which have been checked. Returns how many there are.
size_t gp_explain_conditions(const char *conditions, const gp_findings_t *findings,
                             gp_condition_outcome_t outcomes[GP_CONDITIONS_MAX]);
