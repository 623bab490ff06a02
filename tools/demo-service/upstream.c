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

// A question to another service, and its answer.
typedef struct question {
    const exchange_t *exchange; // that it is asked for
    const char *service;
    const char *path;
    uint16_t port;
    char delay[16]; // "" = none is asked for
} question_t;

// Status line and headers are the other service's business; what follows the empty line is JSON.
static int parse_reply(const char *reply, size_t len, json_t **answer)
{
    static const char ok[] = "HTTP/1.1 200 ";
    size_t head_len = http_head_len(reply, len);
    if (head_len == 0 || strncmp(reply, ok, sizeof ok - 1) != 0)
        return 502;
    *answer = json_loadb(reply + head_len, len - head_len, 0, NULL);
    return *answer != NULL ? 0 : 502;
}

// The trace goes with the request: what the other service does is part of it, below this call's span.
static int send_question(const question_t *question, prof_span_t *span, int fd, int64_t deadline_ms)
{
    char request[512];
    char traceparent[PROF_TRACE_TRACEPARENT_SIZE];
    uint64_t span_id = prof_span_id(span) != 0 ? prof_span_id(span) : 1; // 1: nothing records it here
    prof_trace_to_traceparent(&question->exchange->trace, span_id, 1, traceparent);
    int len = snprintf(request, sizeof request,
                       "GET %s?delay=%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"
                       "X-Request-Id: %s-%s\r\ntraceparent: %s\r\n\r\n",
                       question->path, question->delay, question->service, question->exchange->id, question->service,
                       traceparent);
    return socket_send(fd, request, (size_t)len, deadline_ms);
}

// Receives until the peer closes. Returns the length or a negative errno value.
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

static ssize_t call(const question_t *question, prof_span_t *span, char *reply)
{
    int64_t deadline_ms = loop_now_ms() + question->exchange->worker->settings->upstream_ms;
    int fd = socket_connect(question->port, deadline_ms);
    if (fd < 0)
        return fd;
    ssize_t len = send_question(question, span, fd, deadline_ms);
    if (len == 0)
        len = receive_reply(fd, reply, deadline_ms);
    close(fd);
    return len;
}

static prof_span_t *begin_call(const question_t *question)
{
    char name[64];
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    const prof_field_t field = {"service", question->service};
    options.fields = &field;
    options.field_count = 1;
    snprintf(name, sizeof name, "GET %s", question->path);
    return prof_span_begin(PROF_SPAN_REST_CALL, name, &options);
}

// Parks the coroutine until the other service answers. Returns 0, or the status to answer with.
static int ask(const question_t *question, json_t **answer)
{
    char *reply = malloc(REPLY_BYTES_MAX);
    if (reply == NULL)
        return 503;
    prof_span_t *span = begin_call(question);
    ssize_t len = call(question, span, reply);
    int status = len == -ETIMEDOUT ? 504 : len == -ECANCELED ? 503 : 502;
    if (len < 0)
        prof_span_fail(span, "errno", strerror((int)-len));
    prof_span_end(span);
    if (len >= 0)
        status = parse_reply(reply, (size_t)len, answer);
    free(reply);
    return status;
}

static void copy_delay(const exchange_t *exchange, char delay[16])
{
    if (!http_query(&exchange->request, "delay", delay, 16))
        delay[0] = '\0';
    delay[strspn(delay, "0123456789")] = '\0';
}

int upstream_fetch_stock(const exchange_t *exchange, json_t **stock)
{
    question_t question = {exchange, "scheduler", "/stock", exchange->worker->upstream_port, ""};
    copy_delay(exchange, question.delay);
    return ask(&question, stock);
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

// Where the conductor would place it. Returns 0, or the status to answer with.
static int ask_conductor(const exchange_t *exchange, json_t **place)
{
    question_t question = {exchange, "conductor", "/place", exchange->worker->settings->conductor_port, ""};
    copy_delay(exchange, question.delay);
    return ask(&question, place);
}

// The upstream's own handler: slow, like all upstreams.
void handle_stock(exchange_t *exchange)
{
    json_t *place = NULL;
    int status = 0;
    if (exchange->worker->settings->conductor_port != 0)
        status = ask_conductor(exchange, &place);
    else if (loop_sleep(choose_delay_ms(exchange)) != 0)
        status = 503;
    if (status != 0)
        respond_error(exchange, status, status == 503 ? "shutting down" : "the conductor did not answer");
    else
        respond_json(exchange, json_pack("{s:o, s:o*}", "items", make_stock(), "place", place));
}
