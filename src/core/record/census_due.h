// SPDX-License-Identifier: MIT
// When a capture gets a census.
//
// Model: one every 5 s at first, and then after an eighth of the time so far, so that the file stays small. A process
// killed as it hangs would lack the time that matters: so where a coroutine keeps its thread there is a census after 1
// s as well, and again at each doubling. Loops that sleep as coroutines look the same from outside: these censuses are
// an eighth of the file at most, from 1 MiB on. Both take at most 1/100 of the collector's time.
//
// Collector only, under the drain lock. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Is there to be one now? now_ns: CLOCK_MONOTONIC. Cost: ~1 ns per thread that has coroutines.
bool gp_census_is_due(uint64_t now_ns);

// A census was taken, with so many records, since `begun_ns`. so_far_ns: the capture's time.
void gp_census_taken(uint64_t begun_ns, uint64_t so_far_ns, size_t records);

// The next census is due at once, as a capture begins, or is to be complete.
void gp_census_make_due(void);
