// SPDX-License-Identifier: MIT
// A connection to a Redis server or a Sentinel, which trusts neither its speed nor its words: each exchange has a
// deadline as a whole, and a reply a bound. hiredis makes commands and reads replies; not the connection, as its time
// limits are of single reads, and descriptors must be where the host's are not.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "consumer/backends/plugin.h"
#include "consumer/bytes.h"

enum { GP_REDIS_TEXT_MAX = 256 };

typedef struct gp_redis_reply {
    int type;                         // REDIS_REPLY_STRING, ...; an array is one of two texts at most
    int64_t number;                   // of an integer
    char texts[2][GP_REDIS_TEXT_MAX]; // cut
} gp_redis_reply_t;

typedef struct gp_redis_link { // zero-initialized = not connected
    const gp_backend_host_t *host;
    int fd; // of `reader`
    dev_t device;
    ino_t inode;         // the host may close any descriptor, and open another one of that number
    redisReader *reader; // NULL: not connected
    gp_redis_reply_t reply;
} gp_redis_link_t;

// Connect. Returns 0 or a negative errno value; -EHOSTUNREACH where the name is not known.
int gp_redis_connect(gp_redis_link_t *link, const char *host, const char *port, uint64_t deadline_ns);
void gp_redis_disconnect(gp_redis_link_t *link);

// In a forked child: close the descriptor, nothing else.
void gp_redis_abandon(gp_redis_link_t *link);

// Is it connected, as far as can be seen here?
bool gp_redis_is_connected(const gp_redis_link_t *link);

// Add a command. lens: NULL = the words end with NUL.
void gp_redis_command(gp_reply_bytes_t *request, int count, const char **words, const size_t *lens);

// Send a request, and hand each of `count` replies to `take`, which returns whether to go on.
// Returns 0, or a negative errno value: -ETIMEDOUT, -EPROTO (no RESP), -ECONNRESET, ...; the link is closed then.
int gp_redis_exchange(gp_redis_link_t *link, const gp_reply_bytes_t *request, size_t count, uint64_t deadline_ns,
                      bool (*take)(void *context, const gp_redis_reply_t *reply), void *context);
