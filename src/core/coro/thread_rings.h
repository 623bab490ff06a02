// SPDX-License-Identifier: MIT
// Where the rings of threads are: in memory of their blocks, or in a file (src/core/record/ring_file.h) that outlives
// the process.
//
// Model: gp_thread_keep_rings() says what is wanted. Rings that no thread is in the middle of are there at once, those
// of running threads by and by, in gp_thread_turn_rings(), while these go on (signal/ring.h). Caller holds the drain
// lock, unless said otherwise. Signals: not safe, unless said otherwise.
#pragma once

#include "signal/thread.h"

enum { GP_RING_SLOT_BYTES = GP_RING_OWNER_BYTES + GP_RING_BYTES };

// From now on the rings of the first blocks are to be in a file, and keep what was read. NULL: no ring keeps anything
// any more, and all are to be in their own memory.
//   slots: of all of the rings, each GP_RING_SLOT_BYTES, with a gp_ring_owner_t in front; zero. Mapped until
//          gp_thread_turn_rings() has said that all are elsewhere.
void gp_thread_keep_rings(unsigned char *slots, uint32_t count);

// Bring rings nearer to where they are to be. Now and then, until it returns true: all are there.
//   drain: empties a ring.
bool gp_thread_turn_rings(void (*drain)(gp_thread_t *thread));

// Rings of blocks: of a new block; of one that a thread begins with; of one in nothing but the list any more, to give
// its memory back. Caller holds the registry lock.
void gp_thread_ring_make(gp_thread_t *thread);
void gp_thread_ring_begin(gp_thread_t *thread);
void gp_thread_ring_give_back(gp_thread_t *thread);

// Let it begin anew where it is empty and has come far: of threads that run for long, too, little is in use.
void gp_thread_ring_rewind(gp_thread_t *thread);

// In a forked child: the file is the parent's. No lock.
void gp_thread_rings_after_fork(void);

// In a child without the program's fork handlers. No lock. Signals: safe.
void gp_thread_leave_rings(void);
