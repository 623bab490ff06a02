// SPDX-License-Identifier: MIT
// Signing what a process is asked (live/control_protocol.h): HMAC-SHA256 of a word for what it is, the nonce, and the
// request's bytes before its code. The nonce is the process' own, of this connection: what was recorded is good for no
// other. Threads: any. Signals: not safe.
#pragma once

#include "base/key_list.h"
#include "live/control_protocol.h"

void gp_control_sign(const gp_key_t *key, const uint8_t nonce[GP_CONTROL_NONCE_BYTES], gp_control_request_t *request);

// Did one of the keys sign it? All of them are tried, each in the same time.
bool gp_control_is_signed(const gp_key_list_t *keys, const uint8_t nonce[GP_CONTROL_NONCE_BYTES],
                          const gp_control_request_t *request);
