// SPDX-License-Identifier: MIT
// Asking a live process for a census.
#pragma once

#include <sys/types.h>

// Ask, and wait for the answer.
//   subject: for messages.
// Returns a descriptor of the census, a capture file that has no name any more; -1 with a message.
int gp_live_census(pid_t pid, const char *subject);
