// SPDX-License-Identifier: MIT
// redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] and redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT][,...]/NAME[/DB]; as
// OSProfiler has the latter, redissentinel://[:PASSWORD@]HOST[:PORT][/DB][?sentinel_service_name=NAME].
#pragma once

#include "consumer/url.h"

enum { GP_REDIS_HOSTS_MAX = 8 };

typedef struct gp_redis_place {
    const char *host, *port; // in `text`, or constant
} gp_redis_place_t;

typedef struct gp_redis_url {
    char text[GP_URL_MAX];
    const char *user, *password; // decoded; NULL = none
    const char *master, *db;     // NULL: no sentinel; database 0
    gp_redis_place_t places[GP_REDIS_HOSTS_MAX];
    size_t place_count;
    char name[GP_URL_MAX]; // for `master`
    uint64_t timeout_ns;   // of one exchange
    uint64_t ttl_s;        // after which the server forgets a trace; 0 = never, as with OSProfiler
} gp_redis_url_t;

// Read a URL. Returns 0 or -EINVAL.
int gp_redis_url(gp_redis_url_t *redis, const char *url, bool is_sentinel);
