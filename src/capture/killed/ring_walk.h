// SPDX-License-Identifier: MIT
// Through the records of a ring file (capture/ring_file.h) that the capture may not have.
//
// Order of calls: load, or the file in memory -> begin -> walk... Whatever the file holds, a record that is visited
// lies in it, and is as long as its type is. Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "capture/format.h"
#include "capture/ring_file.h"

enum { GP_RING_WALK_DEPTH_MAX = 4096 };

typedef struct gp_ring_walk {
    const gp_ring_file_t *file;
    const gp_ring_file_note_t *note; // the latest that is about the capture
    uint64_t number;                 // its
} gp_ring_walk_t;

typedef struct gp_ring_taken { // a record, as it is found
    const gp_ring_header_t *record;
    uint32_t thread;  // that it is of: index
    uint64_t root_id; // of its own stack
    uint32_t tid;
} gp_ring_taken_t;

typedef void gp_ring_visit_t(void *context, const gp_ring_taken_t *taken);

// Read a ring file.
//   file: set to it, for free(), also where that fails; or NULL.
// Returns 0 or a negative errno value: -ENOMSG where it is none that this version knows.
int gp_ring_walk_load(int fd, gp_ring_file_t **file, size_t *bytes);

// Returns 0; -ENOMSG as above; -ESTALE for another capture's than the one with this header.
int gp_ring_walk_begin(gp_ring_walk_t *walk, const gp_ring_file_t *file, size_t bytes, const gp_file_header_t *capture);

// Visit samples, waits, activities and spans: of each thread the oldest first.
//   has: of which types the capture has chunks from note->first_sequence on: what of these was handed over with the
//        note is left out. NULL = leave out none.
void gp_ring_walk(const gp_ring_walk_t *walk, const bool has[GP_CHUNK_TYPES], gp_ring_visit_t *visit, void *context);
