// SPDX-License-Identifier: MIT
// Contexts seen before: one with a time and a nonce is good once.
//
// Model: a table of fixed size, in which a nonce stays as long as its context's time would be accepted, and then until
// its place is needed. Where it is full, new ones are refused: a replay never gets in, nor where the clock was set
// back. Processes forked after the first keys were set share the table: a service's worker refuses contexts seen by
// another; none waits for another. Threads: any. Signals: not safe.
#pragma once

#include <stdint.h>

enum {
    GP_NONCE_BYTES = 16,
    GP_NONCE_PLACES = 64,       // a nonce has so many
    GP_CONTEXT_AGE_MS = 60000,  // a context is good for this long
    GP_CONTEXT_AHEAD_MS = 5000, // where the sender's clock is ahead
};

// Map the table, before it is used. Returns 0 or -ENOMEM.
int gp_nonces_prepare(void);

// Note a nonce. Returns 0; -EALREADY: seen before; -ENOSPC: no room for it; -ETIME: possibly seen, as its time is from
// before the clock was set back.
//   time_ms: of its context, ms since 1970; now_ms: of this host.
int gp_nonce_take(const uint8_t nonce[GP_NONCE_BYTES], uint64_t time_ms, uint64_t now_ms);
