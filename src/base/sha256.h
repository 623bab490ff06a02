// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for what is preloaded and may need nothing but libc.
//
// For texts of some KB: about 5 ns a byte. Threads: any. Signals: safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_SHA256_BYTES = 32, GP_SHA256_BLOCK_BYTES = 64 };

typedef struct gp_sha256 {
    uint32_t state[8];
    uint64_t len;                         // so far
    uint8_t block[GP_SHA256_BLOCK_BYTES]; // its last len % 64 bytes
} gp_sha256_t;

void gp_sha256_begin(gp_sha256_t *sum);
void gp_sha256_add(gp_sha256_t *sum, const void *bytes, size_t len);
void gp_sha256_end(gp_sha256_t *sum, uint8_t out[GP_SHA256_BYTES]);

// The same three steps, with a key.
typedef struct gp_hmac {
    gp_sha256_t inner;
    uint8_t outer_pad[GP_SHA256_BLOCK_BYTES];
} gp_hmac_t;

void gp_hmac_begin(gp_hmac_t *mac, const void *key, size_t key_len);
void gp_hmac_add(gp_hmac_t *mac, const void *bytes, size_t len);
void gp_hmac_end(gp_hmac_t *mac, uint8_t out[GP_SHA256_BYTES]); // nothing of the key is left in it

// Are two codes the same? In a time that does not tell where they differ.
bool gp_hmac_is_equal(const uint8_t one[GP_SHA256_BYTES], const uint8_t other[GP_SHA256_BYTES]);
