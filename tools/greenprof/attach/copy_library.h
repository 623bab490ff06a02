// SPDX-License-Identifier: MIT
// The core, carried into a process without a file of it: in a container, with another root directory.
//
// Model: the new thread (borrow_thread.h) makes a file without a name (memfd_create), and writes the library's bytes
// into it, from memory that this process fills. The thread seals the file, and loads it from its own /proc. The
// descriptor is closed then; the mappings are those of "/memfd:libgreenprof-core.so.0". This process opens nothing of
// the other's.
#pragma once

#include "borrow_thread.h"

enum { GP_CARRIED_PATH_SIZE = 64 };

typedef struct gp_copy_library {
    int fd; // the process' own, of the file; -1 = none
    char path[GP_CARRIED_PATH_SIZE];
} gp_copy_library_t;

// As which a carried core is mapped: the beginning of a file name, as gp_target_module_named() takes it.
#define GP_CARRIED_NAME "memfd:libgreenprof-core.so"

// Give the process a copy of the file `core`, and the path by which it can load it.
//   subject: for messages.
// Returns 0 or EXIT_FAILED, with a message; gp_copy_library_close() in either case.
int gp_carry(gp_copy_library_t *carried, gp_borrow_thread_t *borrowed, const char *core, const char *subject);
void gp_copy_library_close(gp_copy_library_t *carried, gp_borrow_thread_t *borrowed);
