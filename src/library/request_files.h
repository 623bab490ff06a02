// SPDX-License-Identifier: MIT
// Files of requests' profiles: beside the spans of file consumers with the option profile=.
//
// Threads: any; where nothing is said, calls may wait for a file that is being written. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "greenprof/prof.h"
#include "greenprof/trace.h"
#include "model/identity.h"

typedef struct gp_request_file {
    prof_trace_id_t trace;
    uint64_t span;
    uint64_t duration_ns;
    bool is_asked; // whatever it took
} gp_request_file_t;

// Does a URL ask for profiles? Returns 1, 0, or -EINVAL: not in a way that is known.
int gp_request_files_asked(const char *url);

// A consumer with such a URL is opened: returns 0 or -ENOMEM; it is closed: returns whether it was the last.
int gp_request_files_add(const char *url, const gp_identity_t *identity);
bool gp_request_files_remove(const char *url);

// Write the profile of a request wherever it is wanted; it is stopped. By a thread of greenprof's own.
// Returns how many files were written, 0 where nothing wants it, or a negative errno value.
int gp_request_files_write(prof_t *profile, const gp_request_file_t *request);

// In a forked child, for which nothing is being written.
void gp_request_files_after_fork(int32_t pid);
