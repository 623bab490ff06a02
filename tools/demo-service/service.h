// SPDX-License-Identifier: MIT
// What the parts of the service share: a worker, a request on its way (an "exchange"), the routes.
//
// Model: every worker is a thread with its own event loop and its own connection to the database. A connection has a
// coroutine that reads requests; every request gets a coroutine of its own, which runs the handler of its route. One
// worker more stands in for another company's slow server: the upstream; or another process is that, the scheduler.
#pragma once

#include "http.h"
#include "loop.h"

#include <greenprof/trace.h>

#include <pthread.h>
#include <sqlite3.h>

enum {
    REQUEST_ID_SIZE = 101,
};

typedef struct settings {
    const char *address;
    const char *port_file;   // NULL = none
    const char *profile_dir; // NULL = no profiles
    uint16_t port;
    bool is_scheduler;       // it serves what the upstream serves, and has no database
    uint16_t scheduler_port; // of another demo-service, in place of the upstream of its own; 0 = none
    uint16_t conductor_port; // what the scheduler asks; 0 = it makes up its answers
    unsigned threads;
    unsigned rows;       // of the database
    int64_t timeout_ms;  // for a request's head, for sending the response
    int64_t idle_ms;     // between requests
    int64_t upstream_ms; // how long the upstream may take
} settings_t;

typedef struct worker {
    const settings_t *settings;
    char name[16]; // its thread's
    pthread_t thread;
    loop_t *loop;
    sqlite3 *db;                // NULL at the upstream, and in the scheduler
    int listen_fd;              // all workers of a kind share it
    const struct route *routes; // what it serves
    const char *profile_dir;    // for a profile of each request; NULL = none
    uint16_t upstream_port;
} worker_t;

typedef struct exchange {
    worker_t *worker;
    http_request_t request;
    http_response_t response;
    char id[REQUEST_ID_SIZE];
    prof_trace_id_t trace;
    uint64_t parent_id; // span of the caller in its own process; 0 = not known
} exchange_t;

typedef void (*handler_fn)(exchange_t *exchange);

typedef struct route {
    const char *path;
    handler_fn handler;
} route_t;

// Both end with a NULL path.
extern const route_t client_routes[];
extern const route_t upstream_routes[];

// The start of a worker's thread: serves until loop_stop(worker->loop). `arg` is the worker_t.
void *worker_main(void *arg);
