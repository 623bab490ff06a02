// SPDX-License-Identifier: MIT
// A capture in a format: `export`, `flamegraph`, `view`.
#pragma once

#include "export/formats.h"
#include "options.h"

// Read what the arguments name, and write it.
//   output: NULL, "-" = standard output.
// Returns the exit status, with a message where it is not 0.
int gp_export_write(const gp_arguments_t *arguments, const gp_exporter_t *exporter, const char *output);
