// SPDX-License-Identifier: MIT
// Requests on their way: connections, and where the service meets greenprof: one trace id, one span and, with
// --profile-dir, one profile a request.
#include "service.h"
#include "wire.h"

#include <greenprof/coro.h>
#include <greenprof/prof.h>

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_BYTES_MAX = 8192,
    SMALL_BYTES = 16384, // fit into any socket's buffer
};

typedef struct connection {
    const worker_t *worker;
    int fd;
    int64_t arrival_ns; // when the last bytes reached this host: a request begins then, not when it is read
} connection_t;

typedef struct route {
    const char *path;
    void (*handler)(exchange_t *exchange);
} route_t;

static const route_t routes[] = {
    {"/health", handle_health}, {"/report", handle_report}, {"/search", handle_search},
    {"/proxy", handle_proxy},   {"/mixed", handle_mixed},   {"/stock", handle_stock},
};

static void serve_route(exchange_t *exchange)
{
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        if (strcmp(routes[i].path, exchange->path) == 0) {
            routes[i].handler(exchange);
            return;
        }
    answer_error(exchange, 404, "there is no such path");
}

static void serve_end_profile(prof_t *profile, exchange_t *exchange)
{
    char path[PATH_MAX];
    prof_stop(profile);
    snprintf(exchange->cpu_us, sizeof(exchange->cpu_us), "%llu", (unsigned long long)prof_total_ns(profile) / 1000);
    snprintf(path, sizeof(path), "%s/%s.prof", exchange->worker->settings->profile_dir, exchange->id);
    int rc = prof_dump_stats(profile, path);
    if (rc != 0)
        fprintf(stderr, "demo-service: %s: %s\n", path, strerror(-rc));
    prof_free(profile);
}

// The request's coroutine: everything between prof_start() and prof_stop() is in its profile, and nothing else is.
static void serve_exchange(void *arg)
{
    exchange_t *exchange = arg;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.name = exchange->id;
    prof_coro_name(NULL, exchange->path);
    prof_t *profile = exchange->worker->settings->profile_dir != NULL ? prof_start(&options) : NULL;
    serve_route(exchange);
    if (profile != NULL)
        serve_end_profile(profile, exchange);
}

// The trace that the caller names, else a new one.
static void serve_identify(exchange_t *exchange)
{
    enum { SPAN_AT = 36 };
    static atomic_uint sequence;
    char header[80], trace[PROF_TRACE_HEX_SIZE];
    if (wire_header(exchange->headers, "traceparent", header, sizeof(header)) &&
        prof_trace_parse(header, &exchange->trace) == 0) {
        if (strlen(header) > SPAN_AT)
            exchange->parent_id = strtoull(header + SPAN_AT, NULL, 16);
    } else if (getrandom(exchange->trace.bytes, sizeof(exchange->trace.bytes), 0) < 0)
        exchange->trace.bytes[0] = 1; // the all-zero id is none
    prof_trace_to_hex(&exchange->trace, trace);
    snprintf(exchange->id, sizeof(exchange->id), "%06u-%.8s", atomic_fetch_add(&sequence, 1), trace);
}

// All that the calling coroutine and its children do from now on is the request's. Returns NULL where nothing records
// it.
static prof_span_t *serve_begin_span(const exchange_t *exchange, int64_t arrival_ns)
{
    char name[80];
    const prof_field_t fields[] = {{"query", exchange->query}, {"request_id", exchange->id}};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.trace = &exchange->trace;
    options.parent_id = exchange->parent_id;
    options.flags = PROF_SPAN_REMOTE_PARENT;
    options.start_unix_ns = (uint64_t)arrival_ns;
    options.fields = fields;
    options.field_count = sizeof(fields) / sizeof(fields[0]);
    snprintf(name, sizeof(name), "GET %s", exchange->path);
    return prof_span_begin(PROF_SPAN_REST_DISPATCH, name, &options);
}

bool exchange_send(int fd, const char *data, size_t len, int flags)
{
    while (len > 0) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
        if (sent > 0) {
            data += sent;
            len -= (size_t)sent;
        } else if (errno == EAGAIN)
            loop_wait_fd(fd, EPOLLOUT);
        else if (errno != EINTR)
            return false;
    }
    return true;
}

static bool serve_response(int fd, const exchange_t *exchange)
{
    char head[1024], trace[PROF_TRACE_HEX_SIZE];
    prof_trace_to_hex(&exchange->trace, trace);
    int len = snprintf(head, sizeof(head),
                       "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s"
                       "X-Request-Id: %s\r\nX-Trace-Id: %s\r\nX-Cpu-Us: %s\r\n\r\n",
                       exchange->status, exchange->status == 200 ? "OK" : "Failed", exchange->body_len,
                       exchange->is_gzipped ? "Content-Encoding: gzip\r\n" : "", exchange->id, trace, exchange->cpu_us);
    return exchange_send(fd, head, (size_t)len, MSG_MORE) && exchange_send(fd, exchange->body, exchange->body_len, 0);
}

// A small response is the kernel's as a whole: the request ends as it is handed over. The client may get the processor
// within that call, which is none of the request's time.
static bool serve_request(const connection_t *connection, exchange_t *exchange)
{
    join_t join = {0};
    join_child_t child;
    prof_span_t *span = serve_begin_span(exchange, connection->arrival_ns);
    join_spawn(&join, &child, serve_exchange, exchange);
    join_wait(&join);
    bool is_small = exchange->body_len <= SMALL_BYTES;
    if (is_small)
        prof_span_end(span);
    bool is_sent = serve_response(connection->fd, exchange);
    if (!is_small)
        prof_span_end(span);
    free(exchange->body);
    return is_sent;
}

// Reads up to and including the empty line; a client sends no more before it has its answer. Returns false where it has
// gone.
static bool serve_read_head(connection_t *connection, char head[HEAD_BYTES_MAX])
{
    size_t len = 0;
    while (len < 4 || memcmp(head + len - 4, "\r\n\r\n", 4) != 0) {
        ssize_t got = wire_receive(connection->fd, head + len, HEAD_BYTES_MAX - 1 - len, &connection->arrival_ns);
        if (got < 0 && errno == EAGAIN)
            loop_wait_fd(connection->fd, EPOLLIN);
        else if (got <= 0)
            return false;
        else
            len += (size_t)got;
    }
    head[len] = '\0';
    return true;
}

// "GET /path?query HTTP/1.1": cut into its parts.
static bool serve_parse(exchange_t *exchange, char *head)
{
    exchange->headers = strstr(head, "\r\n");
    char *end = strncmp(head, "GET /", 5) == 0 ? strchr(head + 4, ' ') : NULL;
    if (end == NULL || end > exchange->headers)
        return false;
    *end = '\0';
    exchange->path = head + 4;
    char *query = strchr(head + 4, '?');
    exchange->query = query != NULL ? query + 1 : "";
    if (query != NULL)
        *query = '\0';
    return true;
}

static bool serve_next(connection_t *connection)
{
    char head[HEAD_BYTES_MAX], word[16];
    exchange_t exchange = {.worker = connection->worker, .status = 200};
    if (!serve_read_head(connection, head) || !serve_parse(&exchange, head))
        return false;
    serve_identify(&exchange);
    return serve_request(connection, &exchange) &&
           !(wire_header(exchange.headers, "Connection", word, sizeof(word)) && strcasecmp(word, "close") == 0);
}

static void serve_connection(void *arg)
{
    connection_t *connection = arg;
    while (serve_next(connection))
        continue;
    close(connection->fd);
    free(connection);
}

void serve_connections(void *arg)
{
    const worker_t *worker = arg;
    int listen_fd = worker->settings->listen_fd, on = 1;
    for (;;) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        connection_t *connection = fd >= 0 ? malloc(sizeof(*connection)) : NULL;
        if (connection == NULL) {
            loop_wait_fd(listen_fd, EPOLLIN);
            continue;
        }
        // A response is one burst: without this, its last segment waits for the peer's acknowledgement.
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        *connection = (connection_t){.worker = worker, .fd = fd};
        loop_spawn(serve_connection, connection);
    }
}
