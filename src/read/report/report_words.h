// SPDX-License-Identifier: MIT
// Names of enum values, for outputs.
#ifndef GP_REPORT_COUNTER_NAMES_H
#define GP_REPORT_COUNTER_NAMES_H

#include <stdint.h>

#include "report/report.h"

// "drop_ring_full", ...; NULL for a number that this version does not know.
const char *gp_counter_name(uint32_t counter);

// "cpu", "wall" or "delay"; and in words: "CPU time", "wall-clock time", "delays of others".
const char *gp_measure_name(gp_measure_t measure);
const char *gp_measure_words(gp_measure_t measure);

// "exact", "estimated" or "sampled".
const char *gp_basis_name(gp_basis_t basis);

#endif
