// SPDX-License-Identifier: MIT
// Words for a report's enums and counters, in outputs.
#pragma once

#include <stdint.h>

#include "report/report.h"

// "drop_ring_full", ...; NULL for a number that this version does not know.
const char *gp_counter_name(uint32_t counter);

// The text of a counter in reports: "too deep: [truncated]", ...; NULL = nothing by itself.
const char *gp_counter_sentence(uint32_t counter);

// The same of any counter.
const char *gp_counter_meaning(uint32_t counter);

// "cpu", "wall", "delay" or "latency"; and in words: "CPU time", "wall-clock time", "delays of others", "latency of
// requests".
const char *gp_measure_name(gp_measure_t measure);
const char *gp_measure_words(gp_measure_t measure);

// The unit of rows' counts: "samples", or "calls".
const char *gp_count_words(const gp_report_t *report);

// "exact", "estimated" or "sampled".
const char *gp_basis_name(gp_basis_t basis);
