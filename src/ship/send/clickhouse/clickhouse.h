// SPDX-License-Identifier: MIT
// A ClickHouse over HTTP: asking, and the tables.
//
// Model: the URL clickhouse://[user[:password]@]host[,host...][:port][/database][?cluster=NAME&tenant=T&tls=1&...].
// Port 8123, with tls 8443; database default. Tables are named greenprof_NAME; on a cluster that is a Distributed table
// over ReplicatedMergeTree tables greenprof_NAME_local. Questions go to greenprof_NAME in both cases.
//
// Order of calls: open -> ask..., insert... -> close. Threads: one at a time. Signals: not safe.
#pragma once

#include "ship/send/http.h"

enum { GP_CLICKHOUSE_HOSTS_MAX = 64 };

typedef struct gp_clickhouse {
    gp_http_t *http;
    char *database, *cluster; // cluster: "" = none
    // The servers of the URL, "name" or "name:port". Questions and rows go to the one at `at`; where it is away, to the
    // next.
    const char *host[GP_CLICKHOUSE_HOSTS_MAX];
    size_t host_count, at;
    char *hosts; // as in the URL, ',' made NUL
    unsigned port;
    bool tls;
} gp_clickhouse_t;

// Options of an URL that are about the connection, ended by NULL: what `ask` adds are filters of its own.
extern const char *const gp_clickhouse_option_names[];

// Connect on the first question only. Returns 0 or -EINVAL, -ENOMEM and what is wrong.
int gp_clickhouse_open(gp_clickhouse_t **clickhouse, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE]);

// Ask a question (with its FORMAT). `answer` is the caller's to free, also after a failure.
//   most: bytes of an answer, 0 = 64 KiB; where there are more: -EMSGSIZE.
// Returns 0, or as gp_http_send() and gp_http_result() say, and ClickHouse's words in `error`.
int gp_clickhouse_ask(gp_clickhouse_t *clickhouse, const char *query, size_t most, gp_http_answer_t *answer,
                      char error[GP_FLEET_ERROR_SIZE]);

// Ask for a few texts: one row, TabSeparated, as it came, at most size - 1 bytes.
int gp_clickhouse_ask_text(gp_clickhouse_t *clickhouse, const char *query, char *text, size_t size,
                           char error[GP_FLEET_ERROR_SIZE]);

// Wait until no statement with such a query_id prefix runs on any server: an earlier attempt, whose process or answer
// was lost. Returns -EAGAIN where this cannot be known now.
int gp_clickhouse_settle(gp_clickhouse_t *clickhouse, const char *query_id_prefix, char error[GP_FLEET_ERROR_SIZE]);

// The same for all statements of shippers that run now; later ones are not waited for.
int gp_clickhouse_settle_all(gp_clickhouse_t *clickhouse, char error[GP_FLEET_ERROR_SIZE]);

// Put rows into a table of the chosen server, or, where nothing listens there, of the next.
//   query: "INSERT INTO ... FORMAT Native"; body: one block; query_id: unique among what may run.
// The body is sent only when the server has begun to carry the statement out, so that none waits in a queue.
int gp_clickhouse_insert(gp_clickhouse_t *clickhouse, const char *query, const void *body, size_t body_len,
                         const char *query_id, char error[GP_FLEET_ERROR_SIZE]);

// A text between quotes, what is special escaped, for a query. Returns where the NUL is, or NULL when it does not fit.
char *gp_clickhouse_quote(char *at, const char *end, const char *text);

void gp_clickhouse_close(gp_clickhouse_t *clickhouse); // NULL is allowed
