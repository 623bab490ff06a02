// SPDX-License-Identifier: MIT
// The ids of spans and of the traces that they begin: random, different in each process; in its own process, an id
// tells the handle of its span.
//
// Threads: any. Signals: safe.
#pragma once

#include <stdint.h>

uint64_t gp_span_id_of(uint64_t handle);

// The handle of any number, which may be no id of this process.
uint64_t gp_span_id_handle(uint64_t id);

void gp_span_id_new_trace(uint64_t trace[2]);

// In a forked child: its ids are others.
void gp_span_ids_after_fork(void);
