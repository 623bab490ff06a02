// SPDX-License-Identifier: MIT
// A capture that is followed for one destination.
#pragma once

#include <sys/types.h>

#include "ship/rows/capture_names.h"
#include "ship/rows/labels.h"

// Critical paths are made of captures of at most that many bytes: all of one is summed up in memory for it.
#define GP_FOLLOWED_PATHS_MAX (UINT64_C(256) << 20)

typedef struct gp_one_capture {
    const char *path; // in `names`
    gp_arena_t names; // a waiting group may have a name from before a renaming
    int fd;           // -1: not open
    dev_t device;     // of the file that was opened
    ino_t inode;
    uint64_t size;     // when it was last looked at
    uint64_t id;       // of the capture: a hash of its header
    uint64_t start_ns; // of the capture: CLOCK_REALTIME
    uint64_t at;       // the byte up to which all has arrived
    bool is_done;      // ended, and all of it has arrived; or no capture
    bool is_looked_at; // for its end, where nothing is new
    bool is_seen;      // in this round
    bool has_no_name;  // another file has the path
    bool is_awaited;   // was named, is missing, and was told to be
    bool is_in_group;  // which is on its way
    bool is_asked_for; // the store was asked for its pieces
    gp_capture_names_t known;
    gp_labels_t labels; // of its process
    size_t metas_used;  // of which they were made
    gp_row_process_t process;
} gp_one_capture_t;

// Open the file and read its header. Returns 0; -EAGAIN where there is none yet; another negative errno value and what
// is wrong.
int gp_one_capture_open(gp_one_capture_t *followed, char error[GP_READER_ERROR_SIZE]);

// Make `process` of what the capture says by now.
//   own:    labels of this process.
//   tenant: stands above a label; NULL = the label's.
// Returns 0 or -ENOMEM.
int gp_one_capture_process(gp_one_capture_t *followed, const gp_labels_t *own, const char *tenant, bool with_info);

// Find out whether it has ended, and has requests, where all of it was sent by a process before.
void gp_one_capture_look(gp_one_capture_t *followed);

// Is nothing but the critical paths of its requests left?
bool gp_one_capture_has_paths(const gp_one_capture_t *followed);

// Close the file, and keep its identity.
void gp_one_capture_close(gp_one_capture_t *followed);
void gp_one_capture_free(gp_one_capture_t *followed);
