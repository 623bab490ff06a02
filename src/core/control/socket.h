// SPDX-License-Identifier: MIT
// The socket of this process, and the file by which it is found. Control's thread only, but for remove and forget.
#pragma once

#include <stdbool.h>

#include "base/kept_fd.h"

extern gp_kept_fd_t gp_control_listener; // fd -1 = there is none

// Make the socket, in the place of an older one. Returns 0, or a negative errno value: there is none.
int gp_control_socket_open(void);

// Remove the file. Signals: safe.
void gp_control_socket_remove(void);

// In a forked child: it is the parent's.
void gp_control_socket_forget(void);
