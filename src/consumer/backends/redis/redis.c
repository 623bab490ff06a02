// SPDX-License-Identifier: MIT
// redis:// and redis+sentinel:// - the schema of OSProfiler's Redis driver: a list a trace, two events a span. Those of
// a span are pushed by one command: a list of a single event makes `osprofiler trace list` fail.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "consumer/backends/redis/event.h"
#include "consumer/backends/redis/link.h"
#include "consumer/backends/redis/url.h"

typedef struct redis_state {
    gp_redis_url_t url;
    gp_redis_link_t link;
    size_t sentinel; // that is asked first
    gp_reply_bytes_t request, event[2];
    bool is_one_by_one; // a span was refused: the next one goes alone
} redis_state_t;

static const gp_backend_host_t *redis_host;

static int redis_open_redis(const char *url, void **state)
{
    redis_state_t *redis = calloc(1, sizeof(*redis));
    if (redis == NULL)
        return -ENOMEM;
    redis->link.host = redis_host;
    int error = gp_redis_url(&redis->url, url, strncmp(url, "redis:", 6) != 0);
    if (error != 0)
        free(redis);
    else
        *state = redis;
    return error;
}

// --- a connection to the server that takes writes

static bool redis_is_ok(void *context, const gp_redis_reply_t *reply)
{
    (void)context;
    return reply->type == REDIS_REPLY_STATUS;
}

static int redis_introduce(redis_state_t *redis, uint64_t deadline)
{
    const gp_redis_url_t *url = &redis->url;
    size_t count = 0;
    gp_bytes_clear(&redis->request);
    if (url->password != NULL && ++count)
        gp_redis_command(&redis->request, url->user != NULL ? 3 : 2,
                         (const char *[]){"AUTH", url->user != NULL ? url->user : url->password, url->password}, NULL);
    if (url->db != NULL && ++count)
        gp_redis_command(&redis->request, 2, (const char *[]){"SELECT", url->db}, NULL);
    int error = count > 0 ? gp_redis_exchange(&redis->link, &redis->request, count, deadline, redis_is_ok, NULL) : 0;
    return error == -ECONNABORTED ? -EACCES : error;
}

static bool redis_keep_reply(void *context, const gp_redis_reply_t *reply)
{
    *(gp_redis_reply_t *)context = *reply;
    return true;
}

// Where the master is, by one of the Sentinels.
static int redis_ask(redis_state_t *redis, const gp_redis_place_t *sentinel, gp_redis_reply_t *reply, uint64_t deadline)
{
    int error = gp_redis_connect(&redis->link, sentinel->host, sentinel->port, deadline);
    if (error != 0)
        return error;
    gp_bytes_clear(&redis->request);
    gp_redis_command(&redis->request, 3, (const char *[]){"SENTINEL", "get-master-addr-by-name", redis->url.master},
                     NULL);
    error = gp_redis_exchange(&redis->link, &redis->request, 1, deadline, redis_keep_reply, reply);
    gp_redis_disconnect(&redis->link);
    return error != 0 ? error : reply->type == REDIS_REPLY_ARRAY ? 0 : -EHOSTUNREACH;
}

static int redis_connect_to_master(redis_state_t *redis)
{
    gp_redis_reply_t reply;
    int error = -EHOSTUNREACH;
    for (size_t i = 0; i < redis->url.place_count; i++) {
        uint64_t deadline = gp_now_ns() + redis->url.timeout_ns;
        error = redis_ask(redis, &redis->url.places[redis->sentinel], &reply, deadline);
        if (error == 0)
            return gp_redis_connect(&redis->link, reply.texts[0], reply.texts[1], deadline);
        redis->sentinel = (redis->sentinel + 1) % redis->url.place_count;
    }
    return error;
}

static int redis_connect_to_server(redis_state_t *redis)
{
    uint64_t deadline = gp_now_ns() + redis->url.timeout_ns;
    int error = redis->url.master != NULL
                    ? redis_connect_to_master(redis)
                    : gp_redis_connect(&redis->link, redis->url.places[0].host, redis->url.places[0].port, deadline);
    return error != 0 ? error : redis_introduce(redis, deadline);
}

// --- spans

typedef struct progress {
    const redis_state_t *redis;
    const prof_span_record_t *spans;
    size_t taken;   // spans with all their replies
    size_t replies; // of the one behind them
    int error;
} progress_t;

static bool redis_is_failed(const prof_span_record_t *span)
{
    return span->flags & PROF_SPAN_RECORD_FAILED;
}

static size_t redis_replies_of(const redis_state_t *redis, const prof_span_record_t *span)
{
    return 1 + redis_is_failed(span) + (redis->url.ttl_s != 0) * (1u + redis_is_failed(span));
}

static int redis_error_of(const gp_redis_reply_t *reply)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return -EPROTO;
    const char *text = reply->texts[0];
    return strncmp(text, "WRONGTYPE", 9) == 0 ? -EBADMSG // some other program's key: no fault of the server's
           : strncmp(text, "NOAUTH", 6) == 0 || strncmp(text, "NOPERM", 6) == 0 ? -EACCES
           : strncmp(text, "OOM", 3) == 0                                       ? -ENOSPC
           : strncmp(text, "READONLY", 8) == 0                                  ? -EROFS
                                                                                : -EREMOTEIO;
}

// The first reply of a span is the length of the list, which has two events more now.
static bool redis_take_reply(void *context, const gp_redis_reply_t *reply)
{
    progress_t *progress = context;
    const prof_span_record_t *span = &progress->spans[progress->taken];
    bool is_pushed = reply->type == REDIS_REPLY_INTEGER && reply->number >= 2;
    bool is_good =
        progress->replies == 0 ? is_pushed : reply->type == REDIS_REPLY_INTEGER || reply->type == REDIS_REPLY_STATUS;
    if (!is_good) {
        progress->error = redis_error_of(reply);
        return false;
    }
    if (++progress->replies == redis_replies_of(progress->redis, span)) {
        progress->replies = 0;
        progress->taken++;
    }
    return true;
}

enum { REDIS_KEY_SIZE = 64 };

static void redis_key(char key[REDIS_KEY_SIZE], const char *space, const prof_span_record_t *span)
{
    prof_trace_to_uuid(&span->trace, stpcpy(key, space));
}

static void redis_put_expiry(redis_state_t *redis, const char *key)
{
    char seconds[32];
    if (redis->url.ttl_s == 0)
        return;
    snprintf(seconds, sizeof(seconds), "%llu", (unsigned long long)redis->url.ttl_s);
    gp_redis_command(&redis->request, 3, (const char *[]){"EXPIRE", key, seconds}, NULL);
}

static void redis_put_span(redis_state_t *redis, const prof_span_record_t *span)
{
    gp_reply_bytes_t *start = &redis->event[0], *stop = &redis->event[1];
    char key[REDIS_KEY_SIZE];
    gp_bytes_clear(start);
    gp_bytes_clear(stop);
    gp_redis_event(start, span, false);
    gp_redis_event(stop, span, true);
    redis_key(key, "osprofiler_opt:", span);
    gp_redis_command(&redis->request, 4, (const char *[]){"LPUSH", key, start->data, stop->data},
                     (const size_t[]){5, strlen(key), start->len, stop->len});
    redis_put_expiry(redis, key);
    redis->request.is_short |= start->is_short || stop->is_short;
    if (!redis_is_failed(span))
        return;
    gp_bytes_clear(start);
    gp_redis_error_mark(start, span);
    redis_key(key, "osprofiler_error:", span);
    gp_redis_command(&redis->request, 3, (const char *[]){"SET", key, start->data},
                     (const size_t[]){3, strlen(key), start->len});
    redis_put_expiry(redis, key);
    redis->request.is_short |= start->is_short;
}

static int redis_send_all(redis_state_t *redis, const prof_span_record_t *spans, size_t count)
{
    progress_t progress = {.redis = redis, .spans = spans};
    size_t replies = 0;
    gp_bytes_clear(&redis->request);
    for (size_t i = 0; i < count; i++) {
        redis_put_span(redis, &spans[i]);
        replies += redis_replies_of(redis, &spans[i]);
    }
    int error = gp_redis_exchange(&redis->link, &redis->request, replies, gp_now_ns() + redis->url.timeout_ns,
                                  redis_take_reply, &progress);
    if (progress.error != 0)
        error = progress.error;
    redis->is_one_by_one = error == -EBADMSG && count > 1;
    return progress.taken > 0 ? (int)progress.taken : error == -EBADMSG && count > 1 ? -EAGAIN : error;
}

static int redis_send_redis(void *state, const prof_span_record_t *spans, size_t count)
{
    redis_state_t *redis = state;
    int error = gp_redis_is_connected(&redis->link) ? 0 : redis_connect_to_server(redis);
    if (error != 0) {
        gp_redis_disconnect(&redis->link);
        return error;
    }
    return redis_send_all(redis, spans, redis->is_one_by_one ? 1 : count);
}

static void redis_close_redis(void *state)
{
    redis_state_t *redis = state;
    gp_redis_disconnect(&redis->link);
    gp_bytes_free(&redis->request);
    gp_bytes_free(&redis->event[0]);
    gp_bytes_free(&redis->event[1]);
    free(redis);
}

static void redis_abandon_redis(void *state)
{
    gp_redis_abandon(&((redis_state_t *)state)->link);
}

PROF_API prof_backend_plugin_t prof_backend_plugin;

const prof_consumer_t *prof_backend_plugin(const gp_backend_host_t *host)
{
    static const prof_consumer_t backend = {
        .size = sizeof(backend),
        .version = PROF_CONSUMER_VERSION,
        .scheme = "redis",
        .open = redis_open_redis,
        .send = redis_send_redis,
        .close = redis_close_redis,
        .abandon = redis_abandon_redis,
    };
    redis_host = host;
    return host->size == sizeof(*host) ? &backend : NULL;
}
