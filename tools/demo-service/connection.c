// SPDX-License-Identifier: MIT
// A worker's coroutines: one that accepts, one a connection, one a request.
#include "request_profile.h"
#include "service.h"
#include "socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    COROUTINES_MAX = 2048, // a worker's: beyond, new connections wait in the kernel's queue
    SMALL_BYTES = 16384,   // fit into any socket's buffer
};

typedef struct connection {
    worker_t *worker;
    int fd;
    size_t len;         // bytes in `data`: this request's head and what came with it
    int64_t arrival_ns; // when the last of them reached this host, ns since 1970; 0 = not known
    char data[HTTP_HEAD_BYTES_MAX];
} connection_t;

// A request while its coroutine runs.
typedef struct call {
    exchange_t exchange;
    handler_fn handler;
} call_t;

static void not_found(exchange_t *exchange)
{
    exchange->response.status = 404;
}

static handler_fn find_handler(const route_t *routes, const char *path)
{
    for (; routes->path != NULL; routes++)
        if (strcmp(routes->path, path) == 0)
            return routes->handler;
    return not_found;
}

// The request's coroutine: everything between profile_begin() and profile_end() is in its profile, and nothing else is.
static void run_request(void *arg)
{
    call_t *call = arg;
    prof_coro_name(NULL, call->exchange.request.path);
    prof_t *profile = profile_begin(&call->exchange);
    call->handler(&call->exchange);
    profile_end(profile, &call->exchange);
}

static int send_response(const connection_t *connection, const http_response_t *response)
{
    char head[HTTP_RESPONSE_HEAD_BYTES];
    size_t head_len = http_response_head(response, head);
    int64_t deadline_ms = loop_now_ms() + connection->worker->settings->timeout_ms;
    if (response->body_len == 0)
        return socket_send(connection->fd, head, head_len, deadline_ms);
    int rc = socket_send_part(connection->fd, head, head_len, deadline_ms);
    if (rc == 0)
        rc = socket_send(connection->fd, response->body, response->body_len, deadline_ms);
    return rc;
}

static void refuse(const connection_t *connection, int status)
{
    http_response_t response = {.status = status};
    send_response(connection, &response);
}

// Returns the length of the head; 0 when the client has gone, was silent, or has been refused.
static size_t read_head(connection_t *connection)
{
    const settings_t *settings = connection->worker->settings;
    size_t head_len = http_head_len(connection->data, connection->len);
    int64_t deadline_ms = loop_now_ms() + settings->idle_ms;
    bool started = false;
    while (head_len == 0) {
        if (connection->len > 0 && !started) {
            deadline_ms = loop_now_ms() + settings->timeout_ms;
            started = true;
        }
        if (connection->len == sizeof connection->data) {
            refuse(connection, 431);
            return 0;
        }
        ssize_t got = socket_recv_stamped(connection->fd, connection->data + connection->len,
                                          sizeof connection->data - connection->len, deadline_ms,
                                          started ? LOOP_WAIT_BUSY : LOOP_WAIT_IDLE, &connection->arrival_ns);
        if (got == -ETIMEDOUT && started)
            refuse(connection, 408);
        if (got <= 0)
            return 0;
        connection->len += (size_t)got;
        head_len = http_head_len(connection->data, connection->len);
    }
    return head_len;
}

// A small response is the kernel's as a whole: the request ends as it is handed over. The client may get the processor
// within that call, which is none of the request's time. Returns 0 or a negative errno value.
static int send_and_end(const connection_t *connection, const http_response_t *response, prof_span_t *span)
{
    bool is_small = response->body_len <= SMALL_BYTES;
    if (is_small)
        prof_span_end(span);
    int rc = send_response(connection, response);
    if (!is_small)
        prof_span_end(span);
    return rc;
}

// Returns whether the connection goes on. Ends the span.
static bool run_call(connection_t *connection, call_t *call, prof_span_t *span)
{
    join_t join = {0};
    join_child_t child;
    call->handler = find_handler(connection->worker->routes, call->exchange.request.path);
    call->exchange.response.status = 200;
    if (join_spawn(&join, &child, run_request, call) != 0) {
        refuse(connection, 503);
        prof_span_end(span);
        return false;
    }
    join_wait(&join);
    http_response_t *response = &call->exchange.response;
    response->keep_alive = call->exchange.request.keep_alive && !loop_stopping();
    int rc = send_and_end(connection, response, span);
    free(response->body);
    return rc == 0 && response->keep_alive;
}

static bool serve_request(connection_t *connection)
{
    call_t call = {.exchange.worker = connection->worker};
    size_t head_len = read_head(connection);
    if (head_len == 0)
        return false;
    int status = http_parse(connection->data, head_len, &call.exchange.request);
    if (status != 0) {
        refuse(connection, status);
        return false;
    }
    profile_identify(&call.exchange);
    prof_span_t *span = profile_begin_span(&call.exchange, connection->arrival_ns);
    bool goes_on = run_call(connection, &call, span);
    connection->len -= head_len;
    memmove(connection->data, connection->data + head_len, connection->len);
    return goes_on;
}

static void serve_connection(void *arg)
{
    connection_t *connection = arg;
    while (serve_request(connection))
        continue;
    socket_close_gently(connection->fd);
    free(connection);
}

static void start_connection(worker_t *worker, int fd)
{
    connection_t *connection = malloc(sizeof *connection);
    if (connection != NULL) {
        connection->worker = worker;
        connection->fd = fd;
        connection->len = 0;
        if (loop_spawn(serve_connection, connection) == 0)
            return;
    }
    free(connection);
    close(fd);
}

static void accept_connections(void *arg)
{
    worker_t *worker = arg;
    for (;;) {
        while (loop_alive() >= COROUTINES_MAX)
            if (loop_sleep(10) != 0)
                return;
        int fd = socket_accept(worker->listen_fd);
        if (fd >= 0)
            start_connection(worker, fd);
        else if (fd == -ECANCELED || loop_sleep(50) != 0) // e.g. out of descriptors: wait for some
            return;
    }
}

void *worker_main(void *arg)
{
    worker_t *worker = arg;
    if (loop_run(worker->loop, accept_connections, worker) != 0)
        fprintf(stderr, "demo-service: no memory for coroutines\n");
    return NULL;
}
