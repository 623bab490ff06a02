// SPDX-License-Identifier: MIT
// The chosen part of a capture: whose samples, and which stacks of them.
#pragma once

#include <regex.h>

#include "facts/dataset.h"

// Coroutines, traces and threads, by their numbers in the dataset's tables: what all three have. NULL = all of them.
typedef struct gp_selection {
    const bool *coros, *traces, *threads;
} gp_selection_t;

bool gp_selection_has_share(const gp_selection_t *selection, const gp_dataset_share_t *share);

enum { GP_FOCUS_MAX = 31 };

// Stacks, as pprof's options of the same names: each of `focus` matches a frame, none of `ignore` does. A frame matches
// by its function, its file or its module. Frames that --by puts at the root are no part of a stack.
typedef struct gp_stack_filter { // zero-initialized = all
    const regex_t *focus;        // regex_t[focus_count], at most GP_FOCUS_MAX
    size_t focus_count;
    const regex_t *ignore; // regex_t[ignore_count]
    size_t ignore_count;
} gp_stack_filter_t;
