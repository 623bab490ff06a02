// SPDX-License-Identifier: MIT
// The ring file (CAPTURE.rings), slot by slot: what a process that is to lose nothing when it is killed has beside its
// capture while it runs.
//
// The file is mapped memory of the process, as new as the kill: a header, a table of frames, and the rings of threads.
// Records of rings go to the capture in hand-overs; before the first chunk of one is written, a note is made of which
// chunk that is, and up to where each ring is in it. A ring begins with what is of the latest hand-over, or of the one
// before, which is written when a note is made. So of a ring,
//   before the latest note's position: what is of a type of which there is no chunk from the note's first one on is not
//   in the capture, as the hand-over is half written at most;
//   behind it: nothing is.
// A note is made beside the one before, and counts as soon as `latest` says so.
//
// Where a ring needs its room before the records read from it are in the capture, they are put aside behind the slots,
// in the store of the latest note; the two notes take turns. So a store's records are of the hand-over of its note,
// from the block's position `noted` on of the next one, and are in the capture once there is a further note. Records
// that the ring still has, as its tail says, count in the ring. Records are those of rings (model/ring_record.h).
// Integers are as the machine has them; the file is read there.
#pragma once

#include <stdint.h>

#include "model/frame_table.h"
#include "model/ring_record.h"

#define GP_RING_FILE_SUFFIX  ".rings"
#define GP_RING_FILE_MAGIC   "GRNRING\n" // 8 bytes, no NUL; written last
#define GP_RING_FILE_VERSION (4u + GP_SPAN_LAYOUT)

enum {
    GP_RING_FILE_SLOTS = 64,            // threads at a time
    GP_RING_FILE_STORE_BYTES = 3 << 20, // of each of the two stores
};

typedef struct gp_ring_file_note {
    uint64_t start_realtime_ns; // of the capture that it is about, as in its header
    uint64_t start_ticks;       // that its times count from
    uint64_t first_sequence;    // of the first chunk of the hand-over
    uint64_t positions[GP_RING_FILE_SLOTS];
} gp_ring_file_note_t;

typedef struct gp_ring_file_header {
    char magic[8];                    // GP_RING_FILE_MAGIC
    uint32_t version, header_bytes;   // GP_RING_FILE_VERSION; sizeof(gp_ring_file_t): the slots begin here
    uint32_t pid, slots;              // of the process; GP_RING_FILE_SLOTS
    uint32_t owner_bytes, ring_bytes; // of each slot: a gp_ring_owner_t, then the ring's data
    uint64_t tick_mult;               // ns = ticks * tick_mult >> 32
    uint64_t own[2], entry[2];        // [lo, hi) of greenprof's code, and of the code that a thread's stack begins with
    uint64_t latest;                  // number of the latest note: notes[latest % 2]
    uint64_t store_bytes;             // GP_RING_FILE_STORE_BYTES; the stores are behind the slots
    gp_ring_file_note_t notes[2];
} gp_ring_file_header_t;

typedef struct gp_ring_file {
    union {
        gp_ring_file_header_t header;
        unsigned char page[4096];
    };
    gp_frame_place_t frames[GP_FRAME_TABLE_SLOTS];
} gp_ring_file_t;

typedef struct gp_ring_file_store {
    uint64_t note; // number; its stores[note % 2]
    uint64_t used; // bytes of blocks behind this
} gp_ring_file_store_t;

typedef struct gp_ring_file_block { // records of a ring, behind this
    uint64_t from, noted;           // position of the first, and that of the ring in the note
    uint32_t bytes, slot;           // of the records
    gp_ring_owner_t owner;          // as it was
} gp_ring_file_block_t;
