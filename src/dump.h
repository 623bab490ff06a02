// SPDX-License-Identifier: MIT
// Dumps from inside the library.
#pragma once

#include <stdio.h>

#include "greenprof/prof.h"

struct gp_exporter;

// What prof_dump() does, into a stream, by the calling thread: one of greenprof's own, with a large stack.
// Returns 0 or a negative errno value.
int gp_dump_to(prof_t *profile, const struct gp_exporter *exporter, FILE *stream);
