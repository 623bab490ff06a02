// SPDX-License-Identifier: MIT
// A ClickHouse over HTTP: asking, and the tables.
//
// Model: the URL clickhouse://[user[:password]@]host[,host...][:port][/database][?cluster=NAME&tenant=T&tls=1&...].
// Port 8123, with tls 8443; database default. Tables are named greenprof_NAME; on a cluster that is a Distributed table
// over ReplicatedMergeTree tables greenprof_NAME_local. Questions go to greenprof_NAME in both cases.
//
// Order of calls: open -> ask..., exec... -> close. Threads: one at a time. Signals: not safe.
#pragma once

#include "ship/send/http.h"

typedef struct gp_clickhouse gp_clickhouse_t;

typedef struct gp_clickhouse_parameter { // of a request's URL: settings, query_id
    const char *name, *value;
} gp_clickhouse_parameter_t;

// Options of an URL that are about the connection, ended by NULL: what `ask` adds are filters of its own.
extern const char *const gp_clickhouse_option_names[];

// Connect on the first question only. Returns 0 or -EINVAL, -ENOMEM and what is wrong.
int gp_clickhouse_open(gp_clickhouse_t **clickhouse, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE]);

// The database; the cluster, "" for none.
const char *gp_clickhouse_database(const gp_clickhouse_t *clickhouse);
const char *gp_clickhouse_cluster(const gp_clickhouse_t *clickhouse);

// Servers that the URL names; questions and rows go to the chosen one. Where that is away, questions go to the next.
size_t gp_clickhouse_hosts(const gp_clickhouse_t *clickhouse);
void gp_clickhouse_choose(gp_clickhouse_t *clickhouse, size_t host);

// Ask a question (with its FORMAT); the answer goes to `take` as it comes.
//   parameters: ended by one without a name; NULL = none.
// Returns 0, take's error, or as gp_http_send() and gp_http_result() say, and ClickHouse's words in `error`.
int gp_clickhouse_ask(gp_clickhouse_t *clickhouse, const char *query, const gp_clickhouse_parameter_t *parameters,
                      int (*take)(void *context, const void *bytes, size_t len), void *context,
                      char error[GP_FLEET_ERROR_SIZE]);

// Ask for a few texts: one row, TabSeparated, as it came, at most size - 1 bytes.
int gp_clickhouse_ask_text(gp_clickhouse_t *clickhouse, const char *query, char *text, size_t size,
                           char error[GP_FLEET_ERROR_SIZE]);

// Wait until no statement with a query_id that begins like this runs on any server: an earlier attempt, of a process
// that is gone or of an answer that was lost. Returns -EAGAIN where that cannot be known now.
int gp_clickhouse_settle(gp_clickhouse_t *clickhouse, const char *query_id_prefix, char error[GP_FLEET_ERROR_SIZE]);

// The same for all statements of shippers that run now: of those that begin later, none is waited for.
int gp_clickhouse_settle_all(gp_clickhouse_t *clickhouse, char error[GP_FLEET_ERROR_SIZE]);

// Until when the server has asked to be left alone (Retry-After), CLOCK_MONOTONIC; 0 = it has not.
uint64_t gp_clickhouse_not_before_ns(const gp_clickhouse_t *clickhouse);

// Put rows into a table of the chosen server, or, where nothing listens there, of the next.
//   query: "INSERT INTO ... FORMAT Native"; body: one block; query_id: unique among what may run.
// The body is sent only when the server has begun to carry the statement out, so that none waits in a queue.
int gp_clickhouse_insert(gp_clickhouse_t *clickhouse, const char *query, const void *body, size_t body_len,
                         const char *query_id, char error[GP_FLEET_ERROR_SIZE]);

// A text between quotes, what is special escaped, for a query. Returns where the NUL is, or NULL when it does not fit.
char *gp_clickhouse_quote(char *at, const char *end, const char *text);

uint64_t gp_clickhouse_bytes(const gp_clickhouse_t *clickhouse);

void gp_clickhouse_close(gp_clickhouse_t *clickhouse); // NULL is allowed
