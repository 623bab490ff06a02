// SPDX-License-Identifier: MIT
// The capture of a killed process, made whole: without a half-written chunk, with the spans that were open, and with an
// end.
//
// Model: gp_recovery_look() reads a capture, or what has been added to it since the last look, and keeps the spans that
// are still open, and what their coroutines were doing. gp_recovery_write() copies all whole chunks as they are, and
// puts those and an end behind them. Damage in the middle stays.
//
// gp_recovery_take_rings() adds the records that only its ring file has (capture/ring_file.h).
//
// Order of calls: look... -> take_rings, or not -> write -> free. Memory: what is open. Threads: one at a time.
// Signals: not safe.
#pragma once

#include "base/index.h"
#include "capture/killed/recovery_activities.h"
#include "capture/killed/recovery_rings.h"
#include "capture/read/reader.h"

typedef struct gp_recovery_span {
    uint64_t id;
    void *record; // gp_span_record_t, name and fields; NULL = it is over
    size_t bytes;
} gp_recovery_span_t;

typedef struct gp_recovery { // zero-initialized = nothing
    gp_file_header_t header;
    gp_reader_summary_t summary;
    gp_reader_part_t part;
    uint64_t bytes, last_ns, samples; // of the file; the last that is known of the process
    gp_recovery_span_t *spans;
    size_t count, capacity, open; // of them are open
    gp_index_t index;
    gp_recovery_activities_t activities;
    gp_recovery_rings_t *rings; // NULL = nothing is known of them
} gp_recovery_t;

// Read a capture, from where the look before ended.
//   fd: of a file, the same one each time; its position is changed.
// Returns as gp_reader_read().
int gp_recovery_look(gp_recovery_t *recovery, int fd, char error[GP_READER_ERROR_SIZE]);

// Add what the ring file has, after the last look.
//   rings_fd: of the ring file. fd: the capture's; its position is changed.
// Returns as gp_recovery_rings_read(); where that failed, all is as it was.
int gp_recovery_take_rings(gp_recovery_t *recovery, int rings_fd, int fd);

// Write the recovered capture, once, to an empty file that exists. A capture that has its end is copied.
//   fd: the capture's.
// Returns 0 or a negative errno value.
int gp_recovery_write(const gp_recovery_t *recovery, int fd, const char *path);

// Is a span open?
bool gp_recovery_has_open(const gp_recovery_t *recovery, uint64_t id);

void gp_recovery_free(gp_recovery_t *recovery);
