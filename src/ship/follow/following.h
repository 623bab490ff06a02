// SPDX-License-Identifier: MIT
// The captures followed for one destination: of the named folders and files, as they come, grow, are put aside under
// another name, and go.
#pragma once

#include "ship/follow/followed.h"
#include "ship/follow/journal.h"
#include "ship/follow/shipper.h"

typedef struct gp_following {
    const gp_ship_options_t *options;
    gp_journal_t *journal; // NULL in a dry run
    gp_symbolizer_t *symbolizer;
    uint64_t destination; // in the journal
    gp_followed_t **captures;
    size_t count, capacity;
    bool has_failed; // something that was named could not be read
} gp_following_t;

// Is it a name that captures have?
bool gp_following_is_capture(const char *name);

// Look for what is new, and how far the others have grown.
void gp_following_look_around(gp_following_t *following);

// The capture with this id, open or done; NULL = none.
gp_followed_t *gp_following_find(const gp_following_t *following, uint64_t id);

void gp_following_free(gp_following_t *following);
