// SPDX-License-Identifier: MIT
// Children by fork that were to be profiled and are not: a fork amid a change of greenprof's, without fork handlers
// (_Fork), or after which the child got no collector.
//
// Model: only such a child knows, and it writes no capture. The child counts itself in a page shared with its parent,
// and takes itself off where it becomes another program, which is profiled anew. A child that is profiled has a page of
// its own. A child of a bare clone() is not seen.
//
// Threads: as said. Signals: safe, but for gp_children_unprofiled_begin().
#pragma once

#include <stdbool.h>
#include <stdint.h>

// From now on they are counted; where no page is to be had, they are not. Under the sampler lock.
void gp_children_unprofiled_begin(void);

// In a child that goes on as its parent did: its own children are counted from now on.
void gp_children_unprofiled_in_child(void);

// The calling process is such a child.
//   is_claimed: gp_children_unprofiled_in_child() was called in it.
void gp_left_child_count(bool is_claimed);

// Around exec, by any process: one that was counted is not, unless exec fails.
void gp_left_child_before_exec(void);
void gp_left_child_after_failed_exec(void);

// How many children of this process there were.
uint64_t gp_children_unprofiled(void);
