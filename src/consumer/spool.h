// SPDX-License-Identifier: MIT
// Spans that a backend could not take, kept in a bounded file until it can.
//
// Model: a file for each consumer and process, made when it is first needed, locked (flock) as long as the process
// lives, and removed when all of it was sent. Its header says how far it was sent, so a process that ends leaves its
// unsent spans, and another one for the same URL adopts the file. Spans carry a check: one that a crash tore is left
// out. The file is cut back when all of it was sent; until then it grows to its limit.
//
// The program may close descriptors that it does not know and have files of its own by their numbers: each is looked at
// before it is used, and the file is opened again by its name.
//
// Threads: the consumer's. Signals: not safe.
#pragma once

#include "base/kept_fd.h"
#include "consumer/packed_span.h"
#include "model/identity.h"

typedef struct gp_spool {
    const char *path; // of the directory; NULL: nothing is spooled
    uint64_t url_hash, limit_bytes;
    gp_identity_t identity; // of the process that made its spans
    gp_kept_fd_t directory, file;
    uint64_t sent_at, end; // bytes; what is between them waits
    uint64_t spans;        // that wait; of an adopted one, not known
    char name[128];
} gp_spool_t;

void gp_spool_begin(gp_spool_t *spool, const char *directory, const char *url, uint64_t limit_bytes,
                    const gp_identity_t *identity);

// Keep a span. Returns 0; -ENOSPC at its limit; else why it could not be written.
int gp_spool_put(gp_spool_t *spool, gp_packed_span_t *packed);

// Read what is next into `into`, whole spans. Returns the bytes, 0 where nothing is left.
size_t gp_spool_read(gp_spool_t *spool, void *into, size_t room);

// The first `bytes` of them, `spans` spans, were sent.
void gp_spool_take(gp_spool_t *spool, size_t bytes, size_t spans);

// Open what an earlier process left for the same URL. Returns whether there is such a file.
bool gp_spool_adopt(gp_spool_t *spool);

// Close it; an empty one is removed.
void gp_spool_end(gp_spool_t *spool);

// In a forked child: close, but leave the file to the parent.
void gp_spool_abandon(gp_spool_t *spool);
