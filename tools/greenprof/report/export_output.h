// SPDX-License-Identifier: MIT
// Writing a capture, or what was chosen of it, in a format of the exporter table.
#pragma once

#include "source.h"

// Write a report of the source to a file; "-" is standard output. Signals that end the command
// leave nothing half written. Returns 0 or EXIT_FAILED, with a message.
int gp_export_source(const gp_source_t *source, const gp_exporter_t *exporter, const char *path);
