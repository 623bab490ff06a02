// SPDX-License-Identifier: MIT
// HMAC (RFC 2104), in a variant a file: by OpenSSL's libcrypto, or the library's own, which has SHA-256 only.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/key_list.h"
#include "wire/keys.h"

enum { GP_DIGEST_MAX = 64 };

// Is there one with this sum in the variant that was built?
bool gp_digest_has(gp_mac_t mac);

// Returns false where it cannot be made.
bool gp_digest(gp_mac_t mac, const gp_key_t *key, const char *text, size_t len, unsigned char out[GP_DIGEST_MAX]);
