// SPDX-License-Identifier: MIT
// Records that the ring file of a killed process (capture/ring_file.h) has and its capture lacks, made for the capture.
//
// Samples, waits, activities and spans; coroutines, threads, traces and stacks that they need; times of coroutines and
// threads, as far as these records tell them. Missing is all that only the process knew: names of coroutines not in the
// capture, the stack at a span's beginning. Frames that neither a module of the capture nor the file's table holds are
// unknown, and counted.
//
// Order of calls: open -> read -> (each span) -> write -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "capture/read/reader.h"
#include "capture/ring_file.h"
#include "capture/write/writer.h"

typedef struct gp_recovery_over { // an activity that is over
    uint64_t coro_id, end_ns;
} gp_recovery_over_t;

typedef struct gp_recovery_rings {
    gp_writer_t writer;             // with the records
    uint64_t samples, waits, spans; // of them
    uint64_t unknown_frames;
    uint64_t last_ns;   // the last moment that they speak of
    uint64_t *span_ids; // of spans that are over
    size_t span_room;
    gp_recovery_over_t *overs;
    size_t over_count, over_room;
} gp_recovery_rings_t;

// Read the ring file.
//   rings_fd: the ring file. fd: the capture, whose position is changed. header: its header.
//   rings:    set to the records, possibly none; gp_recovery_rings_free() it.
// Returns 0 or a negative errno value: -ENOMSG for no ring file of a known version, -ESTALE for another capture's.
int gp_recovery_rings_read(gp_recovery_rings_t **rings, int rings_fd, int fd, const gp_file_header_t *header);

// The same of a ring file in memory, of `bytes` bytes; on an 8-byte boundary.
int gp_recovery_rings_take(gp_recovery_rings_t **rings, const gp_ring_file_t *file, size_t bytes, int fd,
                           const gp_file_header_t *header);

void gp_recovery_rings_free(gp_recovery_rings_t *rings);
