// SPDX-License-Identifier: MIT
// The captures followed for one destination: of the named folders and files, as they come, grow, are put aside under
// another name, and go.
#pragma once

#include "ship/follow/journal.h"
#include "ship/follow/one_capture.h"
#include "ship/follow/shipper.h"

typedef struct gp_captures_watched {
    const gp_ship_options_t *options;
    gp_journal_t *journal; // NULL in a dry run
    gp_symbolizer_t *symbolizer;
    uint64_t destination; // in the journal
    gp_one_capture_t **captures;
    size_t count, capacity;
    bool has_failed; // something that was named could not be read
} gp_captures_watched_t;

// Is it a name that captures have?
bool gp_captures_watched_is_capture(const char *name);

// Look for what is new, and how far the others have grown.
void gp_captures_watched_look_around(gp_captures_watched_t *following);

// The capture with this id, open or done; NULL = none.
gp_one_capture_t *gp_captures_watched_find(const gp_captures_watched_t *following, uint64_t id);

void gp_captures_watched_free(gp_captures_watched_t *following);
