// SPDX-License-Identifier: MIT
// The file of a capture, lent to a process that has another root directory.
//
// Model: this process makes the file, and sends a descriptor of it along, good only for appending to the file and
// cutting it off. No descriptor of a directory is ever lent, nor one that can be read: whatever else is in a container
// can take it from the process. An existing file must be the asking user's, a regular one, and without another name.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "live/control_protocol.h"

typedef struct gp_lent {
    int fd;       // -1 = none
    bool is_made; // was not there before
    char path[GP_CONTROL_PATH_SIZE];
} gp_lent_t;

// Open the file, nothing of it is changed. A %p in its name stands for the process' own id. Returns 0 or EXIT_FAILED,
// with a message.
int gp_lend(gp_lent_t *lent, const char *path, int own_pid);

// Close the file; an unused one that was made here is removed. Nothing where fd is -1.
void gp_lent_end(gp_lent_t *lent, bool is_used);

// A descriptor of the capture that a process has sent: is it one of a file? Open that for reading. Returns -1 and errno
// where it is not.
//   fd: closed in any case.
int gp_lent_reopen(int fd);
