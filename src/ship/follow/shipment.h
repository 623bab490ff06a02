// SPDX-License-Identifier: MIT
// The way to one destination: its place in each capture, and the group of pieces that is on its way.
//
// Model: a group has a piece of each capture that has grown. A group is written down before it is sent, and made again
// from this after a restart. Threads: the shipper's. Signals: not safe.
#pragma once

#include "ship/follow/captures_watched.h"
#include "ship/follow/journal.h"
#include "ship/rows/piece.h"
#include "ship/send/destination.h"

// Times are of CLOCK_MONOTONIC, ns.
typedef struct gp_limit { // at most `rate` units a second on average; rate 0 = any number
    uint64_t rate, free_ns;
} gp_limit_t;

typedef struct gp_backoff { // zero-initialized: nothing failed
    uint64_t pause_ns, until_ns;
} gp_backoff_t;

typedef struct gp_shipment { // to one destination
    const gp_destination_kind_t *kind;
    void *destination;
    gp_fleet_url_t url;
    uint64_t id;
    const char *tenant; // NULL = the label's
    gp_captures_watched_t following;
    size_t next; // capture that a group begins with
    gp_piece_t *pieces;
    gp_batch_t *batches;
    gp_one_capture_t **owners;
    size_t count; // of the group
    gp_backoff_t backoff;
    gp_limit_t rows, bytes;
    uint64_t bytes_seen;
    unsigned attempts; // that failed in a row
    bool in_doubt;     // the group may have arrived
    bool is_over;      // once: nothing is left, or it is given up
    bool has_failed;
    char error[GP_FLEET_ERROR_SIZE]; // of the store, when asked for its pieces
} gp_shipment_t;

typedef struct gp_shipper {
    const gp_ship_options_t *options;
    gp_piece_options_t piece_options;
    gp_journal_t *journal; // NULL in a dry run
    gp_symbolizer_t *symbolizer;
    gp_labels_t labels; // of this process
    gp_shipment_t *shipments;
    size_t count;
    bool has_failed;
} gp_shipper_t;

static inline size_t gp_shipment_rows(const gp_batch_t *batch)
{
    return batch->sample_count + batch->span_count + batch->request_count;
}

// Look for what is new.
void gp_shipment_look_around(gp_shipment_t *shipment);

// Take a piece [from, to) of a capture into the group; to = 0: what there is. Returns 1 when there was something, 0, or
// a negative errno value, which was said.
int gp_shipment_take(gp_shipper_t *shipper, gp_shipment_t *shipment, gp_one_capture_t *followed, uint64_t from,
                     uint64_t to);

// Make a group, where there is none, and write it down. Returns whether there is one to send; `result`: 0, or a
// negative errno value.
bool gp_shipment_make(gp_shipper_t *shipper, gp_shipment_t *shipment, int *result);

// The group has arrived, and that is written down.
void gp_shipment_go_on(gp_shipper_t *shipper, gp_shipment_t *shipment);

// Is there nothing to send, and no group on its way?
bool gp_shipment_is_empty(gp_shipper_t *shipper, gp_shipment_t *shipment);

void gp_shipment_free_group(gp_shipment_t *shipment);

// For --dry-run: what would leave this host.
void gp_ship_dry(gp_shipper_t *shipper);
