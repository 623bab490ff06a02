// SPDX-License-Identifier: MIT
// The keys that sign contexts: HMAC (RFC 2104) by OpenSSL where it is there (digest.h).
//
// They lie in a mapping of their own that core dumps leave out, and nowhere else. Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/key_list.h"

typedef enum gp_mac { GP_MAC_SHA1, GP_MAC_SHA256 } gp_mac_t;

enum { GP_MAC_HEX_MAX = 2 * 32 + 1 };

// Set the keys of a list (base/key_list.h). Returns 0; -E2BIG: the keys are then unchanged; -ENOMEM; -ENOTSUP where
// OpenSSL has no such HMAC.
int gp_keys_set(const char *text, size_t len);

// The same, of a file. Returns what open() and read() say, too.
int gp_keys_set_file(const char *path);

// Is there a key? Cost: one load.
bool gp_keys_exist(void);

// Sign a text with the first key, as lower-case hex. Returns 0, -ENOKEY, -EIO.
int gp_keys_sign(gp_mac_t mac, const char *text, size_t len, char hex[GP_MAC_HEX_MAX]);

// Did one of the keys sign it? All of them are tried, each in the same time.
//   hex: [hex_len], lower-case; anything else is no signature.
bool gp_keys_verify(gp_mac_t mac, const char *text, size_t len, const char *hex, size_t hex_len);
