// SPDX-License-Identifier: MIT
// The command's own keys: of GREENPROF_HMAC_KEYS, or of the file GREENPROF_HMAC_KEYS_FILE, as in the processes that ask
// for them. Never an argument: ps shows those.
#pragma once

#include "base/key_list.h"
#include "live_target.h"

// The key that signs. *key is NULL where none is set. Returns 0 or EXIT_FAILED, with a message.
int gp_live_key(const gp_key_t **key);

// Would a process, not attached to yet, accept the key, where its environment sets keys? Nothing of it is changed for
// this.
// Returns 0 or EXIT_FAILED, with a message.
int gp_live_key_fits(const gp_target_t *target, const char *subject);

// The meaning of -ENOKEY, -EKEYREJECTED and -EKEYREVOKED in a reply; NULL: another error.
const char *gp_live_key_reason(int error);
