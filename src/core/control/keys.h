// SPDX-License-Identifier: MIT
// The keys that sign requests on the socket: from GREENPROF_HMAC_KEYS or GREENPROF_HMAC_KEYS_FILE, as they were when
// control began, or as the program has set them since (prof_hmac_keys()).
//
// Model: the setter of keys makes a list, in a mapping of its own that core dumps leave out, and hands it over by one
// pointer; control's thread takes the list at its next look at a request, and unmaps the former one. Where keys were
// asked for and none can be had, every request is refused: what was to be restricted is not free to all.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "live/control_protocol.h"

// Take those of the environment, if it asks for some. At load, and where an attachment begins.
void gp_control_keys_read(void);

// The program sets its own, as prof_hmac_keys() does; an empty text: none any more. Threads: any. Signals: not safe.
void gp_control_keys_set(const char *text, size_t len);

// May this be obeyed? Control's thread only.
//   nonce: that of its connection, NULL = the asker has had none.
// Returns 0, -ENOKEY, -EKEYREJECTED or -EKEYREVOKED (live/control_protocol.h).
int gp_control_keys_check(const gp_control_request_t *request, const uint8_t *nonce);

// Forget those of the environment: an attachment ends. Control's thread only.
void gp_control_keys_forget(void);
