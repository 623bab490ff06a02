// SPDX-License-Identifier: MIT
#include "base/sha256.h"
#include "wire/digest.h"

bool gp_digest_has(gp_mac_t mac)
{
    return mac == GP_MAC_SHA256;
}

bool gp_digest(gp_mac_t mac, const gp_key_t *key, const char *text, size_t len, unsigned char out[GP_DIGEST_MAX])
{
    gp_hmac_t own;
    if (!gp_digest_has(mac))
        return false;
    gp_hmac_begin(&own, key->bytes, key->len);
    gp_hmac_add(&own, text, len);
    gp_hmac_end(&own, out);
    return true;
}
