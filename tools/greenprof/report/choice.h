// SPDX-License-Identifier: MIT
// The choice by --trace, --coroutine, --name, --thread, --from and --to in a capture.
#pragma once

#include "options.h"
#include "report/report_options.h"

typedef struct gp_chosen { // zero-initialized = everything
    gp_selection_t selection;
    bool *coros, *traces, *threads; // pointed to by the selection
} gp_chosen_t;

// Check what can be checked without a capture.
//   command, prefix: for messages; the options are called --PREFIXtrace, ...
// Returns 0 or EXIT_USAGE, with a message.
int gp_choice_check(const gp_choice_t *choice, const char *command, const char *prefix);

// Whether a part of the time is chosen.
bool gp_choice_has_window(const gp_choice_t *choice);

// Find out which part of the captures' time is chosen. They are read where their end is needed, and put back to their
// start. Returns 0 or an exit status, with a message.
int gp_choice_window(const gp_choice_t *choice, const gp_captures_t *captures, const char *path,
                     gp_dataset_window_t *window);

// Look up what is chosen. Returns 0 or an exit status, with a message. Free in both cases.
int gp_choice_find(const gp_choice_t *choice, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                   const char *path, gp_chosen_t *chosen);
void gp_chosen_free(gp_chosen_t *chosen);
