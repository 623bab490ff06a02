// SPDX-License-Identifier: MIT
// Redis, in OSProfiler's schema: a list of events a trace, and before its version 2.9 a key an event.
//
// Source: osprofiler 3.4.3, drivers/redis_driver.py; hiredis 0.14.
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "consumer/backends/redis/url.h"
#include "traces/sources.h"

enum { TIMEOUT_S = 10, LIST_PART = 1000 };

#define LIST "osprofiler_opt:"
#define KEY  "osprofiler:"

#define LOCAL "localhost"

typedef struct redis {
    redisContext *context;
    gp_events_t *events;
    gp_wanted_t wanted;
    char *error;
} redis_t;

static int read_redis_fail(const redis_t *redis, int result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int read_redis_fail(const redis_t *redis, int result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(redis->error, GP_SPANS_ERROR_SIZE, format, arguments);
    va_end(arguments);
    return result;
}

// Options are of clients that write; but for the name of a master.
static int read_redis_address(const char *url, gp_redis_url_t *address)
{
    char plain[GP_URL_MAX + sizeof(LOCAL)];
    bool is_sentinel = strncmp(url, "redis://", 8) != 0;
    bool has_name = is_sentinel && strstr(url, "?sentinel_service_name=") != NULL;
    size_t len = has_name ? strlen(url) : strcspn(url, "?");
    if (len >= GP_URL_MAX)
        return -EINVAL;
    memcpy(plain, url, len);
    plain[len] = '\0';
    char *at = strrchr(plain, '@'), *host = at != NULL ? at + 1 : strstr(plain, "://") + 3;
    if (host[0] == '\0' || host[0] == '/' || host[0] == ':') {
        memmove(host + strlen(LOCAL), host, strlen(host) + 1);
        memcpy(host, LOCAL, strlen(LOCAL));
    }
    return gp_redis_url(address, plain, is_sentinel);
}

// Send a command; the format is one of hiredis (%b: bytes and their number). Returns its reply, of the wanted type, or
// NULL and what is wrong.
static redisReply *read_redis_ask(const redis_t *redis, int type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(redis->context, format, arguments);
    va_end(arguments);
    if (reply != NULL && reply->type == type)
        return reply;
    if (reply == NULL)
        read_redis_fail(redis, -EIO, "%s",
                        redis->context->errstr[0] ? redis->context->errstr : "the connection is gone");
    else if (reply->type == REDIS_REPLY_ERROR)
        read_redis_fail(redis, -EIO, "the server says: %s", reply->str);
    else
        read_redis_fail(redis, -EIO, "the server's reply is of type %d where %d was expected", reply->type, type);
    if (reply != NULL)
        freeReplyObject(reply);
    return NULL;
}

static int read_redis_open_connection(redis_t *redis, const char *host, const char *port)
{
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    if (redis->context != NULL)
        redisFree(redis->context);
    redis->context = redisConnectWithTimeout(host, atoi(port), timeout);
    if (redis->context == NULL)
        return -ENOMEM;
    if (redis->context->err != 0)
        return read_redis_fail(redis, -ECONNREFUSED, "%s", redis->context->errstr);
    redisSetTimeout(redis->context, timeout);
    return 0;
}

static bool read_redis_is_place(const redisReply *reply)
{
    return reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
           reply->element[1]->type == REDIS_REPLY_STRING;
}

// By the first Sentinel that answers.
static int read_redis_connect_to_master(redis_t *redis, const gp_redis_url_t *address)
{
    int result = -EHOSTUNREACH;
    for (size_t i = 0; i < address->place_count && result != 0; i++) {
        result = read_redis_open_connection(redis, address->places[i].host, address->places[i].port);
        redisReply *reply =
            result == 0 ? redisCommand(redis->context, "SENTINEL get-master-addr-by-name %s", address->master) : NULL;
        if (result == 0 && reply == NULL)
            result = read_redis_fail(redis, -EIO, "%s", redis->context->errstr);
        else if (result == 0 && !read_redis_is_place(reply))
            result = read_redis_fail(redis, -EHOSTUNREACH, "the Sentinel knows no master '%s'", address->master);
        else if (result == 0)
            result = read_redis_open_connection(redis, reply->element[0]->str, reply->element[1]->str);
        if (reply != NULL)
            freeReplyObject(reply);
    }
    return result;
}

static int read_redis_connect_to(redis_t *redis, const gp_redis_url_t *address)
{
    int result = address->master != NULL
                     ? read_redis_connect_to_master(redis, address)
                     : read_redis_open_connection(redis, address->places[0].host, address->places[0].port);
    redisReply *reply;
    if (result != 0)
        return result;
    if (address->password != NULL && address->password[0] != '\0') {
        reply = address->user != NULL
                    ? read_redis_ask(redis, REDIS_REPLY_STATUS, "AUTH %s %s", address->user, address->password)
                    : read_redis_ask(redis, REDIS_REPLY_STATUS, "AUTH %s", address->password);
        if (reply == NULL)
            return -EACCES;
        freeReplyObject(reply);
    }
    reply = read_redis_ask(redis, REDIS_REPLY_STATUS, "SELECT %s", address->db != NULL ? address->db : "0");
    if (reply == NULL)
        return -EIO;
    freeReplyObject(reply);
    return 0;
}

static int read_redis_events(redis_t *redis, const redisReply *reply)
{
    int result = 0;
    for (size_t i = 0; i < reply->elements && result == 0; i++)
        if (reply->element[i]->type == REDIS_REPLY_STRING)
            result = gp_events_read(redis->events, reply->element[i]->str, (size_t)reply->element[i]->len);
    return result;
}

// A part at a time: a trace may have very many events, and is written to meanwhile, at the front.
static int read_redis_list(redis_t *redis, const char *key, size_t key_len)
{
    long long at = -1;
    for (;;) {
        redisReply *reply =
            read_redis_ask(redis, REDIS_REPLY_ARRAY, "LRANGE %b %lld %lld", key, key_len, at - LIST_PART + 1, at);
        if (reply == NULL)
            return -EIO;
        size_t count = reply->elements;
        int result = read_redis_events(redis, reply);
        freeReplyObject(reply);
        if (result != 0 || count < LIST_PART)
            return result;
        at -= LIST_PART;
    }
}

static int read_redis_key(redis_t *redis, const char *key, size_t key_len)
{
    redisReply *reply = redisCommand(redis->context, "GET %b", key, key_len);
    if (reply == NULL)
        return read_redis_fail(redis, -EIO, "%s", redis->context->errstr);
    int result = reply->type == REDIS_REPLY_STRING ? gp_events_read(redis->events, reply->str, (size_t)reply->len)
                                                   : 0; // gone, or another thing of that name
    freeReplyObject(reply);
    return result;
}

// Does the id that a key's name begins with begin as the wanted one does?
static bool read_redis_is_wanted(const redis_t *redis, const char *id)
{
    const char *wanted = redis->wanted;
    if (wanted == NULL)
        return true;
    for (; *wanted != '\0'; wanted++, id++) {
        while (*id == '-')
            id++;
        if ((*id | 0x20) != (*wanted | 0x20))
            return false;
    }
    return true;
}

static int read_redis_found(redis_t *redis, const redisReply *key)
{
    if (key->type != REDIS_REPLY_STRING)
        return 0;
    if (strncmp(key->str, LIST, strlen(LIST)) == 0)
        return read_redis_is_wanted(redis, key->str + strlen(LIST)) ? read_redis_list(redis, key->str, (size_t)key->len)
                                                                    : 0;
    if (strncmp(key->str, KEY, strlen(KEY)) == 0)
        return read_redis_is_wanted(redis, key->str + strlen(KEY)) ? read_redis_key(redis, key->str, (size_t)key->len)
                                                                   : 0;
    return 0;
}

static int read_redis_all(redis_t *redis)
{
    char cursor[32] = "0";
    int result = 0;
    do {
        redisReply *reply = read_redis_ask(redis, REDIS_REPLY_ARRAY, "SCAN %s MATCH osprofiler* COUNT 1000", cursor);
        if (reply == NULL)
            return -EIO;
        bool whole = reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
                     reply->element[1]->type == REDIS_REPLY_ARRAY;
        if (!whole)
            result = read_redis_fail(redis, -EIO, "the server does not know SCAN");
        else
            snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
        for (size_t i = 0; result == 0 && i < reply->element[1]->elements; i++)
            result = read_redis_found(redis, reply->element[1]->element[i]);
        freeReplyObject(reply);
    } while (result == 0 && strcmp(cursor, "0") != 0);
    return result;
}

// A whole id needs no search.
static int read_redis_wanted(redis_t *redis)
{
    char key[sizeof(LIST) + GP_ID128_SIZE], uuid[GP_ID128_SIZE];
    size_t before = redis->wanted != NULL ? strlen(redis->wanted) : 0;
    if (before != 32)
        return read_redis_all(redis);
    const char *id = redis->wanted;
    snprintf(uuid, sizeof(uuid), "%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8, id + 12, id + 16, id + 20);
    snprintf(key, sizeof(key), LIST "%s", uuid);
    redisReply *reply = read_redis_ask(redis, REDIS_REPLY_INTEGER, "EXISTS %s", key);
    if (reply == NULL)
        return -EIO;
    bool exists = reply->integer > 0;
    freeReplyObject(reply);
    return exists ? read_redis_list(redis, key, strlen(key)) : read_redis_all(redis);
}

bool gp_spans_is_redis(const char *source)
{
    return strncmp(source, "redis://", 8) == 0 || strncmp(source, "redis+sentinel://", 17) == 0 ||
           strncmp(source, "redissentinel://", 16) == 0;
}

int gp_spans_read_redis(gp_spans_t *set, const char *url, gp_wanted_t wanted, char error[GP_SPANS_ERROR_SIZE])
{
    redis_t redis = {.events = gp_events_create(set), .wanted = wanted, .error = error};
    gp_redis_url_t address;
    int result = redis.events != NULL ? 0 : -ENOMEM;
    if (result == 0 && read_redis_address(url, &address) < 0)
        result = read_redis_fail(
            &redis, -EINVAL, "is no redis://[:PASSWORD@]HOST[:PORT][/DB] or redis+sentinel://HOST[:PORT]/NAME[/DB]");
    if (result == 0)
        result = read_redis_connect_to(&redis, &address);
    if (result == 0)
        result = read_redis_wanted(&redis);
    if (redis.context != NULL)
        redisFree(redis.context);
    if (result == 0)
        return gp_events_finish(redis.events);
    gp_events_free(redis.events);
    return result;
}
