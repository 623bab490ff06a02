// SPDX-License-Identifier: MIT
// Shared parts of the service: a worker, a request on its way (an "exchange"), its handlers.
//
// Model: every worker is a thread with its own event loop and its own database. A connection has a coroutine that reads
// requests; every request gets a coroutine of its own, which runs the handler of its path. /proxy and /mixed ask the
// scheduler, which is another process, or the service itself; the scheduler asks the conductor (conductor.py).
#pragma once

#include "loop.h"

#include <greenprof/trace.h>

#include <jansson.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

typedef struct settings {
    const char *port_file;   // NULL = none
    const char *profile_dir; // NULL = no profiles
    uint16_t port;
    uint16_t scheduler_port; // 0 = the service itself
    uint16_t conductor_port; // asked by /stock; 0 = answers are made up
    unsigned threads;
    unsigned rows; // of a database; 0 = there is none
    int listen_fd, stop_fd;
} settings_t;

typedef struct worker {
    const settings_t *settings;
    pthread_t thread;
    sqlite3 *db;
} worker_t;

typedef struct exchange {
    const worker_t *worker;
    const char *path, *query; // "" = there is no query
    const char *headers;
    char id[24], cpu_us[24];
    prof_trace_id_t trace;
    uint64_t parent_id; // span of the caller in its own process; 0 = not known
    int status;         // of the response, with a body that is malloc'ed, or NULL
    char *body;
    size_t body_len;
    bool is_gzipped;
} exchange_t;

// Accept connections and serve them. `arg` is the worker_t; the first coroutine of its loop.
void serve_connections(void *arg);

// Copy the value of a query parameter, cut at `size`. Returns whether there is one.
bool exchange_query(const exchange_t *exchange, const char *key, char *value, size_t size);

// Send all of it, with flags of send(2); parks. Returns false where the peer is gone.
bool exchange_send(int fd, const char *data, size_t len, int flags);

// Answer with a document, gzipped where the client takes it, and drop the reference to it. NULL is answered with 500.
void answer_json(exchange_t *exchange, json_t *document);
void answer_error(exchange_t *exchange, int status, const char *message);

// Ask another service in the trace of a request; parks. Returns the answer, or NULL.
json_t *ask_service(const exchange_t *exchange, const char *service, const char *path, uint16_t port);

// Make a database with the table `orders`, always the same for the same number of rows. Returns NULL after saying why
// on standard error.
sqlite3 *database_create(unsigned rows);

// A handler for each endpoint.
void handle_health(exchange_t *exchange); // /health
void handle_report(exchange_t *exchange); // /report[?by=COLUMN]: orders, summed up
void handle_search(exchange_t *exchange); // /search?q=TEXT: orders with this text in their note
void handle_proxy(exchange_t *exchange);  // /proxy[?delay=MS]: asks the scheduler for its stock, and sums it up
void handle_mixed(exchange_t *exchange);  // /mixed[?delay=MS]: stock and a forecast at the same time
void handle_stock(exchange_t *exchange);  // /stock[?delay=MS]: the scheduler's own
