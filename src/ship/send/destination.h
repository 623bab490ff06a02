// SPDX-License-Identifier: MIT
// Destinations of batches, by the scheme of the URL: each kind is a folder, which registers itself by its
// CMakeLists.txt.
//
// Model: the shipper (ship/follow/shipper.h) makes batches, one a capture, writes down that they are on their way, and
// sends them until they have arrived; then the next ones. A destination that fails gets the same batches again, also
// from another process after a crash. `again`: an earlier attempt may have arrived, in whole or in part. Where the
// store can say what it has, the destination asks first and sends only absent parts, so that nothing counts twice. A
// batch is never given up.
//
// Order of calls: open -> send... -> close. Threads: one at a time. Signals: not safe.
#pragma once

#include <stdio.h>

#include "ship/rows/row.h"
#include "ship/send/http.h"

struct gp_ship_options;

typedef struct gp_arrived_piece { // of any capture of the process
    uint64_t from, to, batch;
} gp_arrived_piece_t;

typedef struct gp_arrived {     // a store's batches of a process
    gp_arrived_piece_t *pieces; // [count], whole ones
    size_t count, capacity;
    uint64_t *open; // [open_count]: numbers of batches of which it has some rows, or all, and does not know it
    size_t open_count, open_capacity;
} gp_arrived_t;

typedef struct gp_destination_kind {
    // Returns 0; -EINVAL for an URL that has no meaning; another negative errno value. `error` says what is wrong.
    // Need not reach the other end: that may be away for now.
    int (*open)(void **destination, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE]);
    // Optional. Hands over the shipper's options, which live longer than the destination.
    void (*use)(void *destination, const struct gp_ship_options *options);
    // Returns 0 when all of it has arrived; else a negative errno value and what is wrong: -EAGAIN where the same may
    // do later (away, too busy, full), -EACCES where a key or a right is missing, -EINVAL where it was understood and
    // refused. All three are tried again, the later ones after a longer pause.
    //   batches: [count], of one or more captures: written down together, and the same ones together again.
    int (*send)(void *destination, const gp_batch_t *batches, size_t count, bool again,
                char error[GP_FLEET_ERROR_SIZE]);
    // Optional, for a lost journal. List the store's pieces of the process of a batch, none of which is on its way any
    // more; tell whether a whole batch is there. Return as `send`. The lists are the caller's to free.
    int (*arrived)(void *destination, const gp_batch_t *batch, gp_arrived_t *arrived, char error[GP_FLEET_ERROR_SIZE]);
    int (*has_arrived)(void *destination, uint64_t batch, bool *has_arrived, char error[GP_FLEET_ERROR_SIZE]);
    // Optional. Its connection, which counts bytes, and says until when the other end is to be left alone.
    gp_http_t *(*http)(const void *destination);
    // Write what of a batch would be sent, for --dry-run: tables, columns, a row of each, bytes.
    void (*describe)(void *destination, const gp_batch_t *batch, FILE *out);
    void (*close)(void *destination);
} gp_destination_kind_t;

// By scheme; NULL: there is no such.
const gp_destination_kind_t *gp_destination_find(const char *scheme);

// "clickhouse, otlp+http and slow+file": for messages. Returns `text`.
const char *gp_destination_schemes(char *text, size_t size);
