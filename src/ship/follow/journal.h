// SPDX-License-Identifier: MIT
// Acknowledgements of destinations, in one small file, ship.journal.
//
// Model: for each (destination, capture) the byte up to which everything has arrived, and for each destination the one
// group of pieces that is on its way. A line is appended, and is on the disk, before the group is sent, and another
// when it has arrived. So after a crash at most one group is in doubt: the destination is asked. Lines have a checksum:
// a torn last one does not count, and behind a damaged one the journal begins anew. The file is written anew when most
// of it is of the past. No clock decides which captures are forgotten: beyond GP_JOURNAL_CAPTURES, the ones looked at
// longest ago go, and then the journal is as new: it knows nothing of before. A single process at a time has it.
//
// Order of calls: open -> any -> close. Threads: one at a time. Signals: not safe.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ship/send/url.h"

typedef struct gp_journal gp_journal_t;

typedef struct gp_journal_piece {
    uint64_t capture, from, to;
} gp_journal_piece_t;

enum { GP_JOURNAL_CAPTURES = 1 << 18, GP_JOURNAL_GROUP_MAX = 4096 };

// Make the folder where it is missing, and read the journal. Returns 0; -EBUSY where another process has it; another
// negative errno value; and what is wrong.
int gp_journal_open(gp_journal_t **journal, const char *folder, char error[GP_FLEET_ERROR_SIZE]);

// When it was begun, or has forgotten anything, seconds since 1970: it knows nothing of before. 0 = that is not known,
// and it is old.
uint64_t gp_journal_since_s(const gp_journal_t *journal);

// The byte of a capture up to which all has arrived. The capture counts as looked at.
uint64_t gp_journal_arrived(gp_journal_t *journal, uint64_t destination, uint64_t capture);

// The group on its way. Returns its pieces, valid until begin or end; NULL: there is none.
const gp_journal_piece_t *gp_journal_pending(const gp_journal_t *journal, uint64_t destination, size_t *count);

// Write down that a group goes out; has arrived. On failure (a full disk) nothing is changed: the caller tries again
// later, and sends nothing before `begin` has returned 0.
int gp_journal_begin(gp_journal_t *journal, uint64_t destination, const gp_journal_piece_t *pieces, size_t count);
int gp_journal_end(gp_journal_t *journal, uint64_t destination);

// NULL is allowed.
void gp_journal_close(gp_journal_t *journal);
