// SPDX-License-Identifier: MIT
// Losses that a capture tells, and what greenprof itself took: the same in all outputs.
#pragma once

#include "facts/dataset.h"

// Is a counter a loss that is told? Lost samples are, and CPU time without samples, but not the little that has no
// sample yet.
//   process_cpu_ns: of the program, by the kernel.
bool gp_losses_are_told(const uint64_t *counters, uint64_t process_cpu_ns, uint32_t counter);

// CPU time of greenprof in the program's threads (handler, signals, hooks), and all of greenprof's as a share of the
// program's; 0: not known.
uint64_t gp_losses_own_in_threads(const gp_dataset_t *dataset);
double gp_losses_own_share(const gp_dataset_t *dataset);
