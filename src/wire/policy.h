// SPDX-License-Identifier: MIT
// The policy: which requests consumers get, as a capture has all. Until it is set: "signed" where there are keys, else
// "always".
//
// Threads: any. Signals: safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "greenprof/trace.h"

// Set it, as prof_policy() has it. Returns 0 or -EINVAL: it is then unchanged.
int gp_policy_set(const char *text);

// Is a request that begins without a signed context chosen? As the core asks (gp_span_policy_t).
bool gp_policy_chooses(prof_span_kind_t kind, const char *name);

// Is a request that came with a signed context one of them?
bool gp_policy_obeys_signed(void);

// How long those must take that were not asked for, as is known when they are over; 0: no matter.
uint64_t gp_policy_least_ns(void);
