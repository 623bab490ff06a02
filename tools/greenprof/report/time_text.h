// SPDX-License-Identifier: MIT
// Moments on the command line: --from, --to.
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum gp_moment_kind {
    GP_MOMENT_SINCE_START, // "1.5": ns since the capture's start
    GP_MOMENT_BEFORE_END,  // "-1.5": ns before its end
    GP_MOMENT_ABSOLUTE,    // "2026-11-21 12:00:00", "@1795262400": ns since 1970
    GP_MOMENT_OF_DAY,      // "12:00:00": ns since midnight of the day on which the capture starts
} gp_moment_kind_t;

typedef struct gp_moment {
    gp_moment_kind_t kind;
    uint64_t ns;
} gp_moment_t;

// Read a moment. Times without a zone are local. Returns whether `text` is one.
bool gp_moment_parse(const char *text, gp_moment_t *moment);

// The moment as ns since the capture's start; one before the start is the start.
//   start_ns: since 1970.
//   end_ns:   since the start.
uint64_t gp_moment_resolve(const gp_moment_t *moment, uint64_t start_ns, uint64_t end_ns);
