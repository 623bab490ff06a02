// SPDX-License-Identifier: MIT
// redis:// and redis+sentinel:// - the schema of OSProfiler's Redis driver: a list a trace, two events a span. Those of
// a span are pushed by one command: a list of a single event makes `osprofiler trace list` fail.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/backends.h"
#include "consumer/redis_event.h"
#include "consumer/redis_link.h"
#include "consumer/redis_url.h"

typedef struct redis_state {
    gp_redis_url_t url;
    gp_redis_link_t link;
    size_t sentinel; // that is asked first
    gp_bytes_t request, event;
    bool is_one_by_one; // a span was refused: the next one goes alone
} redis_state_t;

static int open_any(const char *url, void **state, bool is_sentinel)
{
    redis_state_t *redis = calloc(1, sizeof(*redis));
    if (redis == NULL)
        return -ENOMEM;
    redis->link.fd = -1;
    int error = gp_redis_url(&redis->url, url, is_sentinel);
    if (error != 0)
        free(redis);
    else
        *state = redis;
    return error;
}

static int open_redis(const char *url, void **state)
{
    return open_any(url, state, false);
}

static int open_sentinel(const char *url, void **state)
{
    return open_any(url, state, true);
}

// --- a connection to the server that takes writes

static void put_words(gp_bytes_t *request, const char *const *words, size_t count)
{
    gp_redis_command(request, count);
    for (size_t i = 0; i < count; i++)
        gp_redis_word(request, words[i], strlen(words[i]));
}

static bool is_ok(void *context, const gp_redis_reply_t *reply)
{
    (void)context;
    return reply->type == '+';
}

static int introduce(redis_state_t *redis, uint64_t deadline)
{
    const gp_redis_url_t *url = &redis->url;
    size_t count = 0;
    gp_bytes_clear(&redis->request);
    if (url->password != NULL && ++count)
        put_words(&redis->request,
                  (const char *[]){"AUTH", url->user != NULL ? url->user : url->password, url->password},
                  url->user != NULL ? 3 : 2);
    if (url->db != NULL && ++count)
        put_words(&redis->request, (const char *[]){"SELECT", url->db}, 2);
    int error = count > 0 ? gp_redis_exchange(&redis->link, &redis->request, count, deadline, is_ok, NULL) : 0;
    return error == -ECONNABORTED ? -EACCES : error;
}

static bool keep_reply(void *context, const gp_redis_reply_t *reply)
{
    *(gp_redis_reply_t *)context = *reply;
    return true;
}

// Where the master is, by one of the Sentinels.
static int ask(redis_state_t *redis, const gp_redis_place_t *sentinel, gp_redis_reply_t *reply, uint64_t deadline)
{
    int error = gp_redis_connect(&redis->link, sentinel->host, sentinel->port, deadline);
    if (error != 0)
        return error;
    gp_bytes_clear(&redis->request);
    put_words(&redis->request, (const char *[]){"SENTINEL", "get-master-addr-by-name", redis->url.master}, 3);
    error = gp_redis_exchange(&redis->link, &redis->request, 1, deadline, keep_reply, reply);
    gp_redis_disconnect(&redis->link);
    return error != 0 ? error : reply->type == '*' ? 0 : -EHOSTUNREACH;
}

static int connect_to_master(redis_state_t *redis)
{
    gp_redis_reply_t reply;
    int error = -EHOSTUNREACH;
    for (size_t i = 0; i < redis->url.place_count; i++) {
        uint64_t deadline = gp_redis_now() + redis->url.timeout_ns;
        error = ask(redis, &redis->url.places[redis->sentinel], &reply, deadline);
        if (error == 0)
            return gp_redis_connect(&redis->link, reply.text, reply.second, deadline);
        redis->sentinel = (redis->sentinel + 1) % redis->url.place_count;
    }
    return error;
}

static int connect_to_server(redis_state_t *redis)
{
    uint64_t deadline = gp_redis_now() + redis->url.timeout_ns;
    int error = redis->url.master != NULL
                    ? connect_to_master(redis)
                    : gp_redis_connect(&redis->link, redis->url.places[0].host, redis->url.places[0].port, deadline);
    return error != 0 ? error : introduce(redis, deadline);
}

// --- spans

typedef struct progress {
    const redis_state_t *redis;
    const prof_span_record_t *spans;
    size_t taken;   // spans with all their replies
    size_t replies; // of the one behind them
    int error;
} progress_t;

static bool is_failed(const prof_span_record_t *span)
{
    return span->flags & PROF_SPAN_RECORD_FAILED;
}

static size_t replies_of(const redis_state_t *redis, const prof_span_record_t *span)
{
    return 1 + is_failed(span) + (redis->url.ttl_s != 0) * (1u + is_failed(span));
}

static int error_of(const gp_redis_reply_t *reply)
{
    if (reply->type != '-')
        return -EPROTO;
    return strncmp(reply->text, "WRONGTYPE", 9) == 0 ? -EBADMSG // some other program's key: no fault of the server's
           : strncmp(reply->text, "NOAUTH", 6) == 0 || strncmp(reply->text, "NOPERM", 6) == 0 ? -EACCES
           : strncmp(reply->text, "OOM", 3) == 0                                              ? -ENOSPC
           : strncmp(reply->text, "READONLY", 8) == 0                                         ? -EROFS
                                                                                              : -EREMOTEIO;
}

// The first reply of a span is the length of the list, which has two events more now.
static bool take_reply(void *context, const gp_redis_reply_t *reply)
{
    progress_t *progress = context;
    const prof_span_record_t *span = &progress->spans[progress->taken];
    bool is_pushed = reply->type == ':' && reply->number >= 2;
    bool is_good = progress->replies == 0 ? is_pushed : reply->type == ':' || reply->type == '+';
    if (!is_good) {
        progress->error = error_of(reply);
        return false;
    }
    if (++progress->replies == replies_of(progress->redis, span)) {
        progress->replies = 0;
        progress->taken++;
    }
    return true;
}

static void put_key(gp_bytes_t *request, const char *space, const prof_span_record_t *span)
{
    char uuid[PROF_TRACE_UUID_SIZE], key[64] = "";
    prof_trace_to_uuid(&span->trace, uuid);
    strcat(strcpy(key, space), uuid);
    gp_redis_word(request, key, strlen(key));
}

static void put_event(redis_state_t *redis, const prof_span_record_t *span, bool is_stop)
{
    gp_bytes_clear(&redis->event);
    gp_redis_event(&redis->event, span, is_stop);
    redis->request.is_short |= redis->event.is_short;
    gp_redis_word(&redis->request, redis->event.data, redis->event.len);
}

static void put_expiry(redis_state_t *redis, const char *space, const prof_span_record_t *span)
{
    gp_bytes_t seconds = {0};
    if (redis->url.ttl_s == 0)
        return;
    gp_bytes_number(&seconds, redis->url.ttl_s);
    gp_redis_command(&redis->request, 3);
    gp_redis_word(&redis->request, "EXPIRE", 6);
    put_key(&redis->request, space, span);
    gp_redis_word(&redis->request, seconds.data, seconds.len);
    redis->request.is_short |= seconds.is_short;
    gp_bytes_free(&seconds);
}

static void put_span(redis_state_t *redis, const prof_span_record_t *span)
{
    static const char events[] = "osprofiler_opt:", errors[] = "osprofiler_error:";
    gp_redis_command(&redis->request, 4);
    gp_redis_word(&redis->request, "LPUSH", 5);
    put_key(&redis->request, events, span);
    put_event(redis, span, false);
    put_event(redis, span, true);
    put_expiry(redis, events, span);
    if (!is_failed(span))
        return;
    gp_redis_command(&redis->request, 3);
    gp_redis_word(&redis->request, "SET", 3);
    put_key(&redis->request, errors, span);
    gp_bytes_clear(&redis->event);
    gp_redis_error_mark(&redis->event, span);
    redis->request.is_short |= redis->event.is_short;
    gp_redis_word(&redis->request, redis->event.data, redis->event.len);
    put_expiry(redis, errors, span);
}

static int send_all(redis_state_t *redis, const prof_span_record_t *spans, size_t count)
{
    progress_t progress = {.redis = redis, .spans = spans};
    size_t replies = 0;
    gp_bytes_clear(&redis->request);
    for (size_t i = 0; i < count; i++) {
        put_span(redis, &spans[i]);
        replies += replies_of(redis, &spans[i]);
    }
    int error = gp_redis_exchange(&redis->link, &redis->request, replies, gp_redis_now() + redis->url.timeout_ns,
                                  take_reply, &progress);
    if (progress.error != 0)
        error = progress.error;
    redis->is_one_by_one = error == -EBADMSG && count > 1;
    return progress.taken > 0 ? (int)progress.taken : error == -EBADMSG && count > 1 ? -EAGAIN : error;
}

static int send_redis(void *state, const prof_span_record_t *spans, size_t count)
{
    redis_state_t *redis = state;
    int error = gp_redis_is_connected(&redis->link) ? 0 : connect_to_server(redis);
    if (error != 0) {
        gp_redis_disconnect(&redis->link);
        return error;
    }
    return send_all(redis, spans, redis->is_one_by_one ? 1 : count);
}

static void close_redis(void *state)
{
    redis_state_t *redis = state;
    gp_redis_disconnect(&redis->link);
    gp_bytes_free(&redis->request);
    gp_bytes_free(&redis->event);
    free(redis);
}

static void abandon_redis(void *state)
{
    gp_redis_disconnect(&((redis_state_t *)state)->link);
}

const prof_consumer_t gp_consumer_redis = {
    .size = sizeof(gp_consumer_redis),
    .version = PROF_CONSUMER_VERSION,
    .scheme = "redis",
    .open = open_redis,
    .send = send_redis,
    .close = close_redis,
    .abandon = abandon_redis,
};

const prof_consumer_t gp_consumer_sentinel = {
    .size = sizeof(gp_consumer_sentinel),
    .version = PROF_CONSUMER_VERSION,
    .scheme = "redis+sentinel",
    .open = open_sentinel,
    .send = send_redis,
    .close = close_redis,
    .abandon = abandon_redis,
};
