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

#include "tree/sources.h"

enum { PORT = 6379, PORT_MAX = 65535, TIMEOUT_S = 10, LIST_PART = 1000 };

#define LIST "osprofiler_opt:"
#define KEY  "osprofiler:"

typedef struct address {
    char host[256], user[256], password[256];
    int port;
    unsigned long database;
} address_t;

typedef struct redis {
    redisContext *context;
    gp_events_t *events;
    gp_wanted_t wanted;
    char *error;
} redis_t;

static int fail(const redis_t *redis, int result, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int fail(const redis_t *redis, int result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(redis->error, GP_SPANS_ERROR_SIZE, format, arguments);
    va_end(arguments);
    return result;
}

// Copy what is before `end`, %41 as A. Returns whether it fits.
static bool take(char *out, size_t size, const char *text, size_t len)
{
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned value;
        if (used + 1 >= size)
            return false;
        if (text[i] == '%' && i + 2 < len && sscanf(text + i + 1, "%2x", &value) == 1) {
            out[used++] = (char)value;
            i += 2;
        } else {
            out[used++] = text[i];
        }
    }
    out[used] = '\0';
    return true;
}

// Returns 0 or -EINVAL.
static int read_address(const char *url, address_t *address)
{
    const char *at = url + strlen("redis://"), *password_end = strrchr(at, '@'), *end;
    *address = (address_t){.port = PORT};
    if (password_end != NULL) {
        const char *colon = memchr(at, ':', (size_t)(password_end - at));
        const char *password = colon != NULL ? colon + 1 : at;
        if (!take(address->password, sizeof(address->password), password, (size_t)(password_end - password)) ||
            (colon != NULL && !take(address->user, sizeof(address->user), at, (size_t)(colon - at))))
            return -EINVAL;
        at = password_end + 1;
    }
    end = at[0] == '[' ? strchr(at, ']') : at + strcspn(at, ":/?"); // [::1]
    if (end == NULL)
        return -EINVAL;
    if (at[0] == '[')
        at++;
    if (!take(address->host, sizeof(address->host), at, (size_t)(end - at)))
        return -EINVAL;
    if (address->host[0] == '\0')
        snprintf(address->host, sizeof(address->host), "localhost");
    if (*end == ']')
        end++;
    if (*end == ':') {
        char *rest;
        long port = strtol(end + 1, &rest, 10);
        if (rest == end + 1 || port < 1 || port > PORT_MAX)
            return -EINVAL;
        address->port = (int)port;
        end = rest;
    }
    if (*end == '/' && end[1] != '\0' && end[1] != '?') {
        char *rest;
        address->database = strtoul(end + 1, &rest, 10);
        end = rest;
    } else if (*end == '/') {
        end++;
    }
    return *end == '\0' || *end == '?' ? 0 : -EINVAL;
}

// Send a command; the format is one of hiredis (%b: bytes and their number). Returns its reply, of the wanted type, or
// NULL and what is wrong.
static redisReply *ask(const redis_t *redis, int type, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(redis->context, format, arguments);
    va_end(arguments);
    if (reply != NULL && reply->type == type)
        return reply;
    if (reply == NULL)
        fail(redis, -EIO, "%s", redis->context->errstr[0] ? redis->context->errstr : "the connection is gone");
    else if (reply->type == REDIS_REPLY_ERROR)
        fail(redis, -EIO, "the server says: %s", reply->str);
    else
        fail(redis, -EIO, "the server's reply is of type %d where %d was expected", reply->type, type);
    if (reply != NULL)
        freeReplyObject(reply);
    return NULL;
}

static int connect_to(redis_t *redis, const address_t *address)
{
    struct timeval timeout = {.tv_sec = TIMEOUT_S};
    redisReply *reply;
    redis->context = redisConnectWithTimeout(address->host, address->port, timeout);
    if (redis->context == NULL)
        return -ENOMEM;
    if (redis->context->err != 0)
        return fail(redis, -ECONNREFUSED, "%s", redis->context->errstr);
    redisSetTimeout(redis->context, timeout);
    if (address->password[0] != '\0') {
        reply = address->user[0] != '\0'
                    ? ask(redis, REDIS_REPLY_STATUS, "AUTH %s %s", address->user, address->password)
                    : ask(redis, REDIS_REPLY_STATUS, "AUTH %s", address->password);
        if (reply == NULL)
            return -EACCES;
        freeReplyObject(reply);
    }
    reply = ask(redis, REDIS_REPLY_STATUS, "SELECT %lu", address->database);
    if (reply == NULL)
        return -EIO;
    freeReplyObject(reply);
    return 0;
}

static int read_events(redis_t *redis, const redisReply *reply)
{
    int result = 0;
    for (size_t i = 0; i < reply->elements && result == 0; i++)
        if (reply->element[i]->type == REDIS_REPLY_STRING)
            result = gp_events_read(redis->events, reply->element[i]->str, (size_t)reply->element[i]->len);
    return result;
}

// A part at a time: a trace may have very many events, and is written to meanwhile, at the front.
static int read_list(redis_t *redis, const char *key, size_t key_len)
{
    long long at = -1;
    for (;;) {
        redisReply *reply = ask(redis, REDIS_REPLY_ARRAY, "LRANGE %b %lld %lld", key, key_len, at - LIST_PART + 1, at);
        if (reply == NULL)
            return -EIO;
        size_t count = reply->elements;
        int result = read_events(redis, reply);
        freeReplyObject(reply);
        if (result != 0 || count < LIST_PART)
            return result;
        at -= LIST_PART;
    }
}

static int read_key(redis_t *redis, const char *key, size_t key_len)
{
    redisReply *reply = redisCommand(redis->context, "GET %b", key, key_len);
    if (reply == NULL)
        return fail(redis, -EIO, "%s", redis->context->errstr);
    int result = reply->type == REDIS_REPLY_STRING ? gp_events_read(redis->events, reply->str, (size_t)reply->len)
                                                   : 0; // it is gone, or something else of that name
    freeReplyObject(reply);
    return result;
}

// Does the id that a key's name begins with begin as the wanted one does?
static bool is_wanted(const redis_t *redis, const char *id)
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

static int read_found(redis_t *redis, const redisReply *key)
{
    if (key->type != REDIS_REPLY_STRING)
        return 0;
    if (strncmp(key->str, LIST, strlen(LIST)) == 0)
        return is_wanted(redis, key->str + strlen(LIST)) ? read_list(redis, key->str, (size_t)key->len) : 0;
    if (strncmp(key->str, KEY, strlen(KEY)) == 0)
        return is_wanted(redis, key->str + strlen(KEY)) ? read_key(redis, key->str, (size_t)key->len) : 0;
    return 0;
}

static int read_all(redis_t *redis)
{
    char cursor[32] = "0";
    int result = 0;
    do {
        redisReply *reply = ask(redis, REDIS_REPLY_ARRAY, "SCAN %s MATCH osprofiler* COUNT 1000", cursor);
        if (reply == NULL)
            return -EIO;
        bool whole = reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING &&
                     reply->element[1]->type == REDIS_REPLY_ARRAY;
        if (!whole)
            result = fail(redis, -EIO, "the server does not know SCAN");
        else
            snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
        for (size_t i = 0; result == 0 && i < reply->element[1]->elements; i++)
            result = read_found(redis, reply->element[1]->element[i]);
        freeReplyObject(reply);
    } while (result == 0 && strcmp(cursor, "0") != 0);
    return result;
}

// A whole id needs no search.
static int read_wanted(redis_t *redis)
{
    char key[sizeof(LIST) + GP_ID128_SIZE], uuid[GP_ID128_SIZE];
    size_t before = redis->wanted != NULL ? strlen(redis->wanted) : 0;
    if (before != 32)
        return read_all(redis);
    const char *id = redis->wanted;
    snprintf(uuid, sizeof(uuid), "%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8, id + 12, id + 16, id + 20);
    snprintf(key, sizeof(key), LIST "%s", uuid);
    redisReply *reply = ask(redis, REDIS_REPLY_INTEGER, "EXISTS %s", key);
    if (reply == NULL)
        return -EIO;
    bool exists = reply->integer > 0;
    freeReplyObject(reply);
    return exists ? read_list(redis, key, strlen(key)) : read_all(redis);
}

int gp_spans_read_redis(gp_spans_t *set, const char *url, gp_wanted_t wanted, char error[GP_SPANS_ERROR_SIZE])
{
    redis_t redis = {.events = gp_events_create(set), .wanted = wanted, .error = error};
    address_t address;
    int result = redis.events != NULL ? 0 : -ENOMEM;
    if (result == 0 && read_address(url, &address) < 0)
        result = fail(&redis, -EINVAL, "is no redis://[:PASSWORD@]HOST[:PORT][/DB]");
    if (result == 0)
        result = connect_to(&redis, &address);
    if (result == 0)
        result = read_wanted(&redis);
    if (redis.context != NULL)
        redisFree(redis.context);
    if (result == 0)
        return gp_events_finish(redis.events);
    gp_events_free(redis.events);
    return result;
}
