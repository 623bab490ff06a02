// SPDX-License-Identifier: MIT
#include "live/control_sign.h"

#include <stddef.h>
#include <string.h>

#include "base/sha256.h"

_Static_assert((int)GP_CONTROL_MAC_BYTES == (int)GP_SHA256_BYTES, "a code is one of HMAC-SHA256");
_Static_assert(sizeof(gp_control_request_t) == offsetof(gp_control_request_t, mac) + GP_CONTROL_MAC_BYTES,
               "nothing is after the code");

static void control_sign_make(const gp_key_t *key, const uint8_t *nonce, const gp_control_request_t *request,
                              uint8_t mac[GP_CONTROL_MAC_BYTES])
{
    static const char what[] = "greenprof control request"; // with its 0: what is signed with the same keys elsewhere
    gp_hmac_t hmac;
    gp_hmac_begin(&hmac, key->bytes, key->len);
    gp_hmac_add(&hmac, what, sizeof(what));
    gp_hmac_add(&hmac, nonce, GP_CONTROL_NONCE_BYTES);
    gp_hmac_add(&hmac, request, offsetof(gp_control_request_t, mac));
    gp_hmac_end(&hmac, mac);
}

void gp_control_sign(const gp_key_t *key, const uint8_t nonce[GP_CONTROL_NONCE_BYTES], gp_control_request_t *request)
{
    control_sign_make(key, nonce, request, request->mac);
}

bool gp_control_is_signed(const gp_key_list_t *keys, const uint8_t nonce[GP_CONTROL_NONCE_BYTES],
                          const gp_control_request_t *request)
{
    uint8_t mac[GP_CONTROL_MAC_BYTES];
    bool is_signed = false;
    for (size_t i = 0; i < keys->count; i++) {
        control_sign_make(&keys->list[i], nonce, request, mac);
        is_signed |= gp_hmac_is_equal(mac, request->mac);
    }
    explicit_bzero(mac, sizeof(mac));
    return is_signed;
}
