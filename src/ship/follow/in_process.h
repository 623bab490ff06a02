// SPDX-License-Identifier: MIT
// The shipper within the program whose capture it is: libgreenprof-ship, which libgreenprof loads when a consumer's URL
// is one of a destination. Nothing else of it is exported.
//
// Model: the captures of a process, and of its children by fork, are in one folder; in it is a folder "to-ID" for each
// destination, with the journal. Captures left there when a process ends are sent by the next one for the same
// destination. Order of calls: check -> run, on a thread of its own. Signals: not safe; all are blocked in `run`.
#pragma once

#include "ship/follow/shipper.h"

typedef struct gp_in_process {
    size_t size;         // sizeof(gp_in_process_t)
    const char *url;     // with the options of a consumer
    const char *spool;   // where the folders are
    const char *folder;  // of this process: SPOOL/ship-PID-TIME
    const char *capture; // the one to follow; NULL = all in `folder`
    gp_ship_state_t *state;
} gp_in_process_t;

enum { GP_HERE_ERROR_SIZE = 256 };

// Is the URL one of a destination? Connects to nothing.
//   id: set, of the destination; error: what is wrong
// Returns 0, -EINVAL, -ENOMEM.
typedef int prof_ship_check_t(const char *url, uint64_t *id, char error[GP_HERE_ERROR_SIZE]);

// Send captures that earlier processes left, then follow until told to finish or to stop. Arrived captures are removed.
// Returns 0; -EBUSY where another process ships from the folder; -EAGAIN where something is left.
typedef int prof_ship_run_t(const gp_in_process_t *here);

#define GP_SHIP_LIBRARY "libgreenprof-ship.so.0"
