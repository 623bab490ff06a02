// SPDX-License-Identifier: MIT
// The endpoints that wait for another service: /proxy, /mixed, which meanwhile computes, and the scheduler's /stock.
#include "service.h"
#include "wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    REPLY_BYTES_MAX = 1024 * 1024,
    STOCK_ITEMS = 1500,
    DELAY_MIN_MS = 50,
    DELAY_MAX_MS = 200,
    DELAY_BYTES = 8,
    WAREHOUSES = 12,
    DAYS = 365,
    RESAMPLES = 3000,
};

// Returns the descriptor, or -1 with errno.
static int ask_connect(uint16_t port)
{
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&where, sizeof(where)) == 0)
        return fd;
    if (errno == EINPROGRESS) {
        loop_wait_fd(fd, EPOLLOUT);
        return fd; // where that failed, sending does
    }
    close(fd);
    return -1;
}

// The trace goes with the request: what the other service does is part of it, below this call's span.
static bool ask_send(const exchange_t *exchange, const char *service, const char *path, prof_span_t *span, int fd)
{
    char request[512], delay[DELAY_BYTES] = "", traceparent[PROF_TRACE_TRACEPARENT_SIZE];
    uint64_t span_id = prof_span_id(span) != 0 ? prof_span_id(span) : 1; // 1: nothing records it here
    exchange_query(exchange, "delay", delay, sizeof(delay));
    prof_trace_to_traceparent(&exchange->trace, span_id, 1, traceparent);
    int len = snprintf(request, sizeof(request),
                       "GET %s?delay=%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\ntraceparent: %s\r\n\r\n", path,
                       delay, service, traceparent);
    return exchange_send(fd, request, (size_t)len, 0);
}

// Receives until the peer closes. Status line and headers are the other service's business; what follows the empty line
// is JSON. Returns NULL for anything but that.
static json_t *ask_receive(int fd, char *reply)
{
    static const char ok[] = "HTTP/1.1 200 ";
    int64_t ignored;
    size_t len = 0;
    ssize_t got;
    while ((got = wire_receive(fd, reply + len, REPLY_BYTES_MAX - len, &ignored)) != 0)
        if (got > 0)
            len += (size_t)got;
        else if (errno == EAGAIN)
            loop_wait_fd(fd, EPOLLIN);
        else if (errno != EINTR)
            return NULL;
    const char *body = memmem(reply, len, "\r\n\r\n", 4);
    if (body == NULL || strncmp(reply, ok, sizeof(ok) - 1) != 0)
        return NULL;
    return json_loadb(body + 4, len - (size_t)(body + 4 - reply), 0, NULL);
}

json_t *ask_service(const exchange_t *exchange, const char *service, const char *path, uint16_t port)
{
    char name[64];
    const prof_field_t field = {"service", service};
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    options.fields = &field;
    options.field_count = 1;
    snprintf(name, sizeof(name), "GET %s", path);
    prof_span_t *span = prof_span_begin(PROF_SPAN_REST_CALL, name, &options);
    char *reply = malloc(REPLY_BYTES_MAX);
    int fd = reply != NULL ? ask_connect(port) : -1;
    json_t *answer = fd >= 0 && ask_send(exchange, service, path, span, fd) ? ask_receive(fd, reply) : NULL;
    if (answer == NULL)
        prof_span_fail(span, "no answer", service);
    prof_span_end(span);
    if (fd >= 0)
        close(fd);
    free(reply);
    return answer;
}

static json_t *ask_scheduler(const exchange_t *exchange)
{
    return ask_service(exchange, "scheduler", "/stock", exchange->worker->settings->scheduler_port);
}

static json_t *sum_up_warehouses(const json_t *stock)
{
    double values[WAREHOUSES] = {0};
    size_t index;
    json_t *item;
    json_array_foreach(json_object_get(stock, "items"), index, item)
    {
        json_int_t warehouse = json_integer_value(json_object_get(item, "warehouse"));
        json_int_t pieces = json_integer_value(json_object_get(item, "pieces"));
        if (warehouse >= 0 && warehouse < WAREHOUSES)
            values[warehouse] += (double)pieces * json_number_value(json_object_get(item, "price"));
    }
    json_t *sums = json_array();
    for (size_t i = 0; i < WAREHOUSES; i++)
        json_array_append_new(sums, json_real(values[i]));
    return sums;
}

void handle_proxy(exchange_t *exchange)
{
    json_t *stock = ask_scheduler(exchange);
    if (stock == NULL)
        answer_error(exchange, 502, "the scheduler did not answer");
    else
        answer_json(exchange, json_pack("{s:o, s:o}", "warehouses", sum_up_warehouses(stock), "stock", stock));
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double resample_mean(const double sales[DAYS], uint32_t *random)
{
    double sum = 0;
    for (int i = 0; i < DAYS; i++) {
        *random = *random * 1664525u + 1013904223u;
        sum += sales[(*random >> 8) % DAYS];
    }
    return sum / DAYS;
}

// Bootstrap: the means of many resamples, sorted, give the interval in which the mean lies with 90 %.
static json_t *forecast_demand(void)
{
    double sales[DAYS], means[RESAMPLES];
    uint32_t random = 1;
    for (int i = 0; i < DAYS; i++)
        sales[i] = 100 + i % 7 * 12 + i % 30;
    for (int i = 0; i < RESAMPLES; i++) {
        means[i] = resample_mean(sales, &random);
        loop_yield_if_due();
    }
    qsort(means, RESAMPLES, sizeof(means[0]), compare_doubles);
    return json_pack("{s:f, s:f, s:f}", "low", means[RESAMPLES / 20], "median", means[RESAMPLES / 2], "high",
                     means[RESAMPLES - RESAMPLES / 20]);
}

// The state that a request's two children share.
typedef struct scatter {
    const exchange_t *exchange;
    json_t *stock, *forecast;
} scatter_t;

static void scatter_upstream(void *arg)
{
    scatter_t *scatter = arg;
    scatter->stock = ask_scheduler(scatter->exchange);
}

static void scatter_forecast(void *arg)
{
    scatter_t *scatter = arg;
    scatter->forecast = forecast_demand();
}

void handle_mixed(exchange_t *exchange)
{
    scatter_t scatter = {.exchange = exchange};
    join_t join = {0};
    join_child_t children[2];
    join_spawn(&join, &children[0], scatter_upstream, &scatter);
    join_spawn(&join, &children[1], scatter_forecast, &scatter);
    join_wait(&join);
    if (scatter.stock == NULL)
        answer_error(exchange, 502, "the scheduler did not answer");
    else
        answer_json(exchange, json_pack("{s:O, s:o}", "forecast", scatter.forecast, "warehouses",
                                        sum_up_warehouses(scatter.stock)));
    json_decref(scatter.forecast);
    json_decref(scatter.stock);
}

static long stock_delay_ms(const exchange_t *exchange)
{
    char asked[DELAY_BYTES];
    uint16_t random = 0;
    if (exchange_query(exchange, "delay", asked, sizeof(asked)) && asked[0] != '\0')
        return labs(strtol(asked, NULL, 10)) % 10000;
    if (getrandom(&random, sizeof(random), 0) < 0)
        random = 0;
    return DELAY_MIN_MS + random % (DELAY_MAX_MS - DELAY_MIN_MS + 1);
}

static json_t *stock_make(void)
{
    json_t *items = json_array();
    for (int i = 0; i < STOCK_ITEMS; i++) {
        int hash = (int)((unsigned)i * 2654435761u >> 8);
        json_array_append_new(items, json_pack("{s:i, s:i, s:i, s:f}", "item", i, "warehouse", hash % WAREHOUSES,
                                               "pieces", hash % 500, "price", (hash % 9900 + 100) / 100.0));
    }
    return items;
}

// Slow, like all upstreams: where the conductor would place it.
void handle_stock(exchange_t *exchange)
{
    uint16_t port = exchange->worker->settings->conductor_port;
    json_t *place = port != 0 ? ask_service(exchange, "conductor", "/place", port) : NULL;
    if (port == 0)
        loop_sleep(stock_delay_ms(exchange));
    if (port != 0 && place == NULL)
        answer_error(exchange, 502, "the conductor did not answer");
    else
        answer_json(exchange, json_pack("{s:o, s:o*}", "items", stock_make(), "place", place));
}
