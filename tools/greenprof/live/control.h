// SPDX-License-Identifier: MIT
// Functions that the commands for a running process share.
#pragma once

#include <sys/types.h>

#include "export/write/json_text.h"
#include "live/control_protocol.h"
#include "options.h"

// The process id that is the operand. Returns 0 or EXIT_USAGE, with a message.
int gp_control_parse_pid(const gp_arguments_t *arguments, pid_t *pid);

// Is it a process: a number, or a name that a process of this user has; and no file?
bool gp_control_is_process(const char *operand);

// The request that starts a capture, as -o, -F and --clock say. Without -o a process that was started without greenprof
// writes PID.greenprof in this directory (0 = it was started with greenprof, and knows where).
int gp_control_start_request(const gp_arguments_t *arguments, pid_t attached, gp_control_request_t *request);

// Say on standard error where a kill may take more than --flush says.
void gp_control_warn_of_rings(const gp_control_reply_t *reply);

// "12 samples: greenprof report FILE"
void gp_control_print_capture(const gp_control_reply_t *reply, const char *what);

// Have a process write what it has so far, and open its capture.
//   path: set to a name that opens it, as long as *fd, which the caller closes, is open.
// Returns 0 or an exit status, with a message.
int gp_control_open_capture(const gp_arguments_t *arguments, char path[GP_CONTROL_PATH_SIZE], int *fd);

// An enum gp_control_state in words.
const char *gp_control_state_name(uint32_t state);

// Keys that both status and top have.
void gp_control_json_state(gp_json_t *json, const gp_control_reply_t *reply);
