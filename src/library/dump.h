// SPDX-License-Identifier: MIT
// Dumps from inside the library.
#pragma once

#include <stdio.h>

#include "greenprof/prof.h"

struct gp_exporter;

// Dump as prof_dump() does, but into a stream, by the calling thread: a thread of greenprof's own, with a large stack.
// Returns 0 or a negative errno value.
int gp_dump_to(prof_t *profile, const struct gp_exporter *exporter, FILE *stream);

// The same into a file, as prof_dump() writes it.
int gp_dump_write(prof_t *profile, const struct gp_exporter *exporter, const char *path);

// The format of that name, if profiles can be written in it. Returns 0, -EINVAL or -ENOTSUP.
int gp_dump_format(const char *name, const struct gp_exporter **exporter);
