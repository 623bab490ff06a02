// SPDX-License-Identifier: MIT
#include "consumer/backends/redis/url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS 1000000000u
#define OSPROFILER                                                                                                     \
    "redissentinel://" // its driver has the master's name from a configuration file; this is the standard

// Split a text in two at a character; returns what is behind it, or NULL.
static char *url_split(char *text, char at)
{
    char *found = strchr(text, at);
    if (found == NULL)
        return NULL;
    *found = '\0';
    return found + 1;
}

static bool url_is_number(const char *text, unsigned long most)
{
    size_t len = strlen(text);
    return len > 0 && len < 7 && strspn(text, "0123456789") == len && strtoul(text, NULL, 10) <= most;
}

static bool url_read_place(gp_redis_place_t *place, char *text, const char *standard_port)
{
    char *port;
    place->host = text;
    if (text[0] == '[') {
        place->host = text + 1;
        char *behind = url_split(text, ']');
        if (behind == NULL || (behind[0] != '\0' && behind[0] != ':'))
            return false;
        port = behind[0] == ':' ? behind + 1 : NULL;
    } else {
        port = url_split(text, ':');
    }
    place->port = port != NULL ? port : standard_port;
    return place->host[0] != '\0' && url_is_number(place->port, 65535);
}

static bool url_read_places(gp_redis_url_t *redis, char *text, bool is_sentinel)
{
    for (char *next; text != NULL; text = next) {
        next = is_sentinel ? url_split(text, ',') : NULL;
        if (redis->place_count == GP_REDIS_HOSTS_MAX ||
            !url_read_place(&redis->places[redis->place_count++], text, is_sentinel ? "26379" : "6379"))
            return false;
    }
    return true;
}

static bool url_read_user(gp_redis_url_t *redis, char *user)
{
    char *password = url_split(user, ':');
    redis->password = password != NULL ? password : user;
    redis->user = password != NULL && user[0] != '\0' ? user : NULL;
    return gp_url_decode(user) && (password == NULL || gp_url_decode(password));
}

static bool url_is_osprofilers(const char *url)
{
    return strncmp(url, OSPROFILER, strlen(OSPROFILER)) == 0;
}

static bool url_read_options(gp_redis_url_t *redis, const char *url)
{
    static const char *const options[] = {"timeout", "ttl", NULL}, *const osprofilers[] = {"sentinel_service_name",
                                                                                           NULL};
    char value[GP_URL_MAX];
    uint64_t ttl_ns = 0;
    redis->timeout_ns = TIMEOUT_NS;
    if (url_is_osprofilers(url)) {
        if (!gp_url_option(url, osprofilers[0], redis->name))
            strcpy(redis->name, "mymaster");
        return gp_url_options_are(url, osprofilers);
    }
    if (!gp_url_options_are(url, options) ||
        (gp_url_option(url, "timeout", value) &&
         (!gp_url_duration(value, &redis->timeout_ns) || redis->timeout_ns > 10ull * TIMEOUT_NS)) ||
        (gp_url_option(url, "ttl", value) && (!gp_url_duration(value, &ttl_ns) || ttl_ns < 1000000000u)))
        return false;
    redis->ttl_s = ttl_ns / 1000000000u;
    return true;
}

int gp_redis_url(gp_redis_url_t *redis, const char *url, bool is_sentinel)
{
    *redis = (gp_redis_url_t){0};
    if (gp_url_rest(url, redis->text) < 3 || strncmp(redis->text, "//", 2) != 0 || !url_read_options(redis, url))
        return -EINVAL;
    char *at = redis->text + 2, *host = strrchr(at, '@'), *path = url_split(host != NULL ? host : at, '/');
    if (host != NULL) {
        *host++ = '\0';
        if (!url_read_user(redis, at))
            return -EINVAL;
        at = host;
    }
    if (is_sentinel && url_is_osprofilers(url)) {
        redis->master = redis->name;
    } else if (is_sentinel) {
        redis->master = path;
        if (path == NULL || path[0] == '\0' || path[0] == '/')
            return -EINVAL;
        path = url_split(path, '/');
    }
    redis->db = path != NULL && path[0] != '\0' ? path : NULL;
    if (redis->db != NULL && !url_is_number(redis->db, 99999))
        return -EINVAL;
    return url_read_places(redis, at, is_sentinel) ? 0 : -EINVAL;
}
