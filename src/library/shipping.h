// SPDX-License-Identifier: MIT
// Consumers whose URL is a destination of `greenprof ship`: the process sends its capture itself, samples and all.
//
// Model: what is sent is the process' capture. Where it has none, one is begun in the spool directory, in parts, so
// that it takes a bounded part of the disk. A thread of greenprof's own follows it with the shipper of
// libgreenprof-ship, which is loaded for it: libgreenprof itself needs no libcurl. Children by fork write captures of
// their own into the same folder, and have no such thread: the parent's sends them. Where the parent is gone one of
// them takes over. Captures that a process leaves are sent by the next one with the same destination.
//
// Threads: the consumers' lock is held, unless a declaration says otherwise.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "greenprof/consumer.h"

// Returns 0; -ENOTSUP (no destination, or no libgreenprof-ship); -EINVAL; or as prof_consumer_open().
int gp_shipping_open(const char *url);

// Close a destination, or all (NULL): the rest is sent, within 3 s. Returns 0, -ENOENT, -ETIMEDOUT.
int gp_shipping_close(const char *url);

// Have what happened so far sent, before `deadline_ns` (CLOCK_MONOTONIC). Returns 0 or -ETIMEDOUT.
int gp_shipping_flush(uint64_t deadline_ns);

// Add to the sums those of one, or of all (NULL). Returns whether there is one.
bool gp_shipping_status(const char *url, prof_consumer_status_t *sum);

// On the collector's thread: what was lost, and how often it failed; and in a child it is looked whether the parent is
// still there.
void gp_shipping_count(uint64_t *lost, uint64_t *failed);

// Threads that may not stay are told so: they begin anew where they were. Signals: safe.
void gp_shipping_wake(void);

// In a forked child: only atomics.
void gp_shipping_after_fork(void);

// The process ends, its capture has: only atomics and futexes.
void gp_shipping_at_last(void);
