// SPDX-License-Identifier: MIT
// Output files that a signal does not leave half written.
#pragma once

#include "export/output.h"

// Open an output, have it written, and name it. SIGHUP, SIGINT and SIGTERM are held while the temporary file comes and
// goes, and remove it in between.
//   write: returns 0, or an error to return; then nothing is left behind.
// Returns 0, what `write` returned, or a negative errno value.
int gp_output_guarded(const char *path, int (*write)(gp_output_t *output, void *context), void *context);

// The same for what is written by the name of `output->temporary`.
int gp_output_guarded_named(const char *path, int (*write)(gp_output_t *output, void *context), void *context);

// Is an output one of the files that are read, by whatever name? The output would replace it.
// Returns 0, or EXIT_FAILED with a message.
int gp_output_check(const char *path, const char *const *inputs, size_t count);
