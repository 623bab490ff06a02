// SPDX-License-Identifier: MIT
#include "upstream.h"

#include "handlers.h"
#include "respond.h"
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    REPLY_BYTES_MAX = 1024 * 1024,
    STOCK_ITEMS = 1500,
    DELAY_MIN_MS = 50,
    DELAY_MAX_MS = 200,
    DELAY_ASKED_MAX_MS = 10000,
};

// Status line and headers are the upstream's business; what follows the empty line is JSON.
static int parse_reply(const char *reply, size_t len, json_t **stock)
{
    static const char ok[] = "HTTP/1.1 200 ";
    size_t head_len = http_head_len(reply, len);
    if (head_len == 0 || strncmp(reply, ok, sizeof ok - 1) != 0)
        return 502;
    *stock = json_loadb(reply + head_len, len - head_len, 0, NULL);
    return *stock != NULL ? 0 : 502;
}

static uint64_t new_span_id(void)
{
    uint64_t id;
    return getrandom(&id, sizeof id, 0) == sizeof id && id != 0 ? id : 1;
}

// The trace goes with the request: the upstream's samples will carry the same id.
static int send_request(const exchange_t *exchange, int fd, int64_t deadline_ms)
{
    char request[512];
    char traceparent[PROF_TRACE_TRACEPARENT_SIZE];
    char delay[16] = "";
    prof_trace_to_traceparent(&exchange->trace, new_span_id(), 1, traceparent);
    if (http_query(&exchange->request, "delay", delay, sizeof delay))
        delay[strspn(delay, "0123456789")] = '\0';
    int len = snprintf(request, sizeof request,
                       "GET /stock?delay=%s HTTP/1.1\r\nHost: upstream\r\nConnection: close\r\n"
                       "X-Request-Id: %s-upstream\r\ntraceparent: %s\r\n\r\n",
                       delay, exchange->id, traceparent);
    return socket_send(fd, request, (size_t)len, deadline_ms);
}

// Receives until the upstream closes. Returns the length or a negative errno value.
static ssize_t receive_reply(int fd, char *reply, int64_t deadline_ms)
{
    size_t len = 0;
    for (;;) {
        ssize_t got = socket_recv(fd, reply + len, REPLY_BYTES_MAX - len, deadline_ms, LOOP_WAIT_BUSY);
        if (got < 0)
            return got;
        if (got == 0)
            return (ssize_t)len;
        len += (size_t)got;
        if (len == REPLY_BYTES_MAX)
            return -EMSGSIZE;
    }
}

static ssize_t call_upstream(const exchange_t *exchange, char *reply)
{
    int64_t deadline_ms = loop_now_ms() + exchange->worker->settings->upstream_ms;
    int fd = socket_connect(exchange->worker->upstream_port, deadline_ms);
    if (fd < 0)
        return fd;
    ssize_t len = send_request(exchange, fd, deadline_ms);
    if (len == 0)
        len = receive_reply(fd, reply, deadline_ms);
    close(fd);
    return len;
}

int upstream_fetch_stock(const exchange_t *exchange, json_t **stock)
{
    char *reply = malloc(REPLY_BYTES_MAX);
    if (reply == NULL)
        return 503;
    ssize_t len = call_upstream(exchange, reply);
    int status = len == -ETIMEDOUT ? 504 : len == -ECANCELED ? 503 : 502;
    if (len >= 0)
        status = parse_reply(reply, (size_t)len, stock);
    free(reply);
    return status;
}

static int64_t choose_delay_ms(const exchange_t *exchange)
{
    char asked[16];
    uint16_t random = 0;
    if (http_query(&exchange->request, "delay", asked, sizeof asked) && asked[0] != '\0') {
        long ms = strtol(asked, NULL, 10);
        return ms < 0 ? 0 : ms > DELAY_ASKED_MAX_MS ? DELAY_ASKED_MAX_MS : ms;
    }
    if (getrandom(&random, sizeof random, 0) < 0)
        random = 0;
    return DELAY_MIN_MS + random % (DELAY_MAX_MS - DELAY_MIN_MS + 1);
}

static json_t *make_stock(void)
{
    json_t *items = json_array();
    for (int i = 0; i < STOCK_ITEMS; i++) {
        int hash = (int)((unsigned)i * 2654435761u >> 8);
        json_array_append_new(items, json_pack("{s:i, s:i, s:i, s:f}", "item", i, "warehouse", hash % 12, "pieces",
                                               hash % 500, "price", (hash % 9900 + 100) / 100.0));
    }
    return items;
}

// The upstream's own handler: slow, like all upstreams.
void handle_stock(exchange_t *exchange)
{
    if (loop_sleep(choose_delay_ms(exchange)) != 0)
        respond_error(exchange, 503, "shutting down");
    else
        respond_json(exchange, json_pack("{s:o}", "items", make_stock()));
}
