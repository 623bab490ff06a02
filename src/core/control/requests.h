// SPDX-License-Identifier: MIT
// Carrying out requests. Control's thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "live/control_protocol.h"

// Do what is asked.
//   given: a descriptor that came with it, taken from the caller; -1 = none.
//   *fd:   a descriptor for the asker, which the caller closes; -1 = none.
void gp_control_answer(const gp_control_request_t *request, int given, gp_control_reply_t *reply, int *fd);

// Reply with `error` alone and count it; with 0, reply with `nonce`.
void gp_control_answer_briefly(int error, const uint8_t nonce[GP_CONTROL_NONCE_BYTES], gp_control_reply_t *reply);

// Count what is not even answered.
void gp_control_count_refused(void);

// Stop recording, and take back what attaching has brought. Returns 0, -EPERM where nothing has attached, or
// -ETIMEDOUT.
int gp_control_detach(void);

// Was that done? The next attachment begins with no.
bool gp_control_is_to_detach(void);
void gp_control_detached(void);

// Start recording, or stop it.
void gp_control_switch(void);

// Milliseconds for which an unrecorded process is still sampled, for a look at its ledgers; -1 = it is not.
int gp_control_lease_ms(void);

// Let it be over, if it is time.
void gp_control_lease_look(void);
