// SPDX-License-Identifier: MIT
// --junit: what --fail-on found, as servers that run tests read it.
#pragma once

#include "explain_conditions.h"

// Write the file. Returns 0 or EXIT_FAILED with a message.
//   capture: its path; findings: what the suite's text says.
int gp_explain_junit(const char *path, const char *capture, const gp_findings_t *findings,
                     const gp_condition_outcome_t *outcomes, size_t count);
