// SPDX-License-Identifier: MIT
// Captures to destinations: follows files, makes pieces of new parts, sends them, and remembers which have arrived.
//
// Model: each destination has its own place in each capture, so that none holds up another. A round looks into the
// folders, takes a piece of each capture that has grown, writes down the group, sends it, writes down its arrival. A
// group that failed is sent again before anything else.
//
// Threads: one. Signals: not safe; `order` is looked at between steps.
// Memory: GP_KNOWN_MAX bytes a capture at most, symbols (GP_SYMBOLIZER_KEPT_MAX) and one group. Disk: the journal.
#pragma once

#include <stdint.h>

#include "ship/send/ship_options.h"
#include "ship/send/url.h"

// Ship until it is told to finish or to stop, or, with `once`, until all that is there has arrived. Returns 0; 1 when
// something failed for good (it was said), 2 for a destination that has no meaning, GP_SHIP_BUSY where another process
// has the journal.
int gp_ship(const gp_ship_options_t *options);

enum { GP_SHIP_BUSY = 3 };

// The identity of a destination: its place and the owner of its rows, no password, no way to get there.
uint64_t gp_ship_destination_id(const gp_fleet_url_t *url);
