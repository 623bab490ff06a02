// SPDX-License-Identifier: MIT
// From a record in a ring to the sinks: its coroutine, where its frames are, and its time by kinds. Caller holds the
// drain lock everywhere; modules are up to date.
#pragma once

#include "collect/sink.h"
#include "model/frame_table.h"

// Empty a thread's ring.
void gp_ring_drain_drain(gp_thread_t *thread);

// Hand on a wait. thread: NULL for one that has not ended.
void gp_ring_drain_take_wait(gp_thread_t *thread, const gp_sample_t *sample);

// Hand on a sample of a thread that sleeps.
void gp_ring_drain_take_sleep(gp_thread_t *thread, const gp_sample_t *sample);

// Hand on what a thread could not run for, where no sample of running has it.
//   known: where it was sampled last; NULL: it has the sample's frames.
void gp_ring_drain_take_preempted(gp_thread_t *thread, const gp_sample_t *sample, const gp_stack_t *known);

// A sample's frames as locations, greenprof's own left out.
//   locs: room for GP_UNWIND_DEPTH_DEFAULT + GP_RING_STACK_MORE.
void gp_ring_drain_locate(const gp_sample_t *sample, gp_loc_t *locs, gp_stack_t *stack);

// Note in a table where frames of languages are, as they are located; NULL = no more.
//   table: gp_frame_place_t[GP_FRAME_TABLE_SLOTS].
void gp_ring_drain_note_frames(gp_frame_place_t *table);

// Name an unnamed coroutine by its frames, if its language knows how.
void gp_ring_drain_name(prof_coro_t *coro, uint64_t id, const gp_stack_t *stack);

// Take samples still in a ring, and their signals, off the counters (gp_collector_counters()): the rest is what the
// sinks were given. Collector only.
void gp_ring_drain_leave_late(uint64_t counters[GP_COUNTER_COUNT]);

// In a forked child, which counts anew.
void gp_ring_drain_after_fork(void);
