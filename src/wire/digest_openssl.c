// SPDX-License-Identifier: MIT
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "wire/digest.h"

bool gp_digest_has(gp_mac_t mac)
{
    (void)mac;
    return true;
}

bool gp_digest(gp_mac_t mac, const gp_key_t *key, const char *text, size_t len, unsigned char out[GP_DIGEST_MAX])
{
    const EVP_MD *sum = mac == GP_MAC_SHA1 ? EVP_sha1() : EVP_sha256();
    unsigned out_len = 0;
    return HMAC(sum, key->bytes, (int)key->len, (const unsigned char *)text, len, out, &out_len) != NULL &&
           out_len == (mac == GP_MAC_SHA1 ? 20 : 32);
}
