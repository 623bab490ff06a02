// SPDX-License-Identifier: MIT
// Exact mode in the capture: GREENPROF_MODE=exact counts the calls of the whole process from its start.
// Everything but gp_session_calls_start(): caller holds the drain lock.
#pragma once

#include <stdbool.h>

#include "capture/write/writer.h"

// Begin if the environment asks for it; the sampler has been acquired.
void gp_session_calls_start(void);

// Count no more. No lock is held; nothing else here is called any more.
void gp_session_calls_stop(void);

// In a forked child: what was counted so far is in the parent's capture.
void gp_session_calls_after_fork(void);

// Write the pairs of functions with changed numbers, once a second and when it `ends`. `now`: CLOCK_MONOTONIC.
void gp_session_calls_write(gp_writer_t *writer, uint64_t now, bool ends);
