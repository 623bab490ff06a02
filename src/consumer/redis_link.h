// SPDX-License-Identifier: MIT
// A connection to a Redis server or a Sentinel, that trusts neither its speed nor its words: each exchange has a
// deadline as a whole, and a reply a bound. Not by libhiredis: hosts have other versions of it, and its time limits are
// of single reads.
//
// Threads: one at a time. Signals: not safe. Source: Redis serialization protocol specification (RESP2).
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "consumer/bytes.h"

enum { GP_REDIS_TEXT_MAX = 256, GP_REDIS_INPUT = 16 << 10 };

typedef struct gp_redis_reply {
    char type;                      // '+', '-', ':' or '$'; '*': of two texts; '0': none (nil)
    int64_t number;                 // ':'
    char text[GP_REDIS_TEXT_MAX];   // cut
    char second[GP_REDIS_TEXT_MAX]; // '*'
} gp_redis_reply_t;

typedef struct gp_redis_link {
    int fd; // -1: not connected
    dev_t device;
    ino_t inode; // the host may close any descriptor, and open another one of that number
    size_t len;
    char input[GP_REDIS_INPUT]; // what was not understood yet
} gp_redis_link_t;

// Connect. Returns 0 or a negative errno value; -EHOSTUNREACH where the name is not known.
int gp_redis_connect(gp_redis_link_t *link, const char *host, const char *port, uint64_t deadline_ns);
void gp_redis_disconnect(gp_redis_link_t *link);

// Is it connected, as far as can be seen here?
bool gp_redis_is_connected(const gp_redis_link_t *link);

// Send a request, and hand each of `count` replies to `take`, which returns whether to go on.
// Returns 0, or a negative errno value: -ETIMEDOUT, -EPROTO (no RESP), -ECONNRESET, ...; the link is closed then.
int gp_redis_exchange(gp_redis_link_t *link, const gp_bytes_t *request, size_t count, uint64_t deadline_ns,
                      bool (*take)(void *context, const gp_redis_reply_t *reply), void *context);

// Read a reply. Returns the bytes it has; 0: it is not whole; -EPROTO: it is none.
ssize_t gp_redis_read(const char *input, size_t len, gp_redis_reply_t *reply);

// A command: "*N", then its words.
void gp_redis_command(gp_bytes_t *request, size_t words);
void gp_redis_word(gp_bytes_t *request, const char *word, size_t len);

uint64_t gp_redis_now(void); // CLOCK_MONOTONIC, ns
