// SPDX-License-Identifier: MIT
// --fail-on: "victim>1s,p99>250ms".
#pragma once

#include "report/explain.h"

// Check the form. Returns 0 or EXIT_USAGE, with a message.
int gp_explain_conditions_check(const char *conditions);

// Judge them. Returns how many hold, each with a message on standard error; -1 with a message where one asks for what
// is not known.
int gp_explain_conditions(const char *conditions, const gp_findings_t *findings, const char *path);
