// SPDX-License-Identifier: MIT
// Options of a shipment: sources and destinations, and its state while it runs.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum gp_ship_order { GP_SHIP_ON, GP_SHIP_FINISH, GP_SHIP_STOP };

// Orders to a running shipper, and its results. All zero to begin with.
typedef struct gp_ship_state {
    _Atomic uint32_t order; // enum gp_ship_order. FINISH: send the rest, then end; failed groups are left
    _Atomic uint32_t
        bell; // a futex: changed, and woken, when there is something to look at before the interval is over
    _Atomic uint32_t heard;         // a futex: the bell, as it was before the latest round after which nothing was left
    _Atomic uint64_t spans, others; // that have arrived: of this process; of others
    _Atomic uint64_t lost;          // spans of captures that were removed before all of them had arrived
    _Atomic uint64_t waiting;       // spans of this process, in a group that is on its way
    _Atomic uint64_t failures;
    _Atomic int32_t last_error; // 0 = the last attempt was none
} gp_ship_state_t;

typedef struct gp_ship_options {
    const char *const *paths; // [path_count]: folders and captures
    const char *only;         // of folders, the captures of this name, and their parts and children; NULL = all
    uint64_t since_ns;        // captures that began before are left alone; 0 = none are
    size_t path_count;
    const char *const *urls; // [url_count]
    size_t url_count;
    const char *state; // folder of the journal
    uint64_t grain_ns, interval_ns;
    uint64_t rows_per_s, bytes_per_s; // 0 = any number
    bool once, dry_run, no_traces, with_info;
    FILE *out; // of a dry run
    // Says "greenprof: SUBJECT: what is wrong" and goes on.
    void (*say)(const char *subject, const char *format, ...) __attribute__((format(printf, 2, 3)));
    // Write what all coroutines of a process do, those of a trace first, into a new file of a folder; where the process
    // does not answer, what the capture has. Returns whether there is anything. NULL = there is no such.
    bool (*coroutines)(uint32_t pid, const char *capture, const char *trace, int folder, const char *name);
    gp_ship_state_t *state_now;
    bool never_asks;        // the journal is in the captures' own folder, and cannot be lost without them
    uint64_t *last_look_ns; // out: when it began to look for the last time, since 1970; NULL = nothing is told
    bool drops_removed;     // a removed capture is read no further, so that it takes no room on the disk
} gp_ship_options_t;
