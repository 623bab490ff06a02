// SPDX-License-Identifier: MIT
// Asking a live process to switch its profiling (live/control_protocol.h).
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "live/control_protocol.h"

// A request of a command.
gp_control_request_t gp_control_request(enum gp_control_command command);

// Has the process a socket to be asked by?
struct gp_target;
bool gp_control_is_there(const struct gp_target *target);

// Ask, and wait for the answer.
//   subject: for messages.
//   fd:      of the rows, -1 = none came; the caller closes it. NULL where none is expected.
// Returns 0 or EXIT_FAILED, with a message. The process' own objection is in reply->error.
int gp_control_ask(pid_t pid, const char *subject, const gp_control_request_t *request, gp_control_reply_t *reply,
                   int *fd);

// Say what reply->error means. Returns EXIT_FAILED.
int gp_control_refused(const char *subject, const gp_control_request_t *request, const gp_control_reply_t *reply);

// The losses that the counters show: the drops, without signals not meant to be samples.
uint64_t gp_control_lost(const gp_control_reply_t *reply);
