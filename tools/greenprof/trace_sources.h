// SPDX-License-Identifier: MIT
// The sources of `greenprof trace`: captures, JSON, directories, Redis.
#pragma once

#include "options.h"
#include "tree/sources.h"

// Read all of them, and link the spans.
//   sources: [count]
//   wanted:  see gp_wanted_t.
//   profiles: whether stacks are wanted as well, where a source has them.
// Returns 0 or an exit status, with a message. Free the set in both cases.
int gp_trace_sources_read(gp_spans_t *set, const gp_arguments_t *arguments, char **sources, size_t count,
                          gp_wanted_t wanted, bool profiles);
