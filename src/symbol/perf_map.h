// SPDX-License-Identifier: MIT
// Names of code made by a just-in-time compiler, from the file that it writes for perf: perf-PID.map, a line "START
// SIZE NAME" (hex, hex, the rest) for each piece of code.
//
// Model: a map grows while the program runs. Where pieces overlap the later line counts: the memory was used again.
// Other lines are left out.
// Threads: one at a time. Signals: not safe. Cost of a look: ~2 us when nothing changed.
// Source: tools/perf/Documentation/jit-interface.txt of Linux.
#pragma once

#include "base/memory.h"

typedef struct gp_perf_piece { // code [lo, hi)
    uint64_t lo, hi;
    const char *name;
    const void *symbol; // room for the owner's answer; NULL at first
} gp_perf_piece_t;

typedef struct gp_perf_map {
    const char *path;
    // The life of the process, CLOCK_REALTIME: a file last changed before, or made after, is of another process with
    // the same id.
    uint64_t from_ns, to_ns;
    uint64_t device, inode, read_len;
    gp_perf_piece_t *pieces; // as in the file; a piece's place stays
    size_t count, capacity;
    struct gp_perf_cut { // disjoint, sorted
        uint64_t lo, hi;
        uint32_t piece;
    } * cuts;
    size_t cut_count, cut_capacity;
    gp_arena_t texts;
} gp_perf_map_t;

// Read lines added since the last time; all lines when it is another file now. The file must belong to this user or to
// root, as perf demands: every user may write into /tmp. Returns 0 or a negative errno value, the map is then empty.
int gp_perf_map_update(gp_perf_map_t *map);

// Add lines. Returns 0 or -ENOMEM. A last line without an end is left for the next time: *used says how much was read.
int gp_perf_map_parse(gp_perf_map_t *map, const char *text, size_t len, size_t *used);

// The piece that an address is in; NULL when there is none. Valid until the next update.
gp_perf_piece_t *gp_perf_map_find(const gp_perf_map_t *map, uint64_t address);

// Free what was read; the path and the times stay.
void gp_perf_map_clear(gp_perf_map_t *map);
