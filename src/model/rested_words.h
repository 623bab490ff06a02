// SPDX-License-Identifier: MIT
// How much of a recording's time was recorded, in words: the rest of it, it rested to stay within its budget.
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/counters.h"

enum { GP_RESTED_WORDS_SIZE = 96 };

// lasted_ns: the recording, so far. Returns false, and "", where it did not rest.
static inline bool gp_rested_words(const uint64_t counters[GP_COUNTER_COUNT], uint64_t lasted_ns,
                                   char words[GP_RESTED_WORDS_SIZE])
{
    uint64_t rested_ns = counters[GP_COUNTER_REST_NS];
    words[0] = '\0';
    if (counters[GP_COUNTER_RESTS] == 0)
        return false;
    double percent = lasted_ns > rested_ns ? 100.0 * (double)(lasted_ns - rested_ns) / (double)lasted_ns : 0;
    snprintf(words, GP_RESTED_WORDS_SIZE, "recorded %.0f %% of the time, by budget (%" PRIu64 " rest%s)", percent,
             counters[GP_COUNTER_RESTS], counters[GP_COUNTER_RESTS] == 1 ? "" : "s");
    return true;
}
