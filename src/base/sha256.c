// SPDX-License-Identifier: MIT
#include "base/sha256.h"

#include <string.h>

enum { ROUNDS = 64, LENGTH_AT = GP_SHA256_BLOCK_BYTES - 8, INNER_PAD = 0x36, OUTER_PAD = 0x5c };

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t sha256_turn(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static uint32_t sha256_read_word(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void sha256_write_word(uint8_t *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(word >> (24 - 8 * i));
}

static void sha256_expand(const uint8_t *block, uint32_t words[ROUNDS])
{
    for (int i = 0; i < 16; i++)
        words[i] = sha256_read_word(block + 4 * i);
    for (int i = 16; i < ROUNDS; i++) { // -Wanalyzer-use-of-uninitialized-value: the loop before wrote 16 of them
        uint32_t early = words[i - 15], late = words[i - 2];
        words[i] = words[i - 16] + (sha256_turn(early, 7) ^ sha256_turn(early, 18) ^ early >> 3) + words[i - 7] +
                   (sha256_turn(late, 17) ^ sha256_turn(late, 19) ^ late >> 10);
    }
}

static void sha256_take_block(gp_sha256_t *sum, const uint8_t *block)
{
    uint32_t words[ROUNDS], s[8];
    sha256_expand(block, words);
    memcpy(s, sum->state, sizeof(s));
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t one = s[7] + (sha256_turn(s[4], 6) ^ sha256_turn(s[4], 11) ^ sha256_turn(s[4], 25)) + choice +
                       constants[i] + words[i];
        uint32_t other = (sha256_turn(s[0], 2) ^ sha256_turn(s[0], 13) ^ sha256_turn(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof(s[0]));
        s[4] += one;
        s[0] = one + other;
    }
    for (int i = 0; i < 8; i++)
        sum->state[i] += s[i];
}

void gp_sha256_begin(gp_sha256_t *sum)
{
    *sum = (gp_sha256_t){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void gp_sha256_add(gp_sha256_t *sum, const void *bytes, size_t len)
{
    for (const uint8_t *at = bytes; len > 0;) {
        size_t used = sum->len % sizeof(sum->block), room = sizeof(sum->block) - used, part = len < room ? len : room;
        memcpy(sum->block + used, at, part);
        sum->len += part;
        at += part;
        len -= part;
        if (part == room)
            sha256_take_block(sum, sum->block);
    }
}

void gp_sha256_end(gp_sha256_t *sum, uint8_t out[GP_SHA256_BYTES])
{
    static const uint8_t padding[GP_SHA256_BLOCK_BYTES] = {0x80};
    uint64_t bits = sum->len * 8;
    size_t used = sum->len % sizeof(sum->block);
    uint8_t length[8];
    gp_sha256_add(sum, padding, (used < LENGTH_AT ? LENGTH_AT : LENGTH_AT + sizeof(sum->block)) - used);
    sha256_write_word(length, (uint32_t)(bits >> 32));
    sha256_write_word(length + 4, (uint32_t)bits);
    gp_sha256_add(sum, length, sizeof(length));
    for (int i = 0; i < 8; i++)
        sha256_write_word(out + 4 * i, sum->state[i]);
}

void gp_hmac_begin(gp_hmac_t *mac, const void *key, size_t key_len)
{
    uint8_t inner_pad[GP_SHA256_BLOCK_BYTES] = {0};
    gp_sha256_begin(&mac->inner);
    if (key_len > sizeof(inner_pad)) {
        gp_sha256_add(&mac->inner, key, key_len);
        gp_sha256_end(&mac->inner, inner_pad);
        gp_sha256_begin(&mac->inner);
    } else {
        memcpy(inner_pad, key, key_len);
    }
    for (size_t i = 0; i < sizeof(inner_pad); i++) {
        mac->outer_pad[i] = inner_pad[i] ^ OUTER_PAD;
        inner_pad[i] ^= INNER_PAD;
    }
    gp_sha256_add(&mac->inner, inner_pad, sizeof(inner_pad));
    explicit_bzero(inner_pad, sizeof(inner_pad));
}

void gp_hmac_add(gp_hmac_t *mac, const void *bytes, size_t len)
{
    gp_sha256_add(&mac->inner, bytes, len);
}

void gp_hmac_end(gp_hmac_t *mac, uint8_t out[GP_SHA256_BYTES])
{
    gp_sha256_end(&mac->inner, out);
    gp_sha256_begin(&mac->inner);
    gp_sha256_add(&mac->inner, mac->outer_pad, sizeof(mac->outer_pad));
    gp_sha256_add(&mac->inner, out, GP_SHA256_BYTES);
    gp_sha256_end(&mac->inner, out);
    explicit_bzero(mac, sizeof(*mac));
}

bool gp_hmac_is_equal(const uint8_t one[GP_SHA256_BYTES], const uint8_t other[GP_SHA256_BYTES])
{
    volatile uint8_t differ = 0;
    for (int i = 0; i < GP_SHA256_BYTES; i++)
        differ = (uint8_t)(differ | (one[i] ^ other[i]));
    return differ == 0;
}
