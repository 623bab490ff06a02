// SPDX-License-Identifier: MIT
// How large a recording has become, beside what it may be.
//
// Threads: the collector, under the drain lock. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/recording.h"

// Is there just room, in the file or among the numbers, for what is written at the end? The writer itself sees to it
// that the file is never larger.
bool gp_session_is_nearly_full(const gp_recording_t *recording);

// Is another part of it to begin at `now` (CLOCK_MONOTONIC, ns)?
bool gp_session_is_time_to_turn(const gp_recording_t *recording, uint64_t now);

// Was that time, and is the program no longer allowed to put a part aside? Then the present one goes on.
bool gp_session_turn_is_refused(void);
